package lease

import (
	"context"
	"time"

	"github.com/redis/rueidis"
)

// leaveTime is how long an instance may take to remove its record when it
// stops. Without an answer by then the record goes stale.
const leaveTime = 5 * time.Second

// View is what an instance sees of the others, and of itself.
type View struct {
	Self    string   // this instance's id
	Members []Member // those that run, this one among them if it could write
	Held    []int    // the leases that this instance holds
	Err     error    // why the members, or leases that are free, could not be asked for; nil = they could
}

// Presence shows that an instance with a single lease is there. It is for
// showing alone: nothing depends on it.
type Presence struct {
	lease *Lease
	book  book
}

// NewPresence is the presence of an instance with that lease. What self says of
// leases and times is filled in.
func NewPresence(client rueidis.Client, l *Lease, self Member) *Presence {
	return newPresence(newScripts(client), l, self)
}

func newPresence(r roster, l *Lease, self Member) *Presence {
	c := l.cfg
	c.Shards = 1
	return &Presence{lease: l, book: book{cfg: c, redis: r, self: self}}
}

// Run keeps the record until ctx ends, and removes it then. told is called
// after every look, by this goroutine.
func (p *Presence) Run(ctx context.Context, told func(View)) {
	tick := time.NewTicker(p.book.cfg.lookEvery())
	defer tick.Stop()
	for {
		var held []int
		if p.lease.Held() {
			held = []int{0}
		}
		if lends := p.lease.Lends(); p.book.due(held, lends) {
			members, err := p.book.write(ctx, held, lends)
			told(View{Self: p.book.self.ID, Members: members, Held: held, Err: err})
		}
		select {
		case <-ctx.Done():
			p.goodbye(ctx)
			return
		case <-tick.C:
		}
	}
}

// goodbye removes the record after ctx has ended. Redis may be gone; the record
// is stale soon.
func (p *Presence) goodbye(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	_ = p.book.leave(ctx)
}

// lookEvery is from one look at the other instances to the next: those that come
// and go are seen within seconds.
func (c Config) lookEvery() time.Duration { return min(c.interval(), 2*time.Second) }
