//go:build !linux

package offload

import "os"

func unnamedFile(dir string) (*os.File, error) { return removedFile(dir) }
