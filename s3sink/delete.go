package s3sink

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
)

const (
	// maxBatch is how many keys S3 takes in one request.
	maxBatch = 1000
	// deletesAtOnce is how many objects are deleted at a time, each by a request
	// of its own, where there are no batches.
	deletesAtOnce = 8
)

// errNoAnswer is the answer of a key that the store has said nothing of.
var errNoAnswer = errors.New("nothing is known of what came of it")

// answers collects what came of each of several keys.
type answers struct {
	mu sync.Mutex
	of map[string]error
}

func (a *answers) set(key string, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of[key] = err
}

func (a *answers) get(key string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.of[key]
}

// deleteEach calls remove with the keys that check accepts, each once, and
// returns the answers in the order of the keys. A key without an answer has
// errNoAnswer, so that nothing passes for deleted by an oversight.
func deleteEach(keys []string, check func(string) error, remove func(keys []string, a *answers)) []error {
	a := &answers{of: make(map[string]error, len(keys))}
	todo := make([]string, 0, len(keys))
	for _, key := range keys {
		if _, twice := a.of[key]; twice {
			continue
		}
		if a.of[key] = check(key); a.of[key] == nil {
			a.of[key] = errNoAnswer
			todo = append(todo, key)
		}
	}
	if len(todo) > 0 {
		remove(todo, a)
	}
	in := make([]error, len(keys))
	for i, key := range keys {
		in[i] = a.of[key]
	}
	return in
}

// CheckDelete says why an object must not be deleted; see Store. It is here for
// other implementations of Store.
func CheckDelete(key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	// A deeper one is the marker of a root within this root.
	if path.Base(key) == MarkerKey {
		return fmt.Errorf("key %q is that of an owner marker", key)
	}
	return nil
}

// Delete removes objects; see Store. In a versioned bucket, and so in one with
// object lock, that only puts a delete marker over each of them, which no
// lock refuses: the versions stay, and are paid for, until a lifecycle rule of
// the bucket (NoncurrentVersionExpiration) removes them.
//
// Only an answer that names a key as deleted counts as such.
func (b *bucket) Delete(ctx context.Context, keys []string) []error {
	return deleteEach(keys, b.checkDelete, func(keys []string, a *answers) {
		err := b.deleteAll(ctx, keys, a)
		for _, key := range keys {
			if errors.Is(a.get(key), errNoAnswer) {
				a.set(key, b.withKey(ctx, key, err))
			}
		}
		b.confirmMissing(ctx, keys, a)
		for _, key := range keys {
			if a.get(key) == nil {
				b.promised.kept(key)
			}
		}
	})
}

func (b *bucket) checkDelete(key string) error {
	err := CheckDelete(key)
	if n := len(b.path(key)); err == nil && n > maxKey {
		err = fmt.Errorf("key and prefix are %d bytes; S3 takes %d", n, maxKey)
	}
	if err != nil {
		return b.invalid("delete", err)
	}
	return nil
}

// deleteAll returns the error of the store, rather than of single objects,
// that made it stop; the keys left without an answer have that one.
func (b *bucket) deleteAll(ctx context.Context, keys []string, a *answers) error {
	for batch := range slices.Chunk(keys, maxBatch) {
		if err := b.deleteSome(ctx, batch, a); err != nil {
			return err
		}
	}
	return nil
}

func (b *bucket) deleteSome(ctx context.Context, keys []string, a *answers) error {
	if len(keys) > 1 && !b.noBatch.Load() {
		var err error
		if keys, err = b.deleteBatch(ctx, keys, a); err != nil {
			return err
		}
	}
	return b.deleteSingly(ctx, keys, a)
}

// deleteSingly sends a request for each key. It stops early when it is the
// store that fails.
func (b *bucket) deleteSingly(ctx context.Context, keys []string, a *answers) error {
	var next atomic.Int64
	var down outage
	var wg sync.WaitGroup
	for range min(deletesAtOnce, len(keys)) {
		wg.Go(func() {
			for ctx.Err() == nil && down.why() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(keys) {
					return
				}
				err := b.deleteOne(ctx, keys[i])
				a.set(keys[i], err)
				down.note(err)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return err
	}
	return down.why()
}

func (b *bucket) deleteOne(ctx context.Context, key string) error {
	return b.do(ctx, request{op: "delete", key: key}, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		return c.RemoveObject(ctx, b.name, b.path(key), minio.RemoveObjectOptions{})
	})
}

// confirmMissing looks whether the bucket is there when the store has said of
// objects that they are not: the answer 404 does not tell the two apart.
func (b *bucket) confirmMissing(ctx context.Context, keys []string, a *answers) {
	missing := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return ClassOf(a.get(key)) != ClassMissing })
	if len(missing) == 0 {
		return
	}
	err := b.headBucket(ctx, "check")
	for _, key := range missing {
		if err == nil {
			a.set(key, nil)
		} else {
			a.set(key, b.withKey(ctx, key, err))
		}
	}
}

// withKey makes the error of one key of what has stopped them all.
func (b *bucket) withKey(ctx context.Context, key string, err error) error {
	r := request{op: "delete", key: key}
	if ended := ctx.Err(); ended != nil {
		return b.classify(ctx, r, ended, new(exchange))
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return b.fault(r, e.Class, e.Hint, e.Err)
	}
	return b.fault(r, ClassUnavailable, "", errNoAnswer)
}

// outage finds out that the store fails, and not single objects.
type outage struct {
	mu    sync.Mutex
	inRow int
	err   error
}

// note takes the answer to one request. What may be the fault of one object
// must come several times without a success in between.
func (o *outage) note(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch ClassOf(err) {
	case ClassNoBucket, ClassCredentials, ClassThrottled, ClassClockSkew, ClassWrongRegion:
		o.err = err
	case ClassUnavailable, ClassTimeout:
		if o.inRow++; o.inRow >= deletesAtOnce {
			o.err = err
		}
	default:
		o.inRow = 0
	}
}

func (o *outage) why() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}
