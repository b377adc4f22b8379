package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// errDead is what a process that was killed would have got from its calls.
var errDead = errors.New("killed")

// death lets so many calls of ports through, and none after them. after: the last
// one is made, and its answer is lost.
type death struct {
	mu    sync.Mutex
	calls int
	after bool
	once  bool // later calls are made again
	did   bool
}

func (d *death) call(do func() error) error {
	d.mu.Lock()
	left := d.calls
	d.calls--
	d.did = d.did || left <= 0
	d.mu.Unlock()
	if left < 0 && !d.once || left == 0 && !d.after {
		return errDead
	}
	if err := do(); err != nil || left != 0 {
		return err
	}
	return errDead
}

// mortal are ports that end so.
type mortal struct {
	*death
	offload.Manifests
	offload.Streams
	offload.Removals
	offload.Clock
	storePorts
}

func (m mortal) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (n int64, err error) {
	err = m.call(func() (err error) { n, err = m.Manifests.Each(ctx, p, take); return err })
	return n, err
}

func (m mortal) Peek(ctx context.Context, q []segment.Peek) (a []segment.Peeked, err error) {
	err = m.call(func() (err error) { a, err = m.Manifests.Peek(ctx, q); return err })
	return a, err
}

func (m mortal) Change(ctx context.Context, p segment.Partition, c segment.Change) (ok bool, err error) {
	err = m.call(func() (err error) { ok, err = m.Manifests.Change(ctx, p, c); return err })
	return ok, err
}

func (m mortal) StreamInfo(ctx context.Context, key string) (i segment.StreamInfo, err error) {
	err = m.call(func() (err error) { i, err = m.Streams.StreamInfo(ctx, key); return err })
	return i, err
}

func (m mortal) Pages(key string, from, to segment.ID) segment.PageReader {
	return mortalPages{m.death, m.Streams.Pages(key, from, to)}
}

type mortalPages struct {
	*death
	segment.PageReader
}

func (m mortalPages) Next(ctx context.Context, into *segment.Page) error {
	return m.call(func() error { return m.PageReader.Next(ctx, into) })
}

func (m mortal) Remove(ctx context.Context, key string, is segment.StreamInfo) (ok bool, err error) {
	err = m.call(func() (err error) { ok, err = m.Removals.Remove(ctx, key, is); return err })
	return ok, err
}

func (m mortal) Now(ctx context.Context) (t time.Time, err error) {
	err = m.call(func() (err error) { t, err = m.Clock.Now(ctx); return err })
	return t, err
}

func (m mortal) Put(ctx context.Context, u offload.Upload) (i offload.ObjectInfo, err error) {
	err = m.call(func() (err error) { i, err = m.storePorts.Put(ctx, u); return err })
	return i, err
}

func (m mortal) Stat(ctx context.Context, path string) (i offload.ObjectInfo, err error) {
	err = m.call(func() (err error) { i, err = m.storePorts.Stat(ctx, path); return err })
	return i, err
}

func (m mortal) Open(ctx context.Context, path string) (b io.ReadCloser, err error) {
	err = m.call(func() (err error) { b, err = m.storePorts.Open(ctx, path); return err })
	return b, err
}

// mortal makes the ports of a process that dies.
func (r *rig) mortal(d *death) Ports {
	m := mortal{d, redisPorts{r.redis}, r.redis, r.redis, r.redis, storePorts{r.store}}
	cfg := offload.DefaultConfig()
	cfg.SealGrace, cfg.SpoolDir = 0, r.spool
	worker := offload.New(cfg, r.layout, offload.Ports{Registry: r.redis, Known: r.redis, Manifests: m, Streams: m, Removals: m, Clock: m,
		Encoding: encoding{}, Store: m}, quiet{})
	return Ports{Manifests: m, Streams: m, Removals: m, Clock: m, Store: m, Copier: worker}
}

