package gc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"korvet-offload/internal/catalog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// MinAge is the lowest floor of age: more than any attempt at a copy takes.
const MinAge = 24 * time.Hour

// Options of a collection.
type Options struct {
	OlderThan time.Duration // what is younger stays; MinAge at least
	Gaps      bool          // also objects of class Gap
	Removed   bool          // also objects of class Removed
	Uploads   bool          // also unfinished uploads
	Scope     segment.Scope // only objects of this topic or plain stream; the zero Scope is all

	// Only says which partitions of the scope are meant; nil = all.
	Only func(segment.Partition) bool
	// Segments says which segments of these are meant; nil = all.
	Segments func(segment.Partition, segment.Number) bool
}

// all says whether everything is meant.
func (o Options) all() bool { return o.Scope.All() && o.Only == nil }

// covers says whether something of a partition is meant.
func (o Options) covers(p segment.Partition) bool {
	return o.Scope.Covers(p) && (o.Only == nil || o.Only(p))
}

// meant says whether objects of a segment are.
func (o Options) meant(p segment.Partition, n segment.Number) bool {
	return o.Segments == nil || o.Segments(p, n)
}

// Validate returns what is wrong with the options.
func (o Options) Validate() error {
	if o.OlderThan < MinAge {
		return fmt.Errorf("age %s: want %s or more, which is longer than any upload takes", o.OlderThan, MinAge)
	}
	return nil
}

// wants says whether objects of a class are to go.
func (o Options) wants(c Class) bool {
	switch c {
	case Gap:
		return o.Gaps
	case Removed:
		return o.Removed
	}
	return true
}

// Collector collects what nobody names. Its methods are called by one goroutine.
type Collector struct {
	ports  Ports
	layout segment.Layout
	opt    Options
}

// New makes a collector. The options are valid.
func New(p Ports, l segment.Layout, o Options) *Collector { return &Collector{p, l, o} }

// Candidate is an object that could go.
type Candidate struct {
	Partition segment.Partition
	Object    catalog.Object
	Class     Class
	Why       string        // one line
	Age       time.Duration // when it was looked at
	Stays     string        // why it does not go though its class is wanted; "" = it does, or its class is not

	first, last segment.Number // of the manifest; nothing where the class is Removed
	retention   int64          // of Expired: how old all of it must be, in ms
}

// Upload is an unfinished upload that could go.
type Upload struct {
	s3sink.Unfinished
	Age time.Duration
}

// Protected is a partition of which nothing goes, and why.
type Protected struct {
	Partition segment.Partition
	Err       error
	Odd       bool // a person should look at it; otherwise it is paused, or of a topic in a state that explains it
}

// Sum counts objects and their bytes.
type Sum struct{ Objects, Bytes int64 }

func (s *Sum) add(o s3sink.Info) {
	s.Objects++
	s.Bytes += o.Size
}

// Plan is what was found.
type Plan struct {
	At      time.Time
	Objects []Candidate // to go, in the order of their folders
	Left    []Candidate // that stay: of classes that the options do not want, or for what Stays says
	Uploads []Upload    // to go

	Seen      Sum // all objects in the scope
	Named     Sum // that entries name, or may name yet
	Newer     Sum // later copies than those that entries name
	Young     Sum // that nothing names, and are below the floor
	Alien     Sum // that are none of this program's, by their paths
	Guarded   Sum // in partitions that are protected
	NewBegun  int // unfinished uploads below the floor, or of others
	Protected []Protected
	NoUploads error // why unfinished uploads are not known
}

// Outcome is what came of one object or upload of a plan. Exactly one of Object
// and Upload is set.
type Outcome struct {
	Object *Candidate
	Upload *Upload
	Result Result
	Why    string // of Skipped: what has changed
	Err    error  // of Failed
}

// Result is what came of it. The list is closed.
type Result string

// The results.
const (
	Deleted Result = "deleted"
	Skipped Result = "skipped" // it is not what it was when it was looked at
	Failed  Result = "failed"  // whether it is gone is not known
)

func isOutage(err error) bool {
	if errors.Is(err, ErrOutage) {
		return true
	}
	switch s3sink.ClassOf(err) {
	case s3sink.ClassNoBucket, s3sink.ClassCredentials, s3sink.ClassThrottled, s3sink.ClassUnavailable, s3sink.ClassTimeout, s3sink.ClassClockSkew, s3sink.ClassWrongRegion:
		return true
	}
	return false
}

// owned is Ports.Owned with what it is for.
func (c *Collector) owned(ctx context.Context) error {
	if err := c.ports.Owned(ctx); err != nil {
		return fmt.Errorf("see whose the root is: %w", err)
	}
	return nil
}
