package scrub

import (
	"context"
	"slices"
	"time"

	"korvet-offload/segment"
)

// Options say what is looked at, and how closely. The zero Options look at
// everything, and read no object.
type Options struct {
	// Only says which partitions are looked at; nil = all.
	Only func(segment.Partition) bool
	// Partitions are those to look at, whether or not there is such a topic; nil =
	// all that topics, manifests and the store show. With Only they are looked at
	// beside those that it wants.
	Partitions []segment.Partition
	// Segments says of which segments findings are told, and whose objects are read;
	// nil = of all, and what is of no segment, too. What is wrong with one may show
	// in others: manifests and folders are read whole all the same.
	Segments func(segment.Partition, segment.Number) bool
	// Whole says of which partitions what is of no segment is told, too, where Segments
	// is set; nil = of none.
	Whole func(segment.Partition) bool
	// PassOver is asked right before each partition whether it is passed over now; nil =
	// never.
	PassOver func(segment.Partition) bool
	// Deep reads every object that an entry names, and every row in it.
	Deep bool
	// CompareLocal compares the messages of the object with those of the local
	// stream where there is one. It means Deep.
	CompareLocal bool
	// Rate is how many bytes per second are read from the store at most; 0 = no
	// limit.
	Rate int64

	DeleteGrace time.Duration // of the worker: for so long a DELETING entry stays by design
	SpoolDir    string        // for objects that do not fit into memory; "" = the system's
	Again       time.Duration // between the two looks that a finding needs; 0 = half a second, below 0 = none

	// Verified says whether an object was read before and found whole, so that
	// Deep passes it over; nil = never.
	Verified func(Object) bool
	// Done is told of every object that was read and found whole; nil = nobody.
	Done func(Object)
	// Progress is told how far it is, several times a second at most; nil = nobody.
	Progress func(Progress)

	Sleep func(ctx context.Context, d time.Duration) error // nil = time passes
	Now   func() time.Time                                 // monotonic, for the rate and durations; nil = time.Now
}

// Wants says whether a finding is of what the options look at.
func (o Options) Wants(f Finding) bool {
	if (o.Only != nil || o.Partitions != nil) && (o.Only == nil || !o.Only(f.Partition)) && !slices.Contains(o.Partitions, f.Partition) {
		return false
	}
	return o.tells(f)
}

// tells says whether a finding is of a segment, or a partition, that is told of.
func (o Options) tells(f Finding) bool {
	if f.HasSegment || o.Segments == nil {
		return o.Segments == nil || o.Segments(f.Partition, f.Segment)
	}
	return o.Whole != nil && o.Whole(f.Partition)
}

// Object is an object that an entry names, as it was read.
type Object struct {
	Partition segment.Partition
	Segment   segment.Number
	Path      string
	Bytes     int64
	ETag      string           // "" where the store has none
	Modified  time.Time        // by the store's clock
	Change    string           // s3sink.Info.Change
	SHA256    string           // in hex: for Verified that of the entry, for Done that of what was read
	Contents  segment.Contents // by its entry
}

// Progress is how far a Run is.
type Progress struct {
	Partition segment.Partition // that it is at
	Done, All int64             // partitions
	Objects   int64             // that were read whole
	Read, Of  int64             // bytes of objects; Of is 0 without Deep
}

// Report is what a Run has looked at.
type Report struct {
	Partitions int64          `json:"partitions"`
	Segments   int64          `json:"segments"`   // entries of the manifests
	Objects    int64          `json:"objects"`    // on the store, below the root
	Read       int64          `json:"read"`       // objects that were read whole
	Bytes      int64          `json:"read_bytes"` // of these
	Skipped    int64          `json:"skipped"`    // partitions
	Passed     int64          `json:"passed_over"`
	Unsteady   int64          `json:"unsteady"` // what was different at every look, and of which nothing is said
	Unread     int64          `json:"unread"`   // what could not be read; the error says of what
	Findings   map[Kind]int64 `json:"findings"` // without the notes
	Notes      int64          `json:"notes"`
	Duration   time.Duration  `json:"-"`
}

// Scrubber compares manifests, streams and the store. One Run at a time.
type Scrubber struct {
	ports  Ports
	layout segment.Layout
	opt    Options
}

// New makes a scrubber.
func New(ports Ports, layout segment.Layout, o Options) *Scrubber {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	switch {
	case o.Again == 0:
		o.Again = defaultAgain
	case o.Again < 0:
		o.Again = 0
	}
	return &Scrubber{ports: ports, layout: layout, opt: o}
}

// Run looks at everything once. found is told of every finding that two looks
// have shown, in the order of the partitions and from one goroutine. An error
// means that Redis or the store, or a part of it, could not be read; what was
// found all the same counts.
func (s *Scrubber) Run(ctx context.Context, found func(Finding)) (Report, error) {
	start := s.opt.Now()
	r := &run{Scrubber: s, found: found, pace: pace{rate: s.opt.Rate, now: s.opt.Now, sleep: s.opt.Sleep},
		report: Report{Findings: map[Kind]int64{}}}
	err := r.all(ctx)
	r.report.Duration = s.opt.Now().Sub(start)
	return r.report, err
}
