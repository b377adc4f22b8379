package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// meanwhile is a gate that does something between the plan and the act.
type meanwhile func()

func (m meanwhile) Enter(segment.Partition) (func(), bool) {
	m()
	return func() {}, true
}

// whatever has changed since the plan was made, nothing is done.
func TestWhatHasChangedMeanwhileIsLeftAlone(t *testing.T) {
	server := redisserver.Start(t)
	recopy := func(r *rig) { r.lose(r.path(1, 0)) }
	for name, c := range map[string]struct {
		kind      scrub.Kind
		gone      bool
		before    func(r *rig)
		meanwhile func(r *rig)
	}{
		"the entry":                {scrub.MissingObject, false, recopy, func(r *rig) { r.set(1, func(e *segment.Entry) { e.Rev++ }) }},
		"the entry is gone":        {scrub.MissingObject, false, recopy, func(r *rig) { r.forget(1) }},
		"the stream has grown":     {scrub.MissingObject, false, recopy, func(r *rig) { r.server.Exec("XADD", r.key(1), "*", "a", "b") }},
		"the stream has lost some": {scrub.MissingObject, false, recopy, func(r *rig) { r.server.Exec("XDEL", r.key(1), idOf(1, 1).String()) }},
		"the stream is gone":       {scrub.MissingObject, false, recopy, func(r *rig) { r.server.Exec("DEL", r.key(1)) }},
		"the stream is none":       {scrub.MissingObject, false, recopy, func(r *rig) { r.server.Exec("SET", r.key(1), "x") }},
		"the other object is damaged": {scrub.MissingObject, true, func(r *rig) { r.copyObject(r.path(1, 0), r.path(1, 1)); r.lose(r.path(1, 0)) },
			func(r *rig) { r.damage(r.path(1, 1), flipped) }},
		"the found object is gone": {scrub.SourceMissing, false, func(r *rig) { r.local(1) }, func(r *rig) { r.lose(r.path(1, 0)) }},
		"the lost stream is there": {scrub.SourceMissing, false, func(r *rig) { r.local(1) }, func(r *rig) { r.remake(1, 0, 1, 2, 3, 4) }},
		"an object of a deletion is there": {scrub.HalfDeleted, true, func(r *rig) {
			r.set(1, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 1 })
			r.lose(r.path(1, 0))
		}, func(r *rig) { r.copyObject(r.path(0, 0), r.path(1, 0)) }},
		"the entry of an orphan is there": {scrub.Orphan, true, func(r *rig) { r.forget(1) }, func(r *rig) { r.server.Exec("HSET", r.manifest(), "1", r.raw(0)) }},
		"a neighbor":                      {scrub.Orphan, true, func(r *rig) { r.forget(1) }, func(r *rig) { r.set(2, func(e *segment.Entry) { e.FirstID = idOf(1, 0) }) }},
		"a stray stream":                  {scrub.StrayStream, true, func(r *rig) { r.remake(1, 3, 4) }, func(r *rig) { r.server.Exec("XADD", r.key(1), idOf(1, 8).String(), "a", "b") }},
		"the object of a stray stream":    {scrub.StrayStream, true, func(r *rig) { r.remake(1, 3, 4) }, func(r *rig) { r.damage(r.path(1, 0), flipped) }},
		"the entry of a stray stream":     {scrub.StrayStream, true, func(r *rig) { r.remake(1, 3, 4) }, func(r *rig) { r.set(1, func(e *segment.Entry) { e.Rev++ }) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 3, c.gone, server)
			c.before(r)
			var files map[string]string
			var redis string
			ports := r.ports
			ports.Gate = meanwhile(func() { c.meanwhile(r); files, redis = r.files(), r.dump() })
			steps, err := r.try(ports, Options{Yes: true}, r.finding(1, c.kind))
			if err != nil || len(steps) != 1 || steps[0].Result != LostRace {
				t.Fatalf("%v, %s", err, say(steps))
			}
			r.wantKept(files)
			r.wantUntouched(redis)
		})
	}
}

