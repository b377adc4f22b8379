package config

import (
	"os"
	"strings"

	"korvet-offload/internal/ops"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/segcache"
	"korvet-offload/internal/serve"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// Config holds the configuration of every part. The layout of the keys is
// Redis.Layout, with the namespace in it.
type Config struct {
	Redis   redisstore.Config
	Store   s3sink.Config
	Lease   lease.Config
	Worker  offload.Config
	Ops     ops.Config
	Scrub   scrub.Config
	Serve   serve.Config
	Cache   segcache.Config
	Topics  []segment.TopicPattern  // in the order in which they are tried
	Streams []segment.StreamPattern // the same
}

// String keeps secrets out of a log line that prints a Config by accident.
func (Config) String() string { return "settings (not shown: they hold secrets)" }

// GoString does for %#v what String does for %v.
func (c Config) GoString() string { return c.String() }

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	c := Config{
		Redis:  redisstore.DefaultConfig(),
		Store:  s3sink.Config{MultipartThreshold: s3sink.DefaultMultipartThreshold, PartSize: s3sink.DefaultPartSize},
		Lease:  lease.DefaultConfig(),
		Worker: offload.DefaultConfig(),
		Ops:    ops.DefaultConfig(),
		Scrub:  scrub.DefaultConfig(),
		Serve:  serve.DefaultConfig(),
		Cache:  segcache.DefaultConfig(),
	}
	c.Lease.Key, c.Lease.Members = c.Redis.Layout.LeaseKey(), c.Redis.Layout.MembersKey()
	c.Redis.Shards = c.Lease.Shards
	return c
}

// Input is where settings come from. Flags win over the environment, the
// environment over the secrets folder, that over the file, the file over the
// defaults.
type Input struct {
	File       string            // path of a YAML file; "" = none
	SecretsDir string            // folder of files that are named as settings; "" = $CREDENTIALS_DIRECTORY of Environ, if it is there
	Environ    []string          // NAME=value, as os.Environ gives it
	Flags      map[string]string // flag name without dashes -> text; only flags that were given
	Set        []string          // name=value of each --set
	NeedStore  bool              // the object store will be used: remote-path is required
}

// Loaded is a Config that passed every check.
type Loaded struct {
	Config
	// Warnings are things that were passed over on purpose, one line each.
	Warnings []string

	report []Setting
}

// Report lists the settings in effect, in the order of the reference, secrets
// redacted.
func (l *Loaded) Report() []Setting { return l.report }

// Shown is the value of a setting as the report has it; "" for a list.
func (l *Loaded) Shown(name string) string {
	for _, s := range l.report {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// Load reads the settings. If anything is wrong the error is a Faults that
// names all of it.
func Load(in Input) (*Loaded, error) {
	var content []byte
	if in.File != "" {
		var err error
		if content, err = os.ReadFile(in.File); err != nil {
			return nil, Faults{oneLine("read settings file: " + err.Error())}
		}
	}
	return load(in, content)
}

// load is Load with the content of the file at hand.
func load(in Input, content []byte) (*Loaded, error) {
	l := newLoader(in.Environ)
	if in.File != "" {
		l.readFile(in.File, content)
	}
	l.readSecretsDir(in.SecretsDir)
	l.readEnvironment(in.Environ)
	l.readFlags(in.Flags, in.Set)
	c := l.bind()
	l.check(c, in.NeedStore)
	if len(l.faults) > 0 {
		return nil, l.faults
	}
	return &Loaded{Config: c, Warnings: l.warnings, report: l.reportOf(c)}, nil
}

// Faults is everything that is wrong with the settings, one line each.
type Faults []string

// Error puts each fault on a line of its own.
func (f Faults) Error() string { return strings.Join(f, "\n") }
