package s3sink

import (
	"errors"
	"sync"
	"time"
)

// promiseTime is how long an object that the store said it has, and does not
// show, is taken for late. After that it is taken for missing, and put again.
const promiseTime = 10 * time.Minute

// errNotShown is what a look is answered with that contradicts a put.
var errNotShown = errors.New("the store said that it has this object, and does not show it yet")

// notShownHint says what to do about errNotShown.
const notShownHint = "looks lag behind puts there: leave out caches and replicas between this program and the store"

// promised remembers the keys that the store has said are taken, until it shows
// the objects. A look that finds nothing there is wrong, then, and not a reason
// to put the object a second time. It is memory only, and small: a put is
// followed by a look.
type promised struct {
	mu   sync.Mutex
	keys map[string]time.Time
}

// add notes that a put of a key succeeded, or was refused because of what is
// there.
func (p *promised) add(key string, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keys == nil {
		p.keys = map[string]time.Time{}
	}
	for old, at := range p.keys {
		if now.Sub(at) > promiseTime {
			delete(p.keys, old)
		}
	}
	p.keys[key] = now
}

// kept forgets a key: its object was seen, or deleted.
func (p *promised) kept(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.keys, key)
}

// owes says whether the store has yet to show the object of a key.
func (p *promised) owes(key string, now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	at, ok := p.keys[key]
	return ok && now.Sub(at) <= promiseTime
}
