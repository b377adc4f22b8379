package offload

import "os"

// removedFile makes a file and takes its name away at once.
func removedFile(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "korvet-offload-*.spool")
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close() // the cause is in err
		return nil, err
	}
	return f, nil
}
