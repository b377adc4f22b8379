package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/config"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// sessionOf connects to what a rig has.
func sessionOf(t *testing.T, environ []string, o offload.Observer) *session {
	t.Helper()
	l, err := config.Load(config.Input{Environ: environ, NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := connect(t.Context(), l.Config, o, func(s3sink.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.close)
	return s
}

// sealMore writes another sealed segment of topic orders.
func (r rig) sealMore(t *testing.T, s *session, n segment.Number) {
	t.Helper()
	err := broker.New(s.redis.Client(), segment.DefaultLayout()).Write(t.Context(), broker.Segment{Partition: segment.Partition{Topic: "orders"}, Number: n,
		Seed: uint64(n), Count: 10, ValueBytes: 100, SealedAt: time.Now().Add(-time.Hour)}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// A verb borrows the lease, or the leases, of two instances that run, makes a pass
// of its own under it, and gives it back.
func TestBorrowingFromInstancesThatRun(t *testing.T) {
	for _, shards := range []int{1, 4} {
		t.Run(fmt.Sprint(shards), func(t *testing.T) {
			rig := newRig(t)
			environ := append(slices.Clone(rig.environ), fmt.Sprint("KORVET_STORAGE_OFFLOAD_SHARDS=", shards), "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=20s", "KORVET_STORAGE_OFFLOAD_ROLL_ENABLED=false", "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=50ms")
			a := start(t, environ)
			a.await(`"message":"this instance leads"`)
			a.await(`"segment":"orders:0/1","result":"copied"`)
			b := start(t, environ)
			b.await(`"message":"` + map[bool]string{true: "another instance leads", false: "this instance leads"}[shards == 1])
			s := sessionOf(t, environ, quiet{})
			var told []string
			s.waits = func(why string) { told = append(told, why) }
			lead, giveBack, err := s.borrow(t.Context(), "gc")
			if err != nil {
				t.Fatalf("%v; told %q", err, told)
			}
			a.await(`"message":"the lease is lent; this instance goes on when it is given back","to":"gc by `)
			mustRead(t, call(t, environ, "status"), exitDone, "", "\nthe lease is lent to \"gc by ")
			rig.sealMore(t, s, 3)
			if r := call(t, environ, "run", "--once"); r.code != exitDone || !strings.HasPrefix(r.stderr, "the lease is lent to gc by ") {
				t.Errorf("run --once: %+v", r)
			}
			passed, err := s.worker.RunOnce(lead)
			if err != nil || len(passed.Outcomes) != 1 || passed.Outcomes[0].Segment != 3 {
				t.Errorf("a pass under the borrowed lease: %+v, %v", passed.Outcomes, err)
			}
			if err := giveBack(t.Context()); err != nil || lead.Err() == nil {
				t.Errorf("give back: %v, %v", err, lead.Err())
			}
			rig.sealMore(t, s, 4)
			for end := time.Now().Add(20 * time.Second); !strings.Contains(a.log()+b.log(), `"segment":"orders:0/4","result":"copied"`); <-time.After(10 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("nobody goes on:\n%s\n%s", a.log(), b.log())
				}
			}
			for _, d := range []*running{a, b} {
				if d.stop(); d.end() != exitDone || strings.Contains(d.log(), `"level":"error"`) || strings.Contains(d.log(), `"level":"warn"`) {
					t.Errorf("%s", d.log())
				}
			}
		})
	}
}

// borrowing asks for the lease when a pass has been planned.
type borrowing struct {
	quiet
	ask func()
}

func (b borrowing) Planned(offload.Plan) { b.ask() }

// A pass during which the lease is asked for finishes the jobs that it is at, and
// begins no others.
func TestBorrowingDuringAPass(t *testing.T) {
	rig := newRig(t)
	environ := append(slices.Clone(rig.environ), "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=6s", "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=1s")
	other := sessionOf(t, environ, quiet{})
	type loan struct {
		giveBack func(context.Context) error
		err      error
	}
	given := make(chan loan, 1)
	s := sessionOf(t, environ, borrowing{ask: func() {
		go func() {
			_, giveBack, err := other.borrow(t.Context(), "gc")
			given <- loan{giveBack, err}
		}()
		l := <-given // no job is under way
		given <- l
	}})
	r, led, err := s.runLed(t.Context(), zap.NewNop())
	l := <-given
	if l.err != nil || !led || lentTo(err) == "" || len(r.Outcomes) != 0 || r.Left != 2 {
		t.Errorf("borrowed: %v; led %t, %v, done %+v, left %d", l.err, led, err, r.Outcomes, r.Left)
	}
	if err := l.giveBack(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestGates(t *testing.T) {
	open, closed := &countingGate{open: true}, &countingGate{}
	if _, ok := (gates{open, closed}).Enter(segment.Partition{}); ok || open.inside != 0 {
		t.Errorf("may enter: %t, inside %d", ok, open.inside)
	}
	leave, ok := (gates{open, open}).Enter(segment.Partition{})
	if !ok || open.inside != 2 {
		t.Fatalf("may enter: %t, inside %d", ok, open.inside)
	}
	if leave(); open.inside != 0 {
		t.Errorf("inside %d", open.inside)
	}
}

type countingGate struct {
	open   bool
	inside int
}

func (g *countingGate) Enter(segment.Partition) (leave func(), ok bool) {
	if !g.open {
		return nil, false
	}
	g.inside++
	return func() { g.inside-- }, true
}

func TestLentTo(t *testing.T) {
	lent := &lease.LentError{Key: "k", To: "gc"}
	if lentTo(fmt.Errorf("pass: %w", lent)) != "gc" || lentTo(errors.Join(lease.ErrLost, lent)) != "" || lentTo(lease.ErrHeld) != "" || !errNoShards(lent) {
		t.Error("what is lent is not told from what is lost")
	}
}

// sealLarge writes a sealed segment of that many messages of 5 KB.
func (r rig) sealLarge(t *testing.T, s *session, n segment.Number, messages int) {
	t.Helper()
	err := broker.New(s.redis.Client(), segment.DefaultLayout()).Write(t.Context(), broker.Segment{Partition: segment.Partition{Topic: "orders"}, Number: n,
		Seed: uint64(n), Count: messages, ValueBytes: 5000, SealedAt: time.Now().Add(-time.Hour)}, nil)
	if err != nil {
		t.Fatal(err)
	}
}

// An instance that is in the middle of a copy finishes it, and begins no other
// one; the borrower is told what it waits for. One that is killed then keeps the
// instance from its work until its keys have lapsed.
//
//fault:leaders | Somebody borrows the lease from an instance in the middle of a long copy, and is killed | A daemon whose upload is slow, real Redis; the borrower's connections are cut | The copy is finished and the next one not begun; the daemon goes on when the borrower's keys have lapsed
func TestBorrowingDuringALongCopy(t *testing.T) {
	rig := newRig(t)
	environ := append(slices.Clone(rig.environ), "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=6s", "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=50ms", "KORVET_STORAGE_OFFLOAD_UPLOAD_RATE=100KB",
		"KORVET_STORAGE_OFFLOAD_ROLL_ENABLED=false", "KORVET_STORAGE_OFFLOAD_CONCURRENCY=1")
	s := sessionOf(t, environ, quiet{})
	rig.sealLarge(t, s, 3, 400) // 9 s of upload: to be seen and said that the lease is wanted takes up to 5 s
	rig.sealLarge(t, s, 4, 10)
	d := start(t, environ)
	d.await(`"segment":"orders:0/1","result":"copied"`)
	var told []string
	borrower := sessionOf(t, environ, quiet{})
	borrower.waits = func(why string) { told = append(told, why) }
	lead, giveBack, err := borrower.borrow(t.Context(), "repair")
	if err != nil {
		t.Fatalf("%v; told %q", err, told)
	}
	if lead.Err() != nil || !strings.Contains(d.log(), `"segment":"orders:0/3","result":"copied"`) || strings.Contains(d.log(), "orders:0/4") ||
		!strings.Contains(fmt.Sprint(told), "which finishes what it is at") {
		t.Errorf("told %q\n%s", told, d.log())
	}
	borrower.redis.Close() // it renews nothing any more
	if err := giveBack(t.Context()); err == nil {
		t.Error("it was given back without a connection")
	}
	if ms := strings.TrimSpace(rig.server.Exec("PTTL", "korvet:storage:offload:lease:wanted")); len(ms) > 5 || strings.HasPrefix(ms, "-") {
		t.Errorf("the request lapses in %s ms", ms)
	}
	rig.server.Exec("PEXPIRE", "korvet:storage:offload:lease:wanted", "500") // and not only after 30 s
	d.await(`"segment":"orders:0/4","result":"copied"`)
	if d.stop(); d.end() != exitDone {
		t.Error(d.log())
	}
}
