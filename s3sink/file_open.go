package s3sink

import "os"

// Local is a Store whose objects are files of this machine; Open gives one where
// the URL names a folder.
type Local interface {
	Store
	// OpenFile opens the file of an object for reading. It is not hashed.
	OpenFile(key string) (*os.File, error)
}

// OpenFile opens a file; see Local.
func (f *files) OpenFile(key string) (*os.File, error) { return f.open(key) }
