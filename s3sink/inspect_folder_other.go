//go:build !linux

package s3sink

import (
	"errors"
	"os"
)

// system is Linux's; elsewhere nothing is known.
func (f *FolderFacts) system(string) {
	f.Space.Err = errors.New("this system is not asked for it")
}

// isMount is not known.
func isMount(string) bool { return false }

// tryUnnamed is Linux's.
func tryUnnamed(*os.Root) error { return errNoUnnamed }
