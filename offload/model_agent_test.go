//go:build model

package offload

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"time"

	"korvet-offload/segment"
)

// verdict is what becomes of one call of an agent.
type verdict int

const (
	goOn  verdict = iota // it is made
	fails                // it is not made, and an error comes back
	lost                 // it is made, and an error comes back all the same
	dies                 // the process ends before it
)

// agent is a process with a real Worker whose calls are made one by one, each
// when the explorer says so. What a pass has seen so far is its whole state:
// every pass begins with a worker that remembers nothing.
type agent struct {
	worker *Worker
	world  *world
	seed   maphash.Seed

	whole    bool // a pass is one step
	stepwise bool // the scan is over: calls wait from now on
	running  bool
	killed   bool
	at       string // the call that waits
	seen     uint64 // hash of all that the pass has been told
	arrive   chan string
	permit   chan verdict
	ended    chan struct{}
}

func newAgent(cfg Config, seed maphash.Seed, spools *spools) *agent {
	a := &agent{seed: seed}
	p := modelPorts{a}
	a.worker = New(cfg, segment.DefaultLayout(), Ports{Registry: p, Known: p, Manifests: p, Streams: p, Removals: p, Clock: p, Encoding: p, Store: p}, a)
	a.worker.jitter = func() float64 { return 0 }
	a.worker.now = func() (now time.Time) { return a.world.clock() }
	a.worker.token = func() string { a.world.tokens++; return fmt.Sprintf("%016x", a.world.tokens) }
	a.worker.atOnce, a.worker.spools = 1, spools
	return a
}

// begin starts a pass on a world, and returns when the first call waits or
// the pass is over.
func (a *agent) begin(w *world) {
	a.world, a.stepwise, a.killed, a.running, a.seen = w, false, false, true, w.hash(a.seed)
	a.worker.memory = newMemory()
	a.worker.parked = newParking(a.worker.cfg.TickInterval, a.worker.now, a.worker.jitter)
	a.worker.piece = int64(w.pageLen)
	a.arrive, a.permit, a.ended = make(chan string), make(chan verdict), make(chan struct{})
	go func() {
		defer close(a.ended)
		_, _ = a.worker.RunOnce(w.t.Context()) // what fails is left to the next pass
	}()
	a.wait()
}

func (a *agent) wait() {
	select {
	case a.at = <-a.arrive:
	case <-a.ended:
		a.running, a.at = false, ""
	}
}

// step makes the call that waits.
func (a *agent) step(v verdict) {
	a.permit <- v
	if v == dies {
		<-a.ended
		a.running, a.at = false, ""
		return
	}
	a.wait()
}

// stop ends a pass that nobody goes on with.
func (a *agent) stop() {
	if a.running {
		a.step(dies)
	}
}

// What an Observer is told: when the scan is over.

func (a *agent) Planned(Plan)      { a.stepwise = !a.whole }
func (a *agent) Advanced(int, int) {}
func (a *agent) Finished(Outcome)  {}
func (a *agent) Failed(Problem)    {}

var errNoAnswer = fmt.Errorf("no answer: %w", ErrRedisDown)

// call is one call of a port: it waits for its verdict, and what it answers
// becomes a part of what the pass has seen.
func call[T any](ctx context.Context, a *agent, name string, sum func(T) uint64, body func() (T, error)) (got T, err error) {
	v := goOn
	if a.stepwise {
		if a.killed {
			return got, errKilled
		}
		select {
		case a.arrive <- name:
		case <-ctx.Done():
			return got, ctx.Err()
		}
		v = <-a.permit
	}
	switch v {
	case dies:
		a.killed = true
		return got, errKilled
	case fails:
		err = errNoAnswer
	case lost:
		_, _ = body()
		err = errNoAnswer
	default:
		got, err = body()
	}
	a.saw(name, err)
	if err == nil {
		a.seen = a.seen*31 + sum(got)
	}
	return got, err
}

func (a *agent) saw(name string, err error) {
	a.seen = a.seen*31 + maphash.String(a.seed, name)
	if err != nil {
		a.seen = a.seen*31 + maphash.String(a.seed, err.Error())
	}
}

// modelPorts is the world's ports, for one agent. The scan is one step: it
// changes nothing, and what it reads is old by the time it is used, anyhow.
type modelPorts struct{ *agent }

func (p modelPorts) Topics(ctx context.Context) ([]segment.Topic, error) { return p.world.Topics(ctx) }
func (p modelPorts) Known(ctx context.Context) (map[string]string, error) {
	return p.world.Known(ctx)
}

// What only reads the clock, or never changes, is no step of its own.

func (p modelPorts) Now(ctx context.Context) (time.Time, error) { return p.world.Now(ctx) }
func (p modelPorts) CreateOnly(ctx context.Context) (bool, error) {
	return p.world.CreateOnly(ctx)
}

func (p modelPorts) NewEncoder(w io.Writer, s FileOf) Encoder {
	return fakeEncoding{p.world}.NewEncoder(w, s)
}

func (p modelPorts) Check(r io.ReaderAt, size int64, s FileOf) (segment.Contents, error) {
	return fakeEncoding{p.world}.Check(r, size, s)
}

