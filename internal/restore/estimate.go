package restore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// Memory is what a restore will take in Redis, and what there is. All in bytes.
type Memory struct {
	Needs   int64 // estimated, of the messages that are not there
	Sampled int64 // messages that the estimate rests on
	Used    int64 // by the server now; -1 = it does not say
	Most    int64 // its limit; 0 = none

	each float64 // of one message
}

// of is what so many messages take.
func (m Memory) of(messages int64) int64 { return int64(m.each * float64(messages)) }

// short says whether it is too little.
func (m Memory) short(needs int64) bool { return m.Used >= 0 && m.Most > 0 && m.Used+needs > m.Most }

// How a stream lies in Redis's memory: in nodes of at most so many entries or
// bytes, as the server's defaults have it, each with the names of its first entry;
// an entry with the same names has only its values. The rest was measured.
const (
	nodeEntries  = 100
	nodeBytes    = 4096
	nodeOverhead = 160
	entryBytes   = 12
	fieldBytes   = 5
	slack        = 1.15 // what the allocator rounds up
)

// sampled is how many segments the estimate looks into.
const sampled = 3

var errSampled = errors.New("sampled")

// estimate looks at the beginnings of some files, and asks the server.
func (r *Restorer) estimate(ctx context.Context, p *Plan) error {
	p.Memory.Used = -1
	var does []*Step
	for i := range p.Steps {
		if p.Steps[i].does() {
			does = append(does, &p.Steps[i])
		}
	}
	if len(does) == 0 {
		return nil
	}
	var s sample
	for _, i := range slices.Compact([]int{0, len(does) / 2, len(does) - 1}[:min(sampled, len(does))]) {
		if err := r.sample(ctx, p.Partition, does[i], &s); err != nil {
			if ctx.Err() != nil {
				return err
			}
			does[i].Fault = err
		}
	}
	p.Memory.Sampled, p.Memory.each = s.messages, s.each()
	missing := p.Messages - p.There
	p.Memory.Needs = p.Memory.of(missing)
	used, most, err := r.Server.Room(ctx)
	if err != nil {
		p.note("it can't be told how much memory Redis has left: %v", err)
		return nil //nolint:nilerr // it is said
	}
	p.Memory.Used, p.Memory.Most = used, most
	if p.Memory.short(p.Memory.Needs) {
		p.refuse("the %d messages that are not there need about %d bytes of Redis' memory, and of its %d bytes %d are in use: raise maxmemory, or restore fewer segments",
			missing, p.Memory.Needs, most, used)
	}
	return nil
}

// sample adds the beginning of a segment's file.
func (r *Restorer) sample(ctx context.Context, p segment.Partition, s *Step, into *sample) error {
	o := s.Entry.Object
	source := objectfile.New(ctx, r.Objects, o.Path, o.Bytes)
	defer source.Close()
	f, err := parquetfile.Open(source, o.Bytes)
	if err != nil {
		return fmt.Errorf("object %s: %w", o.Path, err)
	}
	if of := r.fileOf(p, s.Number); f.Meta().FileID != of {
		return fmt.Errorf("object %s: %w: want %s, it is %.300s", o.Path, parquetfile.ErrOtherSegment, of, f.Meta().FileID)
	}
	err = f.Read(ctx, func(page *segment.Page) error {
		into.add(page)
		return errSampled
	})
	if errors.Is(err, errSampled) {
		err = nil
	}
	if err != nil {
		return fmt.Errorf("object %s: %w", o.Path, err)
	}
	return nil
}

// sample adds up what messages take.
type sample struct {
	messages int64
	bytes    float64
}

func (s *sample) each() float64 {
	if s.messages == 0 {
		return 0
	}
	return slack * s.bytes / float64(s.messages)
}

// add takes the messages of a page.
func (s *sample) add(p *segment.Page) {
	var before []string
	inNode, node := 0, 0
	for i := range p.Len() {
		lo, hi := p.Fields(i)
		names, named, size := make([]string, 0, hi-lo), 0, entryBytes
		for j := lo; j < hi; j++ {
			names = append(names, string(p.Name(j)))
			named += len(p.Name(j)) + fieldBytes
			size += len(p.Value(j)) + fieldBytes
		}
		if inNode == 0 || inNode == nodeEntries || node+size > nodeBytes {
			s.bytes += float64(nodeOverhead + named)
			inNode, node, before = 0, named, names
		} else if !slices.Equal(names, before) {
			size += named
		}
		s.bytes += float64(size)
		inNode++
		node += size
	}
	s.messages += int64(p.Len())
}

func each[T any](all []T) iter.Seq[T] { return slices.Values(all) }
