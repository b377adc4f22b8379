package memstore

import (
	"context"
	"slices"

	"korvet-offload/s3sink"
)

// Point is a place where a test can inject a fault: one per verb.
type Point string

// All points there are.
const (
	Put        Point = "put"
	Stat       Point = "stat"
	Open       Point = "open" // OpenRange, too
	List       Point = "list"
	Delete     Point = "delete"
	CreateOnly Point = "create-only"
)

type mode int

const (
	fail mode = iota // nothing happens
	hang             // nothing happens until the context ends
	half             // it happens, and is reported as an error
)

type fault struct {
	mode mode
	err  error
}

// FailNth makes the n-th call (from 1) of a verb return err and do nothing.
func (s *Store) FailNth(p Point, n int, err error) { s.inject(p, n, fault{fail, err}) }

// HangNth makes the n-th call of a verb wait for the end of its context.
func (s *Store) HangNth(p Point, n int) { s.inject(p, n, fault{mode: hang}) }

// HalfNth makes the n-th call of a verb do its work and return err.
func (s *Store) HalfNth(p Point, n int, err error) { s.inject(p, n, fault{half, err}) }

// RefuseDelete makes every deletion of a key fail with err, until err is nil.
func (s *Store) RefuseDelete(key string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused[key] = err
}

// Lose removes an object as if somebody else did, the owner marker too.
func (s *Store) Lose(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

// WithoutConditions makes the store ignore the condition of Put, as some S3
// servers do: it replaces what is there.
func (s *Store) WithoutConditions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sloppy = true
}

// Corrupt changes one bit of an object's content and leaves what is told of
// it as it is.
func (s *Store) Corrupt(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.objects[key]
	o.body = slices.Clone(o.body)
	o.body[len(o.body)/2] ^= 1
	s.objects[key] = o
}

func (s *Store) inject(p Point, n int, f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.faults[p] == nil {
		s.faults[p] = map[int]fault{}
	}
	s.faults[p][n] = f
}

// enter counts a call. The error of a fault that lets nothing happen comes
// back at once, that of a half one as after.
func (s *Store) enter(ctx context.Context, p Point, key string) (after, err error) {
	s.mu.Lock()
	s.calls[p]++
	f, ok := s.faults[p][s.calls[p]]
	s.mu.Unlock()
	switch {
	case !ok:
		return nil, wrap(p, key, s3sink.ClassOther, ctx.Err())
	case f.mode == hang:
		<-ctx.Done()
		return nil, wrap(p, key, s3sink.ClassOther, ctx.Err())
	case f.mode == half:
		return f.err, nil
	}
	return nil, f.err
}
