package ops

import "sync"

// Health is what the probes say. It is made not ready and alive, and is safe
// for concurrent use.
type Health struct {
	mu       sync.Mutex
	notReady string // why not; "" = ready
	alive    func() error
}

// NewHealth makes a Health that is alive as long as alive returns nil, which
// is asked at each probe, and not ready until told.
func NewHealth(alive func() error) *Health {
	return &Health{notReady: "starting", alive: alive}
}

// Ready says that Redis and the store have answered.
func (h *Health) Ready() { h.set("") }

// NotReady says why work can't be done.
func (h *Health) NotReady(why string) { h.set(why) }

func (h *Health) set(why string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notReady = why
}

// reason is why the program is not ready; "" when it is.
func (h *Health) reason() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notReady
}
