package lease

import (
	"errors"
	"fmt"
	"time"
)

// MinDuration is the shortest lease: below it, a renewal at a third of the
// length would race with ordinary pauses of the network and the collector.
const MinDuration = 100 * time.Millisecond

// MaxShards bounds Config.Shards.
const MaxShards = 1024

// Config of a lease.
type Config struct {
	Key      string        // the Redis key; of several leases what their keys begin with
	Members  string        // key of the Hash of the instances that run
	Duration time.Duration // PX of the key, MinDuration or more; renewed at a third of it
	Shards   int           // leases that instances share, 1 to MaxShards
}

// WantedKey is the key by which the leases are asked for: see Borrow.
func (c Config) WantedKey() string { return c.Key + ":wanted" }

// DefaultConfig is the configuration of a lease about which nothing is said.
// The key depends on the layout of the keys and stays empty.
func DefaultConfig() Config { return Config{Duration: 2 * time.Minute, Shards: 1} }

// ShardKey is the key of one of Shards leases. A single one has Key itself.
func (c Config) ShardKey(i int) string {
	if c.Shards <= 1 {
		return c.Key
	}
	return fmt.Sprintf("%s:%d/%d", c.Key, i, c.Shards)
}

// Validate returns one error per setting that makes no sense; each begins
// with the setting's last part.
func (c Config) Validate() []error {
	var errs []error
	if c.Key == "" {
		errs = append(errs, errors.New("lease: the key is empty"))
	}
	if c.Duration < MinDuration {
		errs = append(errs, fmt.Errorf("lease-duration %s: want %s or more", c.Duration, MinDuration))
	}
	if c.Shards < 1 || c.Shards > MaxShards {
		errs = append(errs, fmt.Errorf("shards %d: want 1 to %d", c.Shards, MaxShards))
	}
	return errs
}
