package repair

import (
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// forget takes entries out of the manifest, as a failover or a hand may.
func (r *rig) forget(numbers ...segment.Number) {
	for _, n := range numbers {
		r.server.Exec("HDEL", r.manifest(), n.String())
	}
}

func (r *rig) orphan(n segment.Number) scrub.Finding {
	f := r.finding(n, scrub.Orphan)
	f.Path = r.path(n, 0)
	return f
}

// objects in a gap get their entries back, several beside one another too.
func TestObjectsInAGapAreTakenOver(t *testing.T) {
	r := moved(t, 5, true)
	r.forget(1, 2, 3)
	before, redis := r.files(), r.dump()
	found := []scrub.Finding{r.orphan(3), r.orphan(1), r.orphan(2)}
	for _, yes := range []bool{false, true} {
		steps := r.repair(Options{Yes: yes}, found...)
		want := map[bool]Result{false: Would, true: Done}[yes]
		for i, s := range steps {
			if s.Deed != TakeOver || s.Result != want || int(s.Segment) != i+1 {
				t.Fatalf("got %s", say(steps))
			}
		}
		if !yes {
			r.wantUntouched(redis)
		}
	}
	r.wantKept(before)
	r.wantReadable(0, 1, 2, 3, 4)
	if e := r.entry(2); e.Local != segment.Gone || e.Count != perSegment || e.SealedAt != int64(idOf(2, perSegment-1).Ms) {
		t.Errorf("the entry is %s", e.Encode())
	}
	r.move()
	r.wantReadable(0, 1, 2, 3, 4)
}

// of several copies the latest that is whole is taken.
func TestTheLatestWholeCopyIsTakenOver(t *testing.T) {
	r := moved(t, 3, true)
	r.forget(1)
	r.copyObject(r.path(1, 0), r.path(1, 1))
	r.copyObject(r.path(1, 0), r.path(1, 2))
	r.damage(r.path(1, 2), flipped)
	before := r.files()
	r.want(r.repair(Options{Yes: true}, r.orphan(1)), TakeOver, Done)
	r.wantKept(before)
	if e := r.entry(1); e.Object.Path != r.path(1, 1) || e.Copy != 1 {
		t.Errorf("the entry is %s", e.Encode())
	}
	r.wantReadable(0, 1, 2)
}

// where the stream is there too, the worker's own checks decide.
func TestATakenOverSegmentWithItsStreamIsLocalAndCopied(t *testing.T) {
	server := redisserver.Start(t)
	for name, late := range map[string]bool{"as copied": false, "with a late entry": true} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 3, false, server)
			r.forget(1)
			want := 0
			if late {
				r.server.Exec("XADD", r.key(1), idOf(1, 8).String(), "late", "one")
				r.ledger[1], want = r.streamSums(1), 1
			}
			before := r.files()
			r.want(r.repair(Options{Yes: true}, r.orphan(1)), TakeOver, Done)
			r.wantKept(before)
			r.wantReadable(0, 1, 2)
			if e := r.entry(1); e.Local != segment.Present || e.Object.Path != r.path(1, int64(want)) {
				t.Errorf("the entry is %s", e.Encode())
			}
		})
	}
}

