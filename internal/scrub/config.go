package scrub

import (
	"fmt"
	"time"
)

// Config of the scrub that a daemon does in the background.
type Config struct {
	Interval time.Duration // from the end of one to the beginning of the next; 0 = none
	Rate     int64         // bytes per second that are read from the store at most; 0 = no limit
	Deep     bool          // read the objects whole, and not only ask what the store says of them
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config { return Config{Rate: 16 << 20} }

// Validate returns one error per setting that makes no sense; each begins with
// the setting's last part.
func (c Config) Validate() []error {
	var errs []error
	if c.Interval < 0 || c.Interval > 0 && c.Interval < time.Minute {
		errs = append(errs, fmt.Errorf("verify.interval %s: want 0 (never) or 1m and more", c.Interval))
	}
	if c.Rate < 0 || c.Rate > 0 && c.Rate < 64<<10 {
		errs = append(errs, fmt.Errorf("verify.rate %d: want 0 (no limit) or 64KB and more per second", c.Rate))
	}
	return errs
}
