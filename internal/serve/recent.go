package serve

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Recent remembers for a while what was looked up, so that many who ask the same
// cost one look. It remembers a bounded number of answers, and no errors. It is
// safe for concurrent use.
type Recent[K comparable, V any] struct {
	age  time.Duration
	most int
	load func(context.Context, K) (V, error)
	now  func() time.Time

	mu  sync.Mutex
	all map[K]*answer[V]
}

// answer is one that is there, or on its way: who holds turn looks.
type answer[V any] struct {
	turn  chan struct{}
	value V
	at    time.Time // zero = there is none; guarded by turn
	used  time.Time // guarded by Recent.mu
}

// NewRecent makes one whose answers are at most so old, and of which there are
// so many.
func NewRecent[K comparable, V any](age time.Duration, most int, load func(context.Context, K) (V, error)) *Recent[K, V] {
	return &Recent[K, V]{age: age, most: most, load: load, now: time.Now, all: map[K]*answer[V]{}}
}

// Get is the answer for a key.
func (r *Recent[K, V]) Get(ctx context.Context, key K) (V, error) {
	a := r.answer(key)
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		var none V
		return none, fmt.Errorf("wait for a look of somebody else: %w", context.Cause(ctx))
	}
	if !a.at.IsZero() && r.now().Sub(a.at) < r.age {
		return a.value, nil
	}
	at := r.now() // of before, so that it is not older than it seems
	v, err := r.load(ctx, key)
	if err == nil {
		a.value, a.at = v, at
	}
	return v, err
}

func (r *Recent[K, V]) answer(key K) *answer[V] {
	r.mu.Lock()
	defer r.mu.Unlock()
	a := r.all[key]
	if a == nil {
		if len(r.all) >= r.most {
			r.drop()
		}
		a = &answer[V]{turn: make(chan struct{}, 1)}
		r.all[key] = a
	}
	a.used = r.now()
	return a
}

// drop forgets the answer that nobody has asked for for longest.
func (r *Recent[K, V]) drop() {
	var oldest K
	var at time.Time
	for key, a := range r.all {
		if at.IsZero() || a.used.Before(at) {
			oldest, at = key, a.used
		}
	}
	delete(r.all, oldest)
}
