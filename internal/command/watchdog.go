package command

import (
	"fmt"
	"sync"
	"time"
)

// watchdog knows how long nothing has moved in the pass that is under way. A
// pass begins with its first call of a port, and ends when rest is called.
// What moves it on is a call of a port that returns, a page, and a piece of a
// body, of an object or of a manifest. Everything that waits for a server has
// a deadline of its own; what is left for the watchdog is what has none: a
// file system that hangs, a deadlock, an endless loop.
//
// Safe for concurrent use.
type watchdog struct {
	limit time.Duration    // for so long nothing may move
	now   func() time.Time // of this host, monotonic

	mu    sync.Mutex
	moved time.Time // when something moved last; zero = no pass is under way
	heard time.Time // when the store answered last, or took a piece of a body
	calls map[*portCall]struct{}
}

// portCall is a call of a port that is under way.
type portCall struct {
	what  string
	since time.Time
	store bool // it is the store that is called
}

// silenceLimit is how long a store may be asked without an answer before it
// passes for down. The call itself goes on: it has deadlines of its own.
const silenceLimit = 30 * time.Second

func newWatchdog(limit time.Duration) *watchdog {
	return &watchdog{limit: limit, now: time.Now, calls: map[*portCall]struct{}{}}
}

// call notes that a port is called, for something that has that name. The
// function that it returns notes that the call has returned.
func (d *watchdog) call(verb, name string) (returned func()) {
	return d.begin(&portCall{what: verb + " " + name})
}

// storeCall is call where the port is the store.
func (d *watchdog) storeCall(verb, name string) (returned func()) {
	end := d.begin(&portCall{what: verb + " " + name, store: true})
	return func() {
		d.hears()
		end()
	}
}

func (d *watchdog) begin(c *portCall) (returned func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c.since = d.now()
	d.moved = c.since
	d.calls[c] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.calls, c)
		d.move()
	}
}

// moves notes that something has moved in a call that is under way.
func (d *watchdog) moves() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.move()
}

// hears notes that the store has answered, or taken a piece of a body.
func (d *watchdog) hears() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.move()
	d.heard = d.now()
}

// move leaves the time between two passes alone: a transport may read a body
// for a moment longer than its call lasts.
func (d *watchdog) move() {
	if !d.moved.IsZero() {
		d.moved = d.now()
	}
}

// rest ends the pass: until the next call nothing need move.
func (d *watchdog) rest() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.moved = time.Time{}
}

// stalled says where a pass hangs; nil if none does.
func (d *watchdog) stalled() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.moved.IsZero() {
		return nil
	}
	still := d.now().Sub(d.moved)
	if still <= d.limit {
		return nil
	}
	return fmt.Errorf("no progress for %s %s (korvet.storage.offload.stall-timeout)", still.Round(time.Second), d.where())
}

// silent says that the store is being asked and does not answer; nil if it does,
// or is not asked.
func (d *watchdog) silent() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := d.oldest(func(c *portCall) bool { return c.store })
	if oldest == nil {
		return nil
	}
	since := oldest.since
	if d.heard.After(since) {
		since = d.heard
	}
	if still := d.now().Sub(since); still > silenceLimit {
		return fmt.Errorf("the store has not answered for %s to %q", still.Round(time.Second), oldest.what)
	}
	return nil
}

// where names the call that has been under way for longest.
func (d *watchdog) where() string {
	oldest := d.oldest(func(*portCall) bool { return true })
	if oldest == nil {
		return "between two steps of a pass"
	}
	text := fmt.Sprintf("in %q, begun %s ago", oldest.what, d.now().Sub(oldest.since).Round(time.Second))
	if others := len(d.calls) - 1; others > 0 {
		text += fmt.Sprintf(", and in %d more", others)
	}
	return text
}

// oldest is the call that has been under way for longest, of those that are
// asked for; nil if there is none.
func (d *watchdog) oldest(which func(*portCall) bool) (oldest *portCall) {
	for c := range d.calls {
		if which(c) && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	return oldest
}
