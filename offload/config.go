package offload

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"
)

// Config of a worker.
type Config struct {
	Enabled      bool          // false: run does nothing but say so
	TickInterval time.Duration // from the start of one pass to the next
	Concurrency  int           // segments copied at once
	SealGrace    time.Duration // a segment is copied no sooner after it was sealed
	SpoolDir     string        // where files grow that are too large for memory
	SpoolMemory  int64         // bytes of unfinished files kept in memory, all together
	UploadRate   int64         // bytes per second that go to the store at most; 0 = no limit
	SLA          time.Duration // over the tick: a sealed segment that waits longer breaks the SLA

	Roll                bool          // seal full segments and open the next; false: the broker does
	DeleteGrace         time.Duration // from hiding a segment to deleting its object: readers finish
	ExpireUnuploaded    Unuploaded    // what becomes of a segment past total retention that was never copied
	HoldPending         bool          // keep local copies that a consumer group still needs
	TopicDeleteGrace    time.Duration // a topic that left the registry is kept as it was for so long
	DeleteRemovedTopics bool          // then delete it; false: only report it
}

// MinUploadRate is the lowest Config.UploadRate that is one, in bytes per second.
const MinUploadRate = 64 << 10

// Unuploaded is what becomes of a segment past total retention that was never
// copied.
type Unuploaded string

// The two ways.
const (
	Hold   Unuploaded = "hold"   // it stays in Redis, and is reported
	Expire Unuploaded = "expire" // it is deleted, and counted apart
)

// DefaultConfig is the configuration of a worker about which nothing is said.
func DefaultConfig() Config {
	return Config{
		Enabled:      true,
		TickInterval: time.Minute,
		Concurrency:  runtime.GOMAXPROCS(0),
		SealGrace:    5 * time.Second,
		SpoolDir:     os.TempDir(),
		SpoolMemory:  32 << 20,
		SLA:          time.Minute,

		Roll:             true,
		DeleteGrace:      5 * time.Minute,
		ExpireUnuploaded: Hold,
		TopicDeleteGrace: 24 * time.Hour,
	}
}

// CheckSpool tries whether files can grow in SpoolDir. It leaves none.
func (c Config) CheckSpool() error {
	f, err := unnamedFile(c.SpoolDir)
	if err != nil {
		return fmt.Errorf("make a file in %s: %w; set korvet.storage.offload.spool-dir to a folder that can be written", c.SpoolDir, err)
	}
	return f.Close()
}

// Validate returns one error per setting that makes no sense; each begins
// with the setting's last part.
func (c Config) Validate() []error {
	var errs []error
	if c.TickInterval < time.Millisecond {
		errs = append(errs, fmt.Errorf("tick-interval %s: want 1ms or more", c.TickInterval))
	}
	if c.Concurrency < 1 || c.Concurrency > 1024 {
		errs = append(errs, fmt.Errorf("concurrency %d: want 1 to 1024", c.Concurrency))
	}
	if c.SealGrace < 0 {
		errs = append(errs, fmt.Errorf("seal-grace %s: want 0 or more", c.SealGrace))
	}
	if c.SpoolDir == "" {
		errs = append(errs, errors.New("spool-dir: it is empty"))
	}
	if c.SpoolMemory < 0 {
		errs = append(errs, fmt.Errorf("spool-memory %d: want 0 or more bytes", c.SpoolMemory))
	}
	if c.UploadRate < 0 || c.UploadRate > 0 && c.UploadRate < MinUploadRate {
		errs = append(errs, fmt.Errorf("upload-rate %d: want 0, for no limit, or %d bytes per second or more: stores close connections on which too little comes",
			c.UploadRate, MinUploadRate))
	}
	if c.SLA < 0 {
		errs = append(errs, fmt.Errorf("sla %s: want 0 or more", c.SLA))
	}
	if c.DeleteGrace < 0 {
		errs = append(errs, fmt.Errorf("delete-grace %s: want 0 or more", c.DeleteGrace))
	}
	if c.ExpireUnuploaded != Hold && c.ExpireUnuploaded != Expire {
		errs = append(errs, fmt.Errorf("expire-unuploaded %q: want %s or %s", c.ExpireUnuploaded, Hold, Expire))
	}
	if c.TopicDeleteGrace < 0 {
		errs = append(errs, fmt.Errorf("topic-delete-grace %s: want 0 or more", c.TopicDeleteGrace))
	}
	return errs
}
