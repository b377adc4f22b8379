package repair

import (
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// plainRig is a plain stream of three ranges that are REMOTE, of two messages
// each, and an OPEN one.
func plainRig(t *testing.T, trimmed bool) *rig {
	t.Helper()
	r := newRigOn(t, s3sink.Config{}, segment.Partition{Topic: "events", Plain: true})
	var b []byte
	from := segment.ID{Seq: 1}
	for n := range segment.Number(4) {
		for i := range 2 {
			b = redisserver.AppendCommand(b, "XADD", "events", idOf(n, i).String(), "value", n.String())
		}
		e := segment.NewOpenRange("events", from, segment.Source{Added: -1}, 1)
		if n < 3 {
			var err error
			if e, err = e.Seal(segment.Contents{FirstID: idOf(n, 0), LastID: idOf(n, 1), Count: 2}, 1); err != nil {
				t.Fatal(err)
			}
			from, _ = e.To.Next()
		}
		b = redisserver.AppendCommand(b, "HSET", r.manifest(), n.String(), string(e.Encode()))
	}
	r.server.Pipe(b)
	for n := range segment.Number(3) {
		r.ledger[n] = r.rangeSums(n)
	}
	r.move()
	if trimmed {
		r.server.Exec("XTRIM", "events", "MINID", idOf(3, 0).String())
		for n := range segment.Number(3) {
			r.set(n, func(e *segment.Entry) { e.Local = segment.Gone })
		}
	}
	for n := range segment.Number(3) {
		if e := r.entry(n); e.Tier != segment.Remote || len(r.ledger[n]) != 2 {
			t.Fatalf("segment %s is %s", n, e.Encode())
		}
	}
	return r
}

// rangeSums reads the range of a plain stream.
func (r *rig) rangeSums(n segment.Number) map[segment.ID]sum {
	r.t.Helper()
	h, err := hold(r.t.Context(), r.redis, "events", r.entry(n))
	if err != nil {
		r.t.Fatal(err)
	}
	return h.sums
}

func (r *rig) wantRanges(numbers ...segment.Number) {
	r.t.Helper()
	for _, n := range numbers {
		e := r.entry(n)
		is := r.rangeSums(n)
		if e.Tier == segment.Remote {
			is = r.objectSums(n, e.Object.Path)
		}
		if len(is) != 2 || is[idOf(n, 1)] != r.ledger[n][idOf(n, 1)] {
			r.t.Errorf("segment %s: readers do not find what was written; it is %s", n, e.Encode())
		}
	}
}

func TestRangesOfPlainStreamsAreCopiedAgain(t *testing.T) {
	r := plainRig(t, false)
	r.damage(r.path(1, 0), flipped)
	before := r.files()
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.ChecksumMismatch)), Recopy, Done)
	r.wantKept(before)
	r.wantRanges(0, 1, 2)
	if e := r.entry(1); e.Object.Path != r.path(1, 1) || e.Source.CRC32C == 0 {
		t.Errorf("the entry is %s", e.Encode())
	}
}

// a range that was made anew with the same ids has other messages.
func TestARangeWithOtherMessagesIsNoSource(t *testing.T) {
	r := plainRig(t, false)
	r.damage(r.path(1, 0), flipped)
	r.server.Exec("DEL", "events")
	for n := range segment.Number(4) {
		for i := range 2 {
			r.server.Exec("XADD", "events", idOf(n, i).String(), "value", "other")
		}
	}
	redis := r.dump()
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.ChecksumMismatch)), Leave, Left)
	r.wantUntouched(redis)
}

// A shared stream grows all the time. What matters is that nothing of it went.
func TestARangeThatHasChangedMeanwhileIsLeftAlone(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(r *rig)
		want      Result
	}{
		"it has grown":         {func(r *rig) { r.server.Exec("XADD", "events", "*", "a", "b") }, Done},
		"a message of it went": {func(r *rig) { r.server.Exec("XDEL", "events", idOf(1, 1).String()) }, LostRace},
		"it was trimmed":       {func(r *rig) { r.server.Exec("XTRIM", "events", "MINID", idOf(1, 1).String()) }, LostRace},
		"it is gone":           {func(r *rig) { r.server.Exec("DEL", "events") }, LostRace},
		"it is none":           {func(r *rig) { r.server.Exec("SET", "events", "x") }, LostRace},
		"it was made anew, less": {func(r *rig) {
			r.server.Exec("DEL", "events")
			r.server.Exec("XADD", "events", idOf(0, 0).String(), "a", "b")
		}, LostRace},
	} {
		t.Run(name, func(t *testing.T) {
			r := plainRig(t, false)
			r.lose(r.path(1, 0))
			ports := r.ports
			ports.Gate = meanwhile(func() { c.meanwhile(r) })
			steps, err := r.try(ports, Options{Yes: true}, r.finding(1, scrub.MissingObject))
			if err != nil || len(steps) != 1 || steps[0].Deed != Recopy || steps[0].Result != c.want {
				t.Errorf("%v, %s", err, say(steps))
			}
			if e := r.entry(1); c.want == LostRace && e.Tier != segment.Remote {
				t.Errorf("the entry is %s", e.Encode())
			}
		})
	}
}

func TestRangesOfPlainStreamsAreTakenOver(t *testing.T) {
	for _, n := range []segment.Number{1, 2} { // behind 2 is the OPEN one
		r := plainRig(t, true)
		was := r.entry(n)
		r.forget(n)
		r.want(r.repair(Options{Yes: true}, r.orphan(n)), TakeOver, Done)
		if e := r.entry(n); e.From != was.From || e.To != was.To || e.Key != was.Key || e.Source.CRC32C != was.Source.CRC32C || e.Local != segment.Gone {
			t.Errorf("the entry is %s, and was %s", e.Encode(), was.Encode())
		}
		r.wantRanges(0, 1, 2)
		r.move()
		r.wantRanges(0, 1, 2)
	}
}

func TestALostRangeIsFlippedAgain(t *testing.T) {
	r := plainRig(t, true)
	r.set(1, func(e *segment.Entry) {
		e.Tier, e.Local, e.Object, e.Source, e.RemoteAt = segment.Local, "", nil, nil, 0
	})
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.SourceMissing)), Reflip, Done)
	r.wantRanges(0, 1, 2)
	// of a range the count is exact
	r.set(1, func(e *segment.Entry) {
		e.Tier, e.Local, e.Object, e.Source, e.RemoteAt, e.Count = segment.Local, "", nil, nil, 0, 1
	})
	redis := r.dump()
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.SourceMissing)), Leave, Left)
	r.wantUntouched(redis)
}