// save keeps what Redis and the store have, and restores it when it is called.
func (r *rig) save() (restore func()) {
	r.t.Helper()
	files := r.files()
	r.server.Exec("EVAL", `for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', k, k, 'DB', 1, 'REPLACE') end`, "0")
	return func() {
		r.server.Exec("EVAL", `for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('DEL', k) end
redis.call('SELECT', 1)
for _, k in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', k, k, 'DB', 0) end`, "0")
		for path := range r.files() {
			if _, was := files[path]; !was {
				r.lose(path)
			}
		}
		for path, body := range files {
			if err := os.WriteFile(filepath.Join(r.dir, path), []byte(body), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// wantSomewhere fails unless all that was written of a segment is in its stream,
// or in one of its objects.
func (r *rig) wantSomewhere(n segment.Number) {
	r.t.Helper()
	found := r.streamSums(n)
	for c := range int64(4) {
		maps.Copy(found, r.objectSums(n, r.path(n, c)))
	}
	for id, s := range r.ledger[n] {
		if found[id] != s {
			r.t.Fatalf("message %s of segment %s is nowhere any more", id, n)
		}
	}
}

// a repair that is killed at any call, with that call made or not, loses nothing,
// and the next one, with a worker, ends with all that was written.
func TestKilledAtEveryStep(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		kind scrub.Kind
		gone bool
		do   func(r *rig)
	}{
		"recopy":      {scrub.ChecksumMismatch, false, func(r *rig) { r.damage(r.path(1, 0), flipped) }},
		"recopy lost": {scrub.MissingObject, false, func(r *rig) { r.lose(r.path(1, 0)) }},
		"repoint":     {scrub.ChecksumMismatch, true, func(r *rig) { r.copyObject(r.path(1, 0), r.path(1, 1)); r.damage(r.path(1, 0), flipped) }},
		"reflip":      {scrub.SourceMissing, false, func(r *rig) { r.local(1); r.remake(1, 3, 4) }},
		"take over":   {scrub.Orphan, true, func(r *rig) { r.forget(1) }},
		"with stream": {scrub.Orphan, false, func(r *rig) { r.forget(1) }},
		"unstray":     {scrub.StrayStream, true, func(r *rig) { r.remake(1, 3, 4) }},
		"end drop": {scrub.HalfDeleted, false, func(r *rig) {
			r.set(1, func(e *segment.Entry) { e.Local = segment.Dropping })
			r.server.Exec("DEL", r.key(1))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 3, c.gone, server)
			c.do(r)
			restore := r.save()
			for calls, alive := 0, false; !alive; calls++ {
				alive = true
				for _, after := range []bool{false, true} {
					d := &death{calls: calls, after: after}
					before := r.files()
					_, _ = r.try(r.mortal(d), Options{Yes: true}, r.finding(1, c.kind))
					alive = alive && !d.did
					r.wantKept(before)
					r.wantSomewhere(1)
					r.worker.Reset()
					r.move()
					r.repair(Options{Yes: true}, r.finding(1, c.kind))
					r.move()
					r.wantKept(before)
					r.wantReadable(0, 1, 2)
					if t.Failed() {
						t.Fatalf("killed at call %d, made: %t", calls, after)
					}
					restore()
				}
				if calls > 200 {
					t.Fatal("it never ends")
				}
			}
		})
	}
}

// of a deletion that was begun nothing is to be readable again.
func TestKilledWhileEndingADeletion(t *testing.T) {
	r := moved(t, 3, true)
	r.set(1, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 1 })
	r.lose(r.path(1, 0))
	restore := r.save()
	for calls, alive := 0, false; !alive; calls++ {
		alive = true
		for _, after := range []bool{false, true} {
			d := &death{calls: calls, after: after}
			_, _ = r.try(r.mortal(d), Options{Yes: true}, r.finding(1, scrub.HalfDeleted))
			alive = alive && !d.did
			r.repair(Options{Yes: true}, r.finding(1, scrub.HalfDeleted))
			if raw := r.raw(1); raw != "" {
				t.Fatalf("killed at call %d, made: %t: the entry is %s", calls, after, raw)
			}
			r.wantReadable(0, 2)
			restore()
		}
	}
}

// repairs and a worker at the same time, all on the same segments: each change is
// made once, and nothing is lost.
func TestBesideAWorker(t *testing.T) {
	r := moved(t, 8, false)
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1")
	var found []scrub.Finding
	for n := range segment.Number(8) {
		switch n % 4 {
		case 0:
			r.lose(r.path(n, 0))
			found = append(found, r.finding(n, scrub.MissingObject))
		case 1:
			r.damage(r.path(n, 0), halved)
			found = append(found, r.finding(n, scrub.Truncated))
		case 2:
			r.local(n)
			found = append(found, r.finding(n, scrub.SourceMissing))
		case 3:
			r.forget(n)
			found = append(found, r.orphan(n))
		}
	}
	before := r.files()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	errs := make(chan error, 8)
	all.Go(func() {
		for w := r.newWorker(); ctx.Err() == nil; {
			if _, err := w.RunOnce(ctx); err != nil && ctx.Err() == nil {
				errs <- err
			}
		}
	})
	var repairs sync.WaitGroup
	for range 2 {
		repairs.Go(func() {
			ports := r.ports
			ports.Copier = r.newWorker()
			for range 4 {
				if _, err := r.try(ports, Options{Yes: true}, found...); err != nil {
					errs <- fmt.Errorf("repair: %w", err)
				}
			}
		})
	}
	repairs.Wait()
	stop()
	all.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	r.worker.Reset()
	r.move()
	r.repair(Options{Yes: true}, found...)
	r.worker.Reset()
	r.move()
	r.wantKept(before)
	r.wantReadable(0, 1, 2, 3, 4, 5, 6, 7)
}