func TestWhatIsNotTakenOver(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		do   func(r *rig) segment.Number // which segment is found
		says string
	}{
		"below the first": {func(r *rig) segment.Number { r.forget(0); return 0 }, "retention has deleted it"},
		"above the last":  {func(r *rig) segment.Number { r.forget(2, 3, 4); return 3 }, "above the last entry"},
		"no manifest":     {func(r *rig) segment.Number { r.forget(0, 1, 2, 3, 4); return 1 }, "restore --manifests"},
		"damaged":         {func(r *rig) segment.Number { r.forget(1); r.damage(r.path(1, 0), flipped); return 1 }, "no object of it is whole"},
		"nothing there":   {func(r *rig) segment.Number { r.forget(1); r.lose(r.path(1, 0)); return 1 }, "nothing is lost"},
		"a short stream":  {func(r *rig) segment.Number { r.forget(1); r.remake(1, 3, 4); return 1 }, "compare the two"},
		"an alien key":    {func(r *rig) segment.Number { r.forget(1); r.server.Exec("SET", r.key(1), "x"); return 1 }, "move it away"},
		"an odd neighbor": {func(r *rig) segment.Number { r.forget(1); r.server.Exec("HSET", r.manifest(), "2", "{}"); return 1 }, "nobody knows"},
		"behind the next": {func(r *rig) segment.Number { r.forget(1); r.bound(2, idOf(1, 4), idOf(2, 4)); return 1 }, "another time"},
		"before the last": {func(r *rig) segment.Number { r.forget(1); r.bound(0, idOf(0, 0), idOf(1, 0)); return 1 }, "another time"},
		"of another topic": {func(r *rig) segment.Number {
			r.forget(1)
			r.lose(r.path(1, 0))
			r.copyObject(r.path(0, 0), r.path(1, 0))
			return 1
		}, "no object of it is whole"},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 4, true, server)
			n := c.do(r)
			before, redis := r.files(), r.dump()
			s := r.want(r.repair(Options{Yes: true}, r.orphan(n)), Leave, Left)
			if !strings.Contains(s.Why, c.says) {
				t.Errorf("it does not say %q: %s", c.says, s.Why)
			}
			r.wantKept(before)
			r.wantUntouched(redis)
		})
	}
}

// a stream in a gap whose entry is lost gets one, if it is all that it ever had.
func TestAStreamInAGapIsTakenOver(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		do   func(r *rig)
		deed Deed
	}{
		"whole":            {func(*rig) {}, TakeOver},
		"a damaged object": {func(r *rig) { r.copyObject(r.path(0, 0), r.path(1, 0)) }, TakeOver},
		"one was deleted":  {func(r *rig) { r.server.Exec("XDEL", r.key(1), idOf(1, 2).String()) }, Leave},
		"trimmed":          {func(r *rig) { r.server.Exec("XTRIM", r.key(1), "MAXLEN", "2") }, Leave},
		"late":             {func(r *rig) { r.server.Exec("DEL", r.key(1)); r.server.Exec("XADD", r.key(1), "*", "a", "b") }, Leave},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 3, false, server)
			r.forget(1)
			r.lose(r.path(1, 0))
			c.do(r)
			before, redis := r.files(), r.dump()
			r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.StrayStream)), c.deed, map[Deed]Result{TakeOver: Done, Leave: Left}[c.deed])
			r.wantKept(before)
			if c.deed == Leave {
				r.wantUntouched(redis)
				return
			}
			r.wantReadable(0, 1, 2)
			if e := r.entry(1); e.Tier != segment.Remote {
				t.Errorf("the entry is %s", e.Encode())
			}
		})
	}
}

// streams of segments outside of the manifest are nobody's.
func TestAStreamOutsideOfTheManifestIsLeft(t *testing.T) {
	r := moved(t, 2, false)
	r.forget(0)
	r.remake(7, 0, 1)
	redis := r.dump()
	for _, n := range []segment.Number{0, 7} {
		if s := r.want(r.repair(Options{Yes: true}, r.finding(n, scrub.StrayStream)), Leave, Left); !strings.Contains(s.Why, "no reader finds it") {
			t.Error(s.Why)
		}
	}
	r.wantUntouched(redis)
}

func (r *rig) bound(n segment.Number, first, last segment.ID) {
	r.set(n, func(e *segment.Entry) { e.FirstID, e.LastID = first, last })
}

// what lies before the first entry is taken over only when that is asked for.
func TestExpiredSegmentsAreTakenOverWhenAskedFor(t *testing.T) {
	r := moved(t, 3, true)
	r.forget(0)
	r.want(r.repair(Options{Yes: true, IncludeExpired: true}, r.orphan(0)), TakeOver, Done)
	r.wantReadable(0, 1, 2)
}

// the OPEN segment behind a gap bounds it by what its stream holds.
func TestTheOpenSegmentIsANeighbor(t *testing.T) {
	r := moved(t, 2, true)
	r.forget(1)
	r.want(r.repair(Options{Yes: true}, r.orphan(1)), TakeOver, Done)
	r.wantReadable(0, 1)
	r.forget(1)
	r.server.Exec("DEL", r.key(2))
	r.server.Exec("XADD", r.key(2), idOf(1, 0).String(), "a", "b")
	redis := r.dump()
	r.want(r.repair(Options{Yes: true}, r.orphan(1)), Leave, Left)
	r.wantUntouched(redis)
}