// when the lease is lost nothing more is changed.
func TestALostLeaseEndsIt(t *testing.T) {
	r := moved(t, 2, false)
	r.lose(r.path(0, 0))
	r.lose(r.path(1, 0))
	redis := r.dump()
	ctx, lost := context.WithCancel(t.Context())
	ports := r.ports
	ports.Gate = meanwhile(lost)
	steps := 0
	_, err := New(ports, r.layout, Options{Yes: true, SpoolDir: r.spool}).Run(ctx, []scrub.Finding{r.finding(0, scrub.MissingObject), r.finding(1, scrub.MissingObject)},
		func(s Step) {
			if steps++; s.Result != Failed {
				t.Error(say([]Step{s}))
			}
		})
	if !errors.Is(err, context.Canceled) || steps != 1 {
		t.Errorf("%d steps, %v", steps, err)
	}
	r.wantUntouched(redis)
}

type closed struct{}

func (closed) Enter(segment.Partition) (func(), bool) { return nil, false }

func TestWhatIsPausedIsNotRepaired(t *testing.T) {
	r := moved(t, 1, false)
	r.lose(r.path(0, 0))
	redis := r.dump()
	ports := r.ports
	ports.Gate = closed{}
	for _, yes := range []bool{true, false} { // a dry run says what will come of it
		steps, err := r.try(ports, Options{Yes: yes}, r.finding(0, scrub.MissingObject))
		if err != nil || len(steps) != 1 || !errors.Is(steps[0].Err, offload.ErrPaused) || steps[0].Result != Failed {
			t.Errorf("%v, %s", err, say(steps))
		}
	}
	r.wantUntouched(redis)
}

// foreign is a store that is somebody else's.
type foreign struct{ storePorts }

func (foreign) Owner(context.Context) error { return scrub.ErrForeign }

func TestNothingIsRepairedBelowAForeignRoot(t *testing.T) {
	r := moved(t, 1, false)
	r.lose(r.path(0, 0))
	redis := r.dump()
	ports := r.ports
	ports.Store = foreign{storePorts{r.store}}
	if steps, err := r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject)); !errors.Is(err, scrub.ErrForeign) || len(steps) > 0 {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
}

// unmounted is a root that vanishes after the first look at whose it is.
type unmounted struct {
	storePorts
	looks *int
}

func (u unmounted) Owner(context.Context) error {
	if *u.looks++; *u.looks > 1 {
		return scrub.ErrNoOwner
	}
	return nil
}

func (u unmounted) Stat(context.Context, string) (offload.ObjectInfo, error) {
	return offload.ObjectInfo{}, offload.ErrObjectMissing
}

func TestARootThatVanishesInTheMiddleIsNoDamage(t *testing.T) {
	r := moved(t, 1, false)
	redis := r.dump()
	ports := r.ports
	ports.Store = unmounted{storePorts{r.store}, new(int)}
	steps, err := r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject))
	if err != nil || len(steps) != 1 || steps[0].Result != Failed || !errors.Is(steps[0].Err, scrub.ErrNoOwner) {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
}

// down is a store that does not answer.
type down struct {
	storePorts
	lies func(path string) bool // where it does
}

func (d down) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	if d.lies(path) {
		return offload.ObjectInfo{}, fmt.Errorf("%w: on purpose", offload.ErrStoreDown)
	}
	return d.storePorts.Stat(ctx, path)
}

// suspected is segments that are all as they should be, and of which each is said
// to have lost its object.
func suspected(t *testing.T, n int) (*rig, []scrub.Finding) {
	t.Helper()
	r := moved(t, n, false)
	var found []scrub.Finding
	for i := range segment.Number(n) {
		found = append(found, r.finding(i, scrub.MissingObject))
	}
	return r, found
}

