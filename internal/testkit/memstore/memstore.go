// Package memstore is an object store in memory with faults on demand. It obeys
// the same conformance suite as the real stores, and fails where a test says:
// the n-th call of a verb returns an error, hangs until its context ends, or
// does its work and reports an error all the same.
package memstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"korvet-offload/s3sink"
)

type object struct {
	info s3sink.Info
	body []byte
}

// Store is the store. Make it with New.
type Store struct {
	*state
	owner s3sink.Owner

	claiming   sync.Mutex
	claimed    bool
	createOnly bool
}

// state is what several Stores over the same objects share.
type state struct {
	mu      sync.Mutex
	objects map[string]object
	faults  map[Point]map[int]fault
	calls   map[Point]int
	refused map[string]error // by key
	sloppy  bool
}

var _ s3sink.Store = (*Store)(nil)

// New makes an empty store that belongs to nobody yet.
func New(owner s3sink.Owner) *Store {
	return &Store{owner: owner, state: &state{
		objects: map[string]object{}, faults: map[Point]map[int]fault{}, calls: map[Point]int{}, refused: map[string]error{},
	}}
}

// As gives another process's view of the same objects, faults and counts.
func (s *Store) As(owner s3sink.Owner) *Store { return &Store{owner: owner, state: s.state} }

// Calls says how often a verb was called.
func (s *Store) Calls(p Point) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[p]
}

// Keys lists what is stored, the owner marker too.
func (s *Store) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// wrap makes the error that a real store would return; nil stays nil.
func wrap(p Point, key string, class s3sink.Class, err error) error {
	if err == nil {
		return nil
	}
	op := string(p)
	if p == Open {
		op = "get"
	}
	return &s3sink.Error{Op: op, Bucket: "memory:", Key: key, Class: class, Err: err}
}

// Put stores an object; see s3sink.Store.
func (s *Store) Put(ctx context.Context, u s3sink.Upload) (s3sink.Info, error) {
	if err := s3sink.CheckUpload(u); err != nil {
		return s3sink.Info{}, wrap(Put, "", s3sink.ClassInvalid, err)
	}
	after, err := s.enter(ctx, Put, u.Key)
	if err != nil {
		return s3sink.Info{}, err
	}
	body, err := read(u)
	if err != nil {
		return s3sink.Info{}, wrap(Put, u.Key, s3sink.ClassInvalid, err)
	}
	info := s3sink.Info{
		Key: u.Key, Size: u.Size, ETag: u.SHA256[:32], SHA256: u.SHA256,
		Meta: maps.Clone(u.Meta), ModTime: time.Now(),
	}
	if !s.store(u, object{info, body}) {
		return s3sink.Info{}, wrap(Put, u.Key, s3sink.ClassExists, s3sink.ErrExists)
	}
	return info, after
}

func (s *Store) store(u s3sink.Upload, o object) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.objects[u.Key]; taken && (!s.sloppy || u.Unconditional) {
		return false
	}
	s.objects[u.Key] = o
	return true
}

func read(u s3sink.Upload) ([]byte, error) {
	body := make([]byte, u.Size)
	if u.Size > 0 {
		if _, err := io.ReadFull(io.NewSectionReader(u.Body, 0, u.Size), body); err != nil {
			return nil, fmt.Errorf("read body: %w", err)
		}
	}
	if sum := sha256.Sum256(body); hex.EncodeToString(sum[:]) != u.SHA256 {
		return nil, fmt.Errorf("body does not have the SHA-256 that was announced")
	}
	return body, nil
}

func (s *Store) find(p Point, key string) (object, error) {
	if err := s3sink.CheckKey(key); err != nil {
		return object{}, wrap(p, "", s3sink.ClassInvalid, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	if !ok {
		return object{}, wrap(p, key, s3sink.ClassMissing, s3sink.ErrMissing)
	}
	return o, nil
}

// Stat describes an object; see s3sink.Store.
func (s *Store) Stat(ctx context.Context, key string) (s3sink.Info, error) {
	after, err := s.enter(ctx, Stat, key)
	if err != nil {
		return s3sink.Info{}, err
	}
	o, err := s.find(Stat, key)
	if err != nil {
		return s3sink.Info{}, err
	}
	return o.info, after
}

// Open reads a whole object; see s3sink.Store.
func (s *Store) Open(ctx context.Context, key string) (io.ReadCloser, error) {
	return s.OpenRange(ctx, key, 0, 1<<62)
}

// OpenRange reads a part of an object; see s3sink.Store.
func (s *Store) OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error) {
	if offset < 0 || n < 0 {
		return nil, wrap(Open, "", s3sink.ClassInvalid, fmt.Errorf("offset or length is negative"))
	}
	after, err := s.enter(ctx, Open, key)
	if err != nil {
		return nil, err
	}
	o, err := s.find(Open, key)
	if err != nil {
		return nil, err
	}
	from := min(offset, int64(len(o.body)))
	return io.NopCloser(bytes.NewReader(o.body[from:min(from+n, int64(len(o.body)))])), after
}

// List gives objects in order; see s3sink.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[s3sink.Info, error] {
	return func(yield func(s3sink.Info, error) bool) {
		after, err := s.enter(ctx, List, "")
		if err != nil {
			yield(s3sink.Info{}, err)
			return
		}
		for _, key := range s.Keys() {
			if !strings.HasPrefix(key, prefix) || key == s3sink.MarkerKey {
				continue
			}
			o, err := s.find(List, key)
			if err != nil {
				continue // removed since
			}
			if !yield(s3sink.Info{Key: key, Size: o.info.Size, ETag: o.info.ETag, ModTime: o.info.ModTime}, nil) {
				return
			}
		}
		if after != nil {
			yield(s3sink.Info{}, after)
		}
	}
}

// Delete removes objects; see s3sink.Store. It is one call, however many keys
// there are; a fault of it is the answer of each.
func (s *Store) Delete(ctx context.Context, keys []string) []error {
	errs := make([]error, len(keys))
	after, failed := s.enter(ctx, Delete, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, key := range keys {
		if err := s3sink.CheckDelete(key); err != nil {
			errs[i] = wrap(Delete, "", s3sink.ClassInvalid, err)
			continue
		}
		if errs[i] = failed; failed == nil {
			errs[i] = s.remove(key, after)
		}
	}
	return errs
}

// remove is called with the lock held.
func (s *Store) remove(key string, after error) error {
	if err := s.refused[key]; err != nil {
		return err
	}
	delete(s.objects, key)
	return after
}

// Close has nothing to do.
func (s *Store) Close() {}

// Check finds nothing wrong.
func (s *Store) Check(context.Context) []s3sink.Problem { return nil }

// CheckOwner reads the owner marker; see s3sink.Store.
func (s *Store) CheckOwner(ctx context.Context) error { return s3sink.ReadOwner(ctx, s, s.owner) }

// CreateOnly claims the store; see s3sink.Store. The puts and the reads of it
// count as such.
func (s *Store) CreateOnly(ctx context.Context) (bool, error) {
	after, err := s.enter(ctx, CreateOnly, s3sink.MarkerKey)
	if err != nil {
		return false, err
	}
	s.claiming.Lock()
	defer s.claiming.Unlock()
	if !s.claimed {
		if s.createOnly, err = s3sink.ClaimOwner(ctx, s, s.owner, time.Now()); err != nil {
			return false, err
		}
		s.claimed = true
	}
	return s.createOnly, after
}