// a newer copy than the entry names has what came late, and redis has lost the
// change that named it.
func TestANewerCopyTakesThePlaceOfAnOlder(t *testing.T) {
	r := moved(t, 2, false)
	raw := r.raw(0)
	r.server.Exec("XADD", r.key(0), idOf(0, 8).String(), "late", "one")
	r.ledger[0] = r.streamSums(0)
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1")
	for r.entry(0).Local != segment.Gone {
		r.move()
	}
	r.server.Exec("HDEL", "korvet:topic:orders", "local.retention.ms")
	r.server.Exec("HSET", r.manifest(), "0", raw) // PRESENT, of the first copy
	before := r.files()
	f := r.orphan(0)
	f.Path = r.path(0, 1)
	r.want(r.repair(Options{Yes: true}, f), Repoint, Done)
	r.wantReadable(0, 1)
	r.wantKept(before)
	r.want(r.repair(Options{Yes: true}, f), Nothing, Healthy)
}

// A newer object that does not begin with the messages of the entry's own is no
// later copy of them, whatever its ids: Redis was emptied once, or another one has
// written there.
func TestANewerObjectOfOtherMessagesIsLeft(t *testing.T) {
	r := moved(t, 2, true)
	raw := r.raw(0)
	for i := range perSegment + 1 {
		r.server.Exec("XADD", r.key(0), idOf(0, i).String(), "value", "of another life")
	}
	r.set(0, func(e *segment.Entry) {
		*e = segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: perSegment + 1, FirstID: idOf(0, 0), LastID: idOf(0, perSegment), Copy: 1, OpenedAt: 1, SealedAt: 1}
	})
	r.move()
	r.server.Exec("DEL", r.key(0))
	r.server.Exec("HSET", r.manifest(), "0", raw)
	before, redis := r.files(), r.dump()
	if len(before) != 3+1 { // with the owner marker
		t.Fatalf("%d files", len(before))
	}
	f := r.orphan(0)
	f.Path = r.path(0, 1)
	if s := r.want(r.repair(Options{Yes: true}, f), Leave, Left); !strings.Contains(s.Why, "of another life of the topic") {
		t.Error(s.Why)
	}
	r.wantUntouched(redis)
	r.wantKept(before)
	r.wantReadable(0, 1)
}

// A stream never gets a message before its first: an object that begins earlier
// is of another one.
func TestAnObjectThatBeginsEarlierIsNotTaken(t *testing.T) {
	r := moved(t, 2, false)
	r.local(0)
	r.server.Exec("DEL", r.key(0))
	r.set(0, func(e *segment.Entry) { e.FirstID, e.Count = idOf(0, 1), perSegment-1 })
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing)), Leave, Left)
}

// what was taken over, or would be, bounds the next: of two objects that overlap
// one gets an entry.
func TestObjectsInAGapThatOverlap(t *testing.T) {
	r := newRig(t)
	r.write(4)
	r.server.Exec("DEL", r.key(2))
	for _, id := range []segment.ID{idOf(1, 3), idOf(2, 1)} {
		r.server.Exec("XADD", r.key(2), id.String(), "value", "of another life")
	}
	r.set(2, func(e *segment.Entry) { e.FirstID, e.LastID, e.Count = idOf(1, 3), idOf(2, 1), 2 })
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1")
	r.move()
	r.move()
	r.forget(1, 2)
	before := r.files()
	for _, yes := range []bool{false, true} {
		steps := r.repair(Options{Yes: yes}, r.orphan(1), r.orphan(2))
		if len(steps) != 2 || steps[0].Deed != TakeOver || steps[1].Deed != Leave || !strings.Contains(steps[1].Why, "segment 1 comes to") {
			t.Errorf("acts %t: %s", yes, say(steps))
		}
	}
	r.wantKept(before)
	if r.raw(1) == "" || r.raw(2) != "" {
		t.Errorf("the entries are %q and %q", r.raw(1), r.raw(2))
	}
}