// what can't be read is no damage, and after three of them in a row it ends.
func TestAStoreThatIsDownIsNoDamage(t *testing.T) {
	r, found := suspected(t, 5)
	redis := r.dump()
	ports := r.ports
	ports.Store = down{storePorts{r.store}, func(string) bool { return true }}
	steps, err := r.try(ports, Options{Yes: true}, found...)
	if !errors.Is(err, offload.ErrStoreDown) || len(steps) != 3 || steps[0].Result != Failed {
		t.Errorf("%v, %s", err, say(steps))
	}
	ports.Store = down{storePorts{r.store}, func(path string) bool { return path != r.path(2, 0) }}
	if steps, err = r.try(ports, Options{Yes: true}, found...); err != nil || len(steps) != 5 || steps[2].Result != Healthy {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
}

// cutting is a store whose bodies end early, or fail.
type cutting struct {
	storePorts
	err error
}

func (c cutting) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := c.storePorts.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(io.LimitReader(body, 100), failing{c.err}), body}, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestABodyThatIsCutIsNoDamage(t *testing.T) {
	r := moved(t, 1, false)
	redis := r.dump()
	for _, err := range []error{io.EOF, io.ErrUnexpectedEOF, errors.New("reset")} {
		ports := r.ports
		ports.Store = cutting{storePorts{r.store}, err}
		steps, rerr := r.try(ports, Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch))
		if rerr != nil || len(steps) != 1 || steps[0].Result != Failed {
			t.Errorf("%v: %v, %s", err, rerr, say(steps))
		}
	}
	r.wantUntouched(redis)
}

// bare is a store that tells nothing of objects but their size.
type bare struct{ storePorts }

func (b bare) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	i, err := b.storePorts.Stat(ctx, path)
	i.SHA256, i.ETag = "", ""
	return i, err
}

// where the store has no checksum, the object is read again right before the act.
func TestAnObjectWithoutChecksumIsReadAgain(t *testing.T) {
	r := moved(t, 2, true)
	r.copyObject(r.path(0, 0), r.path(0, 1))
	r.lose(r.path(0, 0))
	restore := r.save()
	redis := r.dump()
	ports := r.ports
	ports.Store = bare{storePorts{r.store}}
	ports.Gate = meanwhile(func() { r.damage(r.path(0, 1), flipped) })
	steps, err := r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject))
	if err != nil || len(steps) != 1 || steps[0].Result != LostRace {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
	restore()
	ports.Gate = nil
	if steps, err = r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject)); err != nil || len(steps) != 1 || steps[0].Result != Done {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantReadable(0, 1)
}

// a spool directory that can't be written is said so, and is no damage.
func TestASpoolThatIsNotThere(t *testing.T) {
	r := moved(t, 1, false)
	r.spool += "/none"
	steps := r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch))
	if len(steps) != 1 || steps[0].Result != Failed || !strings.Contains(steps[0].Err.Error(), "spool-dir") {
		t.Error(say(steps))
	}
}

// restless is a stream that grows while it is read.
type restless struct {
	Streams
	grow func()
}

func (s restless) Pages(key string, from, to segment.ID) segment.PageReader {
	s.grow()
	return s.Streams.Pages(key, from, to)
}

func TestAStreamThatChangesWhileItIsReadIsNotJudged(t *testing.T) {
	r := moved(t, 1, false)
	r.lose(r.path(0, 0))
	ports := r.ports
	ports.Streams = restless{r.redis, func() { r.server.Exec("XADD", r.key(0), "*", "a", "b") }}
	steps, err := r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject))
	if err != nil || len(steps) != 1 || !errors.Is(steps[0].Err, errUnsteady) {
		t.Errorf("%v, %s", err, say(steps))
	}
	if e := r.entry(0); e.Tier != segment.Remote {
		t.Errorf("the entry is %s", e.Encode())
	}
}

// torn is a manifest of which not all comes.
type torn struct{ redisPorts }

func (m torn) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	first := true
	return m.redisPorts.Each(ctx, p, func(field, value string) {
		if !first {
			take(field, value)
		}
		first = false
	})
}

func TestAManifestThatDoesNotComeWholeIsNotJudged(t *testing.T) {
	r := moved(t, 3, true)
	r.forget(1)
	redis := r.dump()
	ports := r.ports
	ports.Manifests = torn{redisPorts{r.redis}}
	steps, err := r.try(ports, Options{Yes: true}, r.orphan(1))
	if err != nil || len(steps) != 1 || steps[0].Result != Failed {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
}
