package tieredlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// FromRanges opens objects by reading ranges of them. from says that an object is
// not there by an error that wraps ErrMissing.
func FromRanges(from objectfile.Ranges) Objects { return ranges{from} }

type ranges struct{ from objectfile.Ranges }

func (r ranges) OpenObject(ctx context.Context, o segment.Object) (Object, error) {
	source := &source{from: r.from}
	return opened{objectfile.New(ctx, source, o.Path, o.Bytes), source}, nil
}

// opened is a Reader, with all that it can do, which knows what its source has
// said: who reads the file calls any error damage.
type opened struct {
	*objectfile.Reader
	source *source
}

// Cause is the first error of the source; nil where there was none.
func (o opened) Cause() error {
	o.source.mu.Lock()
	defer o.source.mu.Unlock()
	return o.source.err
}

// source remembers the first error.
type source struct {
	from objectfile.Ranges
	mu   sync.Mutex
	err  error
}

func (s *source) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil && err != nil && err != io.EOF { //nolint:errorlint // the bare one is the end
		s.err = err
	}
}

// OpenRange implements objectfile.Ranges.
func (s *source) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	body, err := s.from.OpenRange(ctx, key, offset, n)
	s.note(err)
	if err != nil {
		return nil, err
	}
	return noted{body, s}, nil
}

type noted struct {
	io.ReadCloser
	source *source
}

func (n noted) Read(b []byte) (int, error) {
	got, err := n.ReadCloser.Read(b)
	n.source.note(err)
	return got, err
}

// object reads what is left of the segment from its object.
func (r *reading) object(ctx context.Context) error {
	e := r.segment.Entry
	if e.Object == nil {
		return r.lost(fmt.Errorf("%w: it is REMOTE, and names no object", segment.ErrIllegalEntry))
	}
	last := segment.MaxID()
	if e.Count >= 0 && !e.LastID.IsZero() {
		last = e.LastID
	}
	from, to, ok := r.rest(e.FirstID, last)
	if !ok || e.Count == 0 {
		return nil
	}
	if r.passOver(from, to) {
		return nil
	}
	if r.log.ports.Objects == nil {
		return ErrNoStore
	}
	err := r.readObject(ctx, *e.Object, from, to)
	switch {
	case err == nil, errors.Is(err, errEnough):
		return err
	case !unreadable(err):
		return fmt.Errorf("object %s: %w", e.Object.Path, err)
	case !r.unmoved:
		return errMoved // it may have another object by now, or be deleted
	}
	return r.lost(fmt.Errorf("object %s: %w", e.Object.Path, err))
}

// passOver leaves out a whole object without opening it, where its count says
// that it holds nothing but what is to be left out.
func (r *reading) passOver(from, to segment.ID) bool {
	e := r.segment.Entry
	if r.skip < e.Count || e.Count <= 0 || e.Local != segment.Gone || r.begun || e.LastID.IsZero() || from != e.FirstID || to != e.LastID {
		return false
	}
	r.skip -= e.Count
	return true
}

func (r *reading) readObject(ctx context.Context, o segment.Object, from, to segment.ID) error {
	source, err := r.log.ports.Objects.OpenObject(ctx, o)
	if err != nil {
		return err
	}
	defer source.Close()
	if err = r.readOpened(ctx, source, o.Bytes, from, to); err == nil || errors.Is(err, errEnough) {
		return err
	}
	if told, ok := source.(interface{ Cause() error }); ok && told.Cause() != nil {
		return told.Cause() // what could not be read is not damaged
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && !unreadable(err) { // the store has said nothing against it, and no more came
		return fmt.Errorf("%w: it has fewer bytes than its entry says: %w", parquetfile.ErrDamaged, err)
	}
	return err
}

func (r *reading) readOpened(ctx context.Context, source io.ReaderAt, size int64, from, to segment.ID) error {
	f, err := parquetfile.Open(source, size)
	if err != nil {
		return err
	}
	if err := r.identify(f.Meta()); err != nil {
		return err
	}
	return readFile(ctx, f, r.query.Reverse, from, to, r.give)
}

// identify checks that a file is that of the segment, and holds what the entry says.
func (r *reading) identify(m parquetfile.Meta) error {
	want := parquetfile.FileID{StreamKey: r.log.layout.StreamKey(r.partition), Segment: r.segment.Number}
	if m.FileID != want {
		return fmt.Errorf("%w: it is %.300s", parquetfile.ErrOtherSegment, m.FileID)
	}
	e := r.segment.Entry
	if said := (segment.Contents{FirstID: e.FirstID, LastID: e.LastID, Count: e.Count}); e.Count != segment.NoCount && m.Contents != said {
		return fmt.Errorf("%w: the file holds %d messages from %s to %s, the entry says %d from %s to %s",
			ErrContradiction, m.Count, m.FirstID, m.LastID, said.Count, said.FirstID, said.LastID)
	}
	return nil
}

func readFile(ctx context.Context, f *parquetfile.File, reverse bool, from, to segment.ID, give func(*segment.Page, int, int) error) error {
	b := parquetfile.Between{From: from, To: to}
	if reverse {
		return f.ReadBack(ctx, b, give)
	}
	return f.ReadBetween(ctx, b, give)
}

// ReadFile gives the messages of one file that a query asks for, as Log.Read does.
func ReadFile(ctx context.Context, f *parquetfile.File, q Query, fn func(page *segment.Page, i int) error) error {
	if err := q.Validate(); err != nil {
		return err
	}
	o := output{query: q, skip: q.Skip, fn: fn}
	from, to, ok := o.rest(segment.ID{}, segment.MaxID())
	if !ok {
		return nil
	}
	return o.ended(readFile(ctx, f, q.Reverse, from, to, o.give))
}
