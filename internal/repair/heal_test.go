package repair

import (
	"fmt"
	"strings"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// each damage of an object is healed from a stream that is whole, and the damaged
// object stays.
func TestDamagedObjectsAreCopiedAgainFromTheStream(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		kind  scrub.Kind
		do    func(r *rig)
		keeps bool
	}{
		"missing":   {scrub.MissingObject, func(r *rig) { r.lose(r.path(0, 0)) }, false},
		"truncated": {scrub.Truncated, func(r *rig) { r.damage(r.path(0, 0), halved) }, true},
		"flipped":   {scrub.ChecksumMismatch, func(r *rig) { r.damage(r.path(0, 0), flipped) }, true},
		"empty":     {scrub.Schema, func(r *rig) { r.damage(r.path(0, 0), func([]byte) []byte { return nil }) }, true},
		"other":     {scrub.WrongContents, func(r *rig) { r.lose(r.path(0, 0)); r.copyObject(r.path(1, 0), r.path(0, 0)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 2, false, server)
			c.do(r)
			before, redis := r.files(), r.dump()
			r.want(r.repair(Options{}, r.finding(0, c.kind)), Recopy, Would)
			r.wantUntouched(redis)
			s := r.want(r.repair(Options{Yes: true}, r.finding(0, c.kind)), Recopy, Done)
			r.wantKept(before)
			r.wantReadable(0, 1)
			e := r.entry(0)
			if want := r.path(0, 1); e.Tier != segment.Remote || e.Object.Path != want || s.Copied.Path != want {
				t.Errorf("the segment is %s", e.Encode())
			}
			r.want(r.repair(Options{Yes: true}, r.finding(0, c.kind)), Nothing, Healthy)
		})
	}
}

// a copy of the same content at another path takes the place of a damaged object
// whose stream is gone.
func TestAnotherCopyOfTheSameContentTakesThePlace(t *testing.T) {
	r := moved(t, 2, true)
	r.copyObject(r.path(0, 0), r.path(0, 3))
	r.damage(r.path(0, 0), flipped)
	before, redis := r.files(), r.dump()
	r.want(r.repair(Options{}, r.finding(0, scrub.ChecksumMismatch)), Repoint, Would)
	r.wantUntouched(redis)
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Repoint, Done)
	r.wantKept(before)
	r.wantReadable(0, 1)
	if e := r.entry(0); e.Object.Path != r.path(0, 3) || e.Local != segment.Gone || e.Copy != 3 {
		t.Errorf("the entry is %s", e.Encode())
	}
}

// without a stream, and without another whole copy, nothing is changed.
func TestTheOnlyCopyIsNeverGivenUp(t *testing.T) {
	server := redisserver.Start(t)
	for name, others := range map[string]func(r *rig){
		"none":            func(*rig) {},
		"damaged too":     func(r *rig) { r.copyObject(r.path(0, 0), r.path(0, 1)) },
		"another segment": func(r *rig) { r.copyObject(r.path(1, 0), r.path(0, 1)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 2, true, server)
			r.damage(r.path(0, 0), flipped)
			others(r)
			before, redis := r.files(), r.dump()
			s := r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Leave, Left)
			r.wantKept(before)
			r.wantUntouched(redis)
			if !strings.Contains(s.Why, "bring back the object") {
				t.Errorf("it does not say what to do: %s", s.Why)
			}
		})
	}
}