func (p modelPorts) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	return p.world.SwapKnown(ctx, topic, old, new)
}

func (p modelPorts) Each(ctx context.Context, part segment.Partition, take func(field, value string)) (int64, error) {
	return p.world.Each(ctx, part, take)
}

func (p modelPorts) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	if len(q) == 0 {
		return nil, nil
	}
	return call(ctx, p.agent, "read entries", func(a []segment.Peeked) (h uint64) {
		for _, one := range a {
			for _, raw := range one.Raw {
				h = h*31 + maphash.String(p.seed, raw)
			}
		}
		return h
	}, func() ([]segment.Peeked, error) { return p.world.Peek(ctx, q) })
}

func (p modelPorts) Change(ctx context.Context, part segment.Partition, c segment.Change) (bool, error) {
	return call(ctx, p.agent, "swap "+changeName(c), p.bit, func() (bool, error) { return p.world.Change(ctx, part, c) })
}

// changeName says what a change makes of an entry.
func changeName(c segment.Change) string {
	e, err := segment.ParseEntry([]byte(c.New))
	switch {
	case c.New == "":
		return fmt.Sprintf("%s: erase", c.Number)
	case err != nil:
		return fmt.Sprintf("%s: %v", c.Number, err)
	case e.State == segment.Sealed && e.Tier == segment.Remote:
		return fmt.Sprintf("%s: %s %s", c.Number, e.Tier, e.Local)
	}
	return fmt.Sprintf("%s: %s %s copy %d", c.Number, e.State, e.Tier, e.Copy)
}

func (p modelPorts) StreamInfo(ctx context.Context, key string) (StreamInfo, error) {
	return call(ctx, p.agent, "look at stream "+short(key), func(i StreamInfo) uint64 { return maphash.Comparable(p.seed, i) },
		func() (StreamInfo, error) { return p.world.StreamInfo(ctx, key) })
}

func (p modelPorts) Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	return p.world.Sizes(ctx, q)
}

func (p modelPorts) Groups(ctx context.Context, key string) ([]segment.Group, error) {
	return p.world.Groups(ctx, key)
}

func (p modelPorts) Remove(ctx context.Context, key string, is StreamInfo) (bool, error) {
	return call(ctx, p.agent, "remove stream "+short(key), p.bit, func() (bool, error) { return p.world.Remove(ctx, key, is) })
}

func (p modelPorts) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	return call(ctx, p.agent, fmt.Sprintf("trim stream %s to %s", short(key), piece.Last), p.bit,
		func() (bool, error) { return p.world.Trim(ctx, key, piece) })
}

func (p modelPorts) Put(ctx context.Context, u Upload) (ObjectInfo, error) {
	return call(ctx, p.agent, "put "+short(u.Path), p.object, func() (ObjectInfo, error) { return p.world.Put(ctx, u) })
}

func (p modelPorts) Stat(ctx context.Context, path string) (ObjectInfo, error) {
	return call(ctx, p.agent, "look at object "+short(path), p.object, func() (ObjectInfo, error) { return p.world.Stat(ctx, path) })
}

func (p modelPorts) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	return call(ctx, p.agent, "read object "+short(path), func(io.ReadCloser) uint64 { return p.world.hashOf(p.seed, path) },
		func() (io.ReadCloser, error) { return p.world.Open(ctx, path) })
}

func (p modelPorts) Delete(ctx context.Context, paths []string) []error {
	errs, err := call(ctx, p.agent, "delete "+short(fmt.Sprint(paths)), func(errs []error) uint64 { return maphash.String(p.seed, errors.Join(errs...).Error()) },
		func() ([]error, error) { return append(p.world.Delete(ctx, paths), errAnswered), nil })
	if err == nil {
		return errs[:len(paths)]
	}
	errs = nil
	for range paths {
		errs = append(errs, err)
	}
	return errs
}

// errAnswered makes a list of errors never empty.
var errAnswered = errors.New("answered")

func (p modelPorts) bit(b bool) uint64 {
	if b {
		return 1
	}
	return 2
}

func (p modelPorts) object(o ObjectInfo) uint64 {
	return maphash.String(p.seed, o.ETag+o.SHA256) + uint64(o.Size)
}

// Pages steps from page to page, but not where an open range is measured for
// its roll: that ends when it has seen enough.
func (p modelPorts) Pages(key string, from, to segment.ID) PageReader {
	pages := p.world.Pages(key, from, to)
	if to == segment.MaxID() && !from.IsZero() {
		return pages
	}
	return steppedPages{p.agent, short(key), pages}
}

type steppedPages struct {
	*agent
	key   string
	pages PageReader
}

func (r steppedPages) Next(ctx context.Context, into *segment.Page) error {
	_, err := call(ctx, r.agent, "page of "+r.key, func(struct{}) (h uint64) {
		for i := range into.Len() {
			h = h*31 + maphash.Comparable(r.seed, into.ID(i))
		}
		return h
	}, func() (struct{}, error) { return struct{}{}, r.pages.Next(ctx, into) })
	return err
}

func (r steppedPages) Close() error { return r.pages.Close() }
