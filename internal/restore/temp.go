package restore

import (
	"fmt"
	"os"
)

// TempIn makes temporary files in a folder; "" is the system's. They have no name,
// so that they are gone with the process.
func TempIn(dir string) func() (Temp, error) {
	return func() (Temp, error) {
		f, err := os.CreateTemp(dir, "korvet-offload-*.restore")
		if err != nil {
			return nil, err
		}
		if err := os.Remove(f.Name()); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("take its name away: %w", err)
		}
		return f, nil
	}
}