// a stream that has lost entries is no source for a segment whose object was
// damaged: what it lacks may be in the object.
func TestAStreamThatIsNotWholeIsNoSource(t *testing.T) {
	server := redisserver.Start(t)
	for name, do := range map[string]func(r *rig){
		"one deleted":     func(r *rig) { r.server.Exec("XDEL", r.key(0), idOf(0, 2).String()) },
		"trimmed":         func(r *rig) { r.server.Exec("XTRIM", r.key(0), "MAXLEN", "2") },
		"made anew":       func(r *rig) { r.server.Exec("DEL", r.key(0)); r.server.Exec("XADD", r.key(0), "*", "a", "b") },
		"another first":   func(r *rig) { r.remake(0, 9, 1, 2, 3, 4) },
		"of another type": func(r *rig) { r.server.Exec("DEL", r.key(0)); r.server.Exec("SET", r.key(0), "x") },
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 1, false, server)
			r.damage(r.path(0, 0), flipped)
			do(r)
			before, redis := r.files(), r.dump()
			r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Leave, Left)
			r.wantKept(before)
			r.wantUntouched(redis)
		})
	}
}

// remake makes a stream anew of these messages; 9 is one before the others.
func (r *rig) remake(n segment.Number, messages ...int) {
	r.server.Exec("DEL", r.key(n))
	for _, i := range messages {
		id := idOf(n, i)
		if i == 9 {
			id.Ms = idOf(n, 0).Ms - 1
		}
		r.server.Exec("XADD", r.key(n), id.String(), "value", fmt.Sprintf("message %d of %s", i, n), "value", "twice")
	}
}

// what came late to the stream is copied with the rest.
func TestLateEntriesAreCopiedToo(t *testing.T) {
	r := moved(t, 1, false)
	r.lose(r.path(0, 0))
	r.server.Exec("XADD", r.key(0), idOf(0, 7).String(), "late", "one")
	r.ledger[0] = r.streamSums(0)
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.MissingObject)), Recopy, Done)
	r.wantReadable(0)
	if e := r.entry(0); e.Tier != segment.Remote || e.Count != perSegment+1 {
		t.Errorf("the entry is %s", e.Encode())
	}
}

// a stream that is there again, whole, although its entry says GONE, is a source.
func TestAStreamThatIsThereAgainIsASource(t *testing.T) {
	r := moved(t, 1, true)
	r.damage(r.path(0, 0), flipped)
	before := r.files()
	r.remake(0, 0, 1, 2, 3, 4)
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Recopy, Done)
	r.wantReadable(0)
	r.wantKept(before)
	if e := r.entry(0); e.Local != segment.Present || e.Object.Path != r.path(0, 1) {
		t.Errorf("the entry is %s", e.Encode())
	}
}

// local makes a segment LOCAL without its stream, as a failover leaves it that has
// forgotten the flip and kept the removal.
func (r *rig) local(n segment.Number) {
	r.set(n, func(e *segment.Entry) {
		e.Tier, e.Local, e.Object, e.Source, e.RemoteAt = segment.Local, "", nil, nil, 0
	})
	r.server.Exec("DEL", r.key(n))
}

// a LOCAL segment that has lost its stream, and whose object is there, is REMOTE.
func TestAForgottenFlipIsMadeAgain(t *testing.T) {
	server := redisserver.Start(t)
	for name, do := range map[string]func(r *rig){
		"its own copy":  func(*rig) {},
		"a later copy":  func(r *rig) { r.copyObject(r.path(0, 0), r.path(0, 2)); r.damage(r.path(0, 0), flipped) },
		"an older copy": func(r *rig) { r.set(0, func(e *segment.Entry) { e.Copy = 2 }) },
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 2, false, server)
			r.local(0)
			do(r)
			before, redis := r.files(), r.dump()
			r.want(r.repair(Options{}, r.finding(0, scrub.SourceMissing)), Reflip, Would)
			r.wantUntouched(redis)
			r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing)), Reflip, Done)
			r.wantKept(before)
			r.wantReadable(0, 1)
			if e := r.entry(0); e.Tier != segment.Remote || e.Local != segment.Gone || e.RemoteAt == 0 || e.Object.SHA256 == "" {
				t.Errorf("the entry is %s", e.Encode())
			}
			r.move() // a worker gets along with it
			r.wantReadable(0, 1)
		})
	}
}

