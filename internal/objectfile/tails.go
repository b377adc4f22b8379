package objectfile

import (
	"container/list"
	"sync"
)

// Tails are the ends of objects that were read last, for readers of the same
// objects to share. It is safe for concurrent use. A nil Tails keeps nothing.
type Tails struct {
	mu     sync.Mutex
	most   int64 // bytes
	free   int64 // of them
	byKey  map[tailKey]*list.Element
	oldest *list.List // of kept, those that were not used for longest in front
}

// tailKey tells an object from all others, and from what its key held before.
type tailKey struct {
	key, version string
	size         int64
}

type kept struct {
	key  tailKey
	tail []byte
}

// NewTails keeps up to so many bytes of tails. Their keys are not counted.
func NewTails(bytes int64) *Tails {
	return &Tails{most: bytes, free: bytes, byKey: map[tailKey]*list.Element{}, oldest: list.New()}
}

func (t *Tails) get(k tailKey) []byte {
	if t == nil || k.version == "" {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.byKey[k]
	if !ok {
		return nil
	}
	t.oldest.MoveToBack(e)
	return e.Value.(kept).tail
}

// put keeps a tail that nobody writes to any more, and gives up as many others
// as that takes. A shorter one of the same object gives way.
func (t *Tails) put(k tailKey, tail []byte) {
	if t == nil || k.version == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if e, ok := t.byKey[k]; ok {
		if len(e.Value.(kept).tail) >= len(tail) {
			return
		}
		t.drop(e)
	}
	need := int64(len(tail))
	if need > t.most {
		return
	}
	for t.free < need {
		t.drop(t.oldest.Front())
	}
	t.free -= need
	t.byKey[k] = t.oldest.PushBack(kept{k, tail})
}

func (t *Tails) drop(e *list.Element) {
	k := t.oldest.Remove(e).(kept)
	delete(t.byKey, k.key)
	t.free += int64(len(k.tail))
}
