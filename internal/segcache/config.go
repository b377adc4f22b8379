package segcache

import "fmt"

// Config of the cache.
type Config struct {
	Dir  string // "" = none is kept
	Size int64  // bytes that the files take at most
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config { return Config{Size: 1 << 30} }

// Validate returns one error per setting that makes no sense; each begins with
// the setting's last part.
func (c Config) Validate() []error {
	if c.Size < 1<<20 {
		return []error{fmt.Errorf("cache.size %d: want 1MB or more", c.Size)}
	}
	return nil
}