// an object that has less than the entry tells, or is of another segment, or
// damaged, is not taken for a LOCAL segment.
func TestAnObjectThatMayNotBeTheSegmentIsNotTaken(t *testing.T) {
	server := redisserver.Start(t)
	for name, do := range map[string]func(r *rig){
		"the entry tells of more":         func(r *rig) { r.set(0, func(e *segment.Entry) { e.Count++ }) },
		"the entry tells of a later last": func(r *rig) { r.set(0, func(e *segment.Entry) { e.LastID.Seq++ }) },
		"the entry tells of an earlier":   func(r *rig) { r.set(0, func(e *segment.Entry) { e.FirstID.Ms-- }) },
		"the entry tells nothing": func(r *rig) {
			r.set(0, func(e *segment.Entry) { e.FirstID, e.LastID, e.Count = segment.ID{}, segment.ID{}, segment.NoCount })
		},
		"damaged":         func(r *rig) { r.damage(r.path(0, 0), flipped) },
		"another segment": func(r *rig) { r.lose(r.path(0, 0)); r.copyObject(r.path(1, 0), r.path(0, 0)) },
		"none":            func(r *rig) { r.lose(r.path(0, 0)) },
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 2, false, server)
			r.local(0)
			do(r)
			before, redis := r.files(), r.dump()
			r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing)), Leave, Left)
			r.wantKept(before)
			r.wantUntouched(redis)
		})
	}
}

// a stream that came back short: what it has is compared with the object before
// the segment is REMOTE, and before it is removed.
func TestAShortStreamGoesOnlyWhenTheObjectHasItAll(t *testing.T) {
	r := moved(t, 1, false)
	r.local(0)
	r.remake(0, 3, 4)
	steps := r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing))
	if len(steps) != 2 || steps[0].Deed != Reflip || steps[0].Result != Done || steps[1].Deed != Unstray || steps[1].Result != Done {
		t.Fatalf("got %s", say(steps))
	}
	r.wantReadable(0)
	if left := r.server.Exec("EXISTS", r.key(0)); left != "0" {
		t.Error("the stray stream is still there")
	}
}

func TestAShortStreamWithOtherEntriesStays(t *testing.T) {
	server := redisserver.Start(t)
	for name, do := range map[string]func(r *rig){
		"a late one":           func(r *rig) { r.server.Exec("XADD", r.key(0), idOf(0, 8).String(), "late", "one") },
		"another under its id": func(r *rig) { r.server.Exec("XADD", r.key(0), idOf(0, 3).String(), "value", "other") },
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 1, false, server)
			r.local(0)
			do(r)
			redis := r.dump()
			s := r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing)), Leave, Left)
			r.wantUntouched(redis)
			if !strings.Contains(s.Why, "1 other") {
				t.Error(s.Why)
			}
		})
	}
}

// a LOCAL segment whose stream is whole is left to the worker.
func TestALocalSegmentThatIsWholeIsLeftAlone(t *testing.T) {
	r := newRig(t)
	r.write(1)
	redis := r.dump()
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.SourceMissing)), Nothing, Healthy)
	r.wantUntouched(redis)
}

func TestStrayStreams(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		do     func(r *rig)
		deed   Deed
		result Result
	}{
		"all in the object": {func(r *rig) { r.remake(0, 1, 3) }, Unstray, Done},
		"one that is not":   {func(r *rig) { r.remake(0, 1, 3, 8) }, Leave, Left},
		"another value":     {func(r *rig) { r.server.Exec("XADD", r.key(0), idOf(0, 1).String(), "value", "other") }, Leave, Left},
		"another order": {func(r *rig) {
			r.server.Exec("XADD", r.key(0), idOf(0, 1).String(), "value", "twice", "value", "message 1 of 0")
		}, Leave, Left},
		"no stream": {func(r *rig) { r.server.Exec("SET", r.key(0), "x") }, Leave, Left},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 1, true, server)
			c.do(r)
			redis := r.dump()
			r.want(r.repair(Options{}, r.finding(0, scrub.StrayStream)), c.deed, map[bool]Result{true: Would, false: Left}[c.deed == Unstray])
			r.wantUntouched(redis)
			r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.StrayStream)), c.deed, c.result)
			if c.deed == Leave {
				r.wantUntouched(redis)
			} else if r.server.Exec("EXISTS", r.key(0)) != "0" {
				t.Error("the stream is still there")
			}
			r.wantReadable(0)
		})
	}
}

