package s3sink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

// MarkerKey is the key of the owner marker, which says to which namespace the
// objects below a root belong.
const MarkerKey = "_korvet_offload.json"

// maxMarker is more than any marker is long, in bytes.
const maxMarker = 64 << 10

// marker is the content of the owner marker, version 1.
type marker struct {
	V         int       `json:"v"`
	Namespace string    `json:"namespace"`
	Cluster   string    `json:"cluster,omitempty"`
	Created   time.Time `json:"created"`
}

// claim remembers what ClaimOwner has found.
type claim struct {
	turn       turn
	done       bool
	createOnly bool
}

func newClaim() claim { return claim{turn: newTurn()} }

// once asks the store until it has answered, then never again.
func (c *claim) once(ctx context.Context, s Store, o Owner, now time.Time) (bool, error) {
	if err := c.turn.take(ctx); err != nil {
		return false, err
	}
	defer c.turn.give()
	if c.done {
		return c.createOnly, nil
	}
	createOnly, err := ClaimOwner(ctx, s, o, now)
	c.done, c.createOnly = err == nil, createOnly
	return createOnly, err
}

// CreateOnly claims the root and tries the store's conditional puts; see Store.
func (b *bucket) CreateOnly(ctx context.Context) (bool, error) {
	createOnly, err := b.claim.once(ctx, b, b.opt.Owner, b.opt.Now())
	b.promised.kept(MarkerKey) // it was seen, or that it is there is enough
	return createOnly, at("s3://"+b.name, b.path(MarkerKey), err)
}

// CheckOwner reads the owner marker; see Store.
func (b *bucket) CheckOwner(ctx context.Context) error {
	return at("s3://"+b.name, b.path(MarkerKey), ReadOwner(ctx, b, b.opt.Owner))
}

// at adds the place to an error of Owner.accepts, which does not know it.
func at(bucket, key string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Bucket == "" {
		e.Bucket, e.Key = bucket, key
	}
	return err
}

// ReadOwner refuses a root whose owner marker names another namespace, or
// another cluster. It is what the stores' CheckOwner does.
func ReadOwner(ctx context.Context, s Store, o Owner) error {
	_, err := readMarker(ctx, s, o)
	if class := ClassOf(err); class == ClassMissing || class == ClassDenied {
		return nil
	}
	return err
}

// ClaimOwner puts the owner marker of o unless there is one, refuses a marker
// of another namespace or cluster, and finds out whether the store obeys the condition of
// a put. For that the very bytes that are there are put again: a store that
// obeys refuses, and in one that does not nothing changes. It is what the
// stores' CreateOnly does at its first call.
func ClaimOwner(ctx context.Context, s Store, o Owner, now time.Time) (bool, error) {
	if o.Namespace == "" {
		return false, errors.New("claim root: there is no namespace to claim it for")
	}
	content, err := haveMarker(ctx, s, o, now)
	if err != nil {
		if errors.Is(err, ErrUnsupported) {
			return false, putMarkerAnyway(ctx, s, o, now)
		}
		return false, err
	}
	_, err = s.Put(ctx, markerUpload(content))
	switch {
	case errors.Is(err, ErrExists):
		return true, nil
	case err == nil, errors.Is(err, ErrUnsupported):
		return false, nil
	}
	return false, err
}

// haveMarker returns the marker's bytes, and puts one if there is none.
func haveMarker(ctx context.Context, s Store, o Owner, now time.Time) ([]byte, error) {
	content, err := readMarker(ctx, s, o)
	if class := ClassOf(err); class == ClassMissing || class == ClassDenied {
		// Denied may just mean missing, to one who may not list.
		return putMarker(ctx, s, o, now)
	}
	return content, err
}

// putMarker puts a new marker, and reads the one that another process put a
// moment sooner.
func putMarker(ctx context.Context, s Store, o Owner, now time.Time) ([]byte, error) {
	content, err := o.marker(ctx, now)
	if err != nil {
		return nil, err
	}
	_, err = s.Put(ctx, markerUpload(content))
	if errors.Is(err, ErrExists) {
		return readMarker(ctx, s, o)
	}
	return content, err
}

// putMarkerAnyway is for stores without conditional puts. Two processes that do
// this at once both believe to own the root; each finds out at its next start.
func putMarkerAnyway(ctx context.Context, s Store, o Owner, now time.Time) error {
	content, err := o.marker(ctx, now)
	if err != nil {
		return err
	}
	u := markerUpload(content)
	u.Unconditional = true
	_, err = s.Put(ctx, u)
	if errors.Is(err, ErrExists) {
		_, err = readMarker(ctx, s, o)
	}
	return err
}

func (o Owner) marker(ctx context.Context, now time.Time) ([]byte, error) {
	m := marker{V: 1, Namespace: o.Namespace, Created: now.UTC().Truncate(time.Second)}
	if o.Cluster != nil {
		var err error
		if m.Cluster, err = o.Cluster.ID(ctx); errors.Is(err, ErrAnotherRoot) {
			return nil, &Error{Op: "claim", Key: MarkerKey, Class: ClassInvalid, Err: err}
		} else if err != nil {
			return nil, fmt.Errorf("claim root: %w", err)
		}
	}
	content, err := json.Marshal(m)
	if err != nil {
		panic(err) // there is nothing in it that can't be written
	}
	return append(content, '\n'), nil
}

func markerUpload(content []byte) Upload {
	sum := sha256.Sum256(content)
	return Upload{Key: MarkerKey, Body: bytes.NewReader(content), Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}
}

// readMarker returns the marker's bytes if it is one of o's.
func readMarker(ctx context.Context, s Store, o Owner) ([]byte, error) {
	content, err := markerBytes(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := o.accepts(content); err != nil {
		return content, err
	}
	return content, o.acceptsCluster(ctx, content)
}

func markerBytes(ctx context.Context, s Store) ([]byte, error) {
	body, err := s.Open(ctx, MarkerKey)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxMarker))
}

// OwnedSince is when the owner marker of a root was put; the zero time where
// there is no marker, or one that does not say.
func OwnedSince(ctx context.Context, s Store) (time.Time, error) {
	body, err := s.Open(ctx, MarkerKey)
	if ClassOf(err) == ClassMissing {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	defer body.Close()
	var m marker
	if err := json.NewDecoder(io.LimitReader(body, maxMarker)).Decode(&m); err != nil {
		return time.Time{}, fmt.Errorf("read when the root was claimed: %w", err)
	}
	return m.Created, nil
}

// accepts says why a root with this marker must not be written to.
func (o Owner) accepts(content []byte) error {
	fault := func(hint, format string, args ...any) error {
		return &Error{Op: "claim", Key: MarkerKey, Class: ClassInvalid, Hint: hint, Err: fmt.Errorf(format, args...)}
	}
	var m marker
	switch err := json.Unmarshal(content, &m); {
	case err != nil || m.V == 0 || m.Namespace == "":
		return fault("choose another prefix in remote-path, or remove the object if it is a mistake", "it is no owner marker")
	case m.V != 1:
		return fault("use the version of this program that wrote it, or a newer one", "it is an owner marker of version %d", m.V)
	case m.Namespace != o.Namespace:
		return fault("give each namespace a prefix of its own in remote-path; if this one has been renamed, remove the marker",
			"the root belongs to namespace %q, this is namespace %q", m.Namespace, o.Namespace)
	}
	return nil
}

func newSHA256() hash.Hash { return sha256.New() }