func TestHalfDoneDrops(t *testing.T) {
	r := moved(t, 2, false)
	for n := range segment.Number(2) {
		r.set(n, func(e *segment.Entry) { e.Local = segment.Dropping })
	}
	r.server.Exec("DEL", r.key(0))
	note := r.finding(0, scrub.HalfDeleted)
	note.Note = true // the worker would end it, too
	r.want(r.repair(Options{Yes: true}, note), EndDrop, Done)
	if e := r.entry(0); e.Local != segment.Gone {
		t.Errorf("the entry is %s", e.Encode())
	}
	redis := r.dump()
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.HalfDeleted)), Leave, Left) // its stream is there
	r.wantUntouched(redis)
	r.wantReadable(0, 1)
}

func TestHalfDoneDeletions(t *testing.T) {
	r := moved(t, 3, true)
	for n := range segment.Number(3) {
		r.set(n, func(e *segment.Entry) { e.State, e.DeletingAt = segment.Deleting, 1 })
	}
	r.lose(r.path(0, 0))
	r.lose(r.path(2, 0))
	r.remake(2, 8)
	before, redis := r.files(), r.dump()
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.HalfDeleted)), Leave, Left) // its object is there
	r.want(r.repair(Options{Yes: true}, r.finding(2, scrub.HalfDeleted)), Leave, Left) // a stream is there
	r.want(r.repair(Options{}, r.finding(0, scrub.HalfDeleted)), EndDelete, Would)
	r.wantUntouched(redis)
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.HalfDeleted)), EndDelete, Done)
	r.wantKept(before)
	if raw := r.raw(0); raw != "" {
		t.Errorf("the entry is still there: %s", raw)
	}
}

func TestTwoEntriesWithOneObject(t *testing.T) {
	r := moved(t, 2, true)
	r.set(1, func(e *segment.Entry) { e.Object.Path = r.path(0, 0) })
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.DuplicatePath)), Repoint, Done)
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.DuplicatePath)), Nothing, Healthy)
	r.wantReadable(0, 1)
}

func TestWhatIsNotHealedSaysWhy(t *testing.T) {
	r := moved(t, 2, true)
	r.server.Exec("HSET", r.manifest(), "1", `{"state":"SEALED"}`)
	before, redis := r.files(), r.dump()
	for kind, says := range map[scrub.Kind]string{
		scrub.IllegalEntry: "HGET",
		scrub.Overlap:      "by hand",
		scrub.Unknown:      "move it away",
		scrub.Owner:        "korvet.namespace",
	} {
		n := segment.Number(0)
		if kind == scrub.IllegalEntry {
			n = 1
		}
		if s := r.want(r.repair(Options{Yes: true}, r.finding(n, kind)), Leave, Left); !strings.Contains(s.Why, says) {
			t.Errorf("%s: it does not say %q: %s", kind, says, s.Why)
		}
		f := r.finding(0, kind)
		f.HasSegment = false
		r.want(r.repair(Options{Yes: true}, f), Leave, Left)
	}
	r.want(r.repair(Options{Yes: true}, r.finding(2, scrub.SourceMissing)), Leave, Left) // OPEN
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.StreamDiffers)), Nothing, Healthy)
	if steps := r.repair(Options{Yes: true}, scrub.Finding{Kind: scrub.Orphan, Partition: r.part, Note: true}); len(steps) != 0 {
		t.Errorf("a note: %s", say(steps))
	}
	r.wantKept(before)
	r.wantUntouched(redis)
}
