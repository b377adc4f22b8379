package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/ops"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// book is a journal and what it has written.
type book struct {
	t *testing.T
	*journal
	logs *observer.ObservedLogs
	web  http.Handler
}

func newBook(t *testing.T) book {
	core, logs := observer.New(zapcore.DebugLevel)
	health := ops.NewHealth(func() error { return nil })
	return book{t, newJournal(zap.New(core), health), logs, ops.Handler(ops.Config{}, health, ops.Mounts{})}
}

// wrote checks the lines at info and above since the last call: level,
// message, and the fields in the order in which they were given.
func (b book) wrote(want ...string) {
	b.t.Helper()
	var got []string
	for _, e := range b.logs.TakeAll() {
		if e.Level < zapcore.InfoLevel {
			continue
		}
		line := e.Level.String() + " " + e.Message
		for _, f := range e.Context {
			line += fmt.Sprintf(" %s=%v", f.Key, e.ContextMap()[f.Key])
		}
		got = append(got, line)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		b.t.Errorf("wrote %q\nwant  %q", got, want)
	}
}

// ready checks what the readiness probe says.
func (b book) ready(want string) {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.web.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if got := strings.TrimSpace(w.Body.String()); got != want {
		b.t.Errorf("ready: %q, want %q", got, want)
	}
}

func problem(n string, reason offload.Reason) offload.Problem {
	return offload.Problem{Topic: "t", Segment: n, Reason: reason, Err: errors.New("cause of " + string(reason))}
}

func TestProblemIsWrittenWhenItComesChangesAndGoes(t *testing.T) {
	b := newBook(t)
	b.ready("not ready: starting")
	const parked = "warn can't be worked on for now; all else goes on what=segment t:0/1 "
	one, changed := problem("1", offload.ReasonShortStream), problem("1", offload.ReasonStore)
	b.Passed(offload.Report{Problems: []offload.Problem{one}}, nil)
	b.wrote("error" + strings.TrimPrefix(parked, "warn") + "reason=short_stream cause=cause of short_stream")
	b.ready("ready") // one bad segment is no reason
	b.Passed(offload.Report{Problems: []offload.Problem{one}}, nil)
	b.wrote()
	b.Passed(offload.Report{Problems: []offload.Problem{changed, problem("2", offload.ReasonStore)}}, nil)
	b.wrote(parked+"reason=store cause=cause of store",
		"warn can't be worked on for now; all else goes on what=segment t:0/2 reason=store cause=cause of store",
		"error the store can't be used; going on at the next tick segments_left=0 error=cause of store")
	b.ready("not ready: cause of store")
	b.Passed(offload.Report{Problems: []offload.Problem{problem("2", offload.ReasonStore)}}, nil)
	b.wrote("info no longer a problem, or no longer looked at what=segment t:0/1")
	b.Passed(offload.Report{}, nil)
	b.wrote("info no longer a problem, or no longer looked at what=segment t:0/2", "info works again what=store was=cause of store")
	b.ready("ready")
}

func TestOutageIsWrittenOncePerCause(t *testing.T) {
	b := newBook(t)
	away, refused := errors.New("redis is away"), errors.New("password refused")
	b.Passed(offload.Report{Left: 3}, away)
	b.wrote("error pass given up; going on at the next tick segments_left=3 error=redis is away")
	b.ready("not ready: redis is away")
	b.Passed(offload.Report{Left: 4}, away)
	b.wrote()
	loopJournal{b.journal, func() {}, nil}.Failed(refused)
	b.wrote("error the lease can't be asked for; trying again at the next tick error=password refused")
	b.ready("not ready: redis is away")
	b.works(partRedis)
	b.wrote("info works again what=redis was=redis is away")
	b.ready("not ready: password refused")
	b.Passed(offload.Report{}, nil)
	b.wrote("info works again what=lease was=password refused")
	b.ready("ready")
	b.Passed(offload.Report{}, nil)
	b.wrote()
}

func TestFollowerIsReadyAndSaysSoOnce(t *testing.T) {
	b := newBook(t)
	b.Follows()
	b.wrote("info another instance leads; this one waits to take over")
	b.ready("ready")
	b.Follows()
	b.wrote()
	b.loopFailed(errors.New("away"))
	b.wrote("error the lease can't be asked for; trying again at the next tick error=away")
	b.ready("not ready: away")
	b.Follows()
	b.wrote("info works again what=lease was=away")
	b.ready("ready")
	b.Leads()
	b.wrote("info this instance leads")
	b.Lost(errors.New("lease lost"))
	b.wrote("warn this instance leads no longer; work under way was cancelled error=lease lost")
	b.Follows()
	b.wrote("info another instance leads; this one waits to take over")
}

func TestStopIsNoFault(t *testing.T) {
	b := newBook(t)
	b.Passed(offload.Report{}, nil)
	stopping := false
	l := loopJournal{b.journal, func() {}, func() bool { return stopping }}
	l.Passed(offload.Report{}, errors.New("lease lost"))
	b.wrote("error pass given up; going on at the next tick segments_left=0 error=lease lost")
	l.Passed(offload.Report{}, nil)
	b.wrote("info works again what=redis was=lease lost")
	stopping = true
	l.Passed(offload.Report{Outcomes: make([]offload.Outcome, 2), Left: 5}, errors.New("terminated"))
	b.wrote("info pass stopped; the next run goes on from the manifests segments=2 segments_left=5")
	b.ready("ready")
}

func TestSegmentsAreWritten(t *testing.T) {
	b := newBook(t)
	o := offload.Outcome{Partition: segment.Partition{Topic: "t", Number: 1}, Segment: 7, Result: offload.LostRace}
	b.Finished(o)
	b.wrote("info segment was changed by another instance first; nothing done segment=t:1/7")
	o.Result, o.Path, o.BytesIn, o.BytesOut, o.Contents.Count = offload.Copied, "p", 5, 4, 3
	b.Finished(o)
	b.wrote("info segment is remote segment=t:1/7 result=copied object=p entries=3 bytes_in=5 bytes_out=4 took=0s")
}

func TestDetailsAreForDebugging(t *testing.T) {
	b := newBook(t)
	b.Planned(offload.Plan{Counts: offload.Counts{Topics: 1}})
	b.Advanced(1, 1)
	b.Failed(offload.Problem{})
	b.storeEvent(s3sink.Event{Op: "put", Key: "k", Attempt: 2, Class: s3sink.ClassThrottled, Err: errors.New("slow down")})
	if n := b.logs.Len(); n != 2 {
		t.Errorf("%d lines at debug, want 2", n)
	}
	b.wrote()
}

// That a store is throttled is written when it begins and when it is over.
func TestAThrottledStoreIsSaidTwice(t *testing.T) {
	b := newBook(t)
	for _, limit := range []int{8, 4, 5, 6} {
		b.storeEvent(s3sink.Event{Op: "limit", Class: s3sink.ClassThrottled, Limit: limit})
	}
	b.wrote("info the store asks for fewer requests; it gets fewer at once until it is calm at_once=8")
	b.storeEvent(s3sink.Event{Op: "limit", Class: s3sink.ClassThrottled})
	b.wrote("info the store gets all requests again")
}

// A wrong namespace looks like an empty one; it must not look like success.
func TestNothingToOffloadIsSaidOnce(t *testing.T) {
	b := newBook(t)
	b.Planned(offload.Plan{Counts: offload.Counts{OtherTopics: 2}})
	b.wrote("warn " + noTopics + " other_topics=2")
	b.Planned(offload.Plan{Counts: offload.Counts{OtherTopics: 2}})
	b.wrote()
}

// The local port of a connection differs each time; the cause does not.
func TestOneOutageIsWrittenOnce(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	j := newJournal(zap.New(core), ops.NewHealth(func() error { return nil }))
	for port := range 3 {
		j.fails(partRedis, "pass given up", fmt.Errorf("read tcp 127.0.0.1:%d->127.0.0.1:6379: connection reset by peer", 40000+port))
	}
	j.fails(partRedis, "pass given up", errors.New("NOAUTH Authentication required"))
	if got := logs.Len(); got != 2 {
		t.Errorf("%d lines, want 2: %v", got, logs.All())
	}
}

func TestEachStepOfALifeIsWritten(t *testing.T) {
	b := newBook(t)
	o := offload.Outcome{Partition: segment.Partition{Topic: "clicks", Plain: true}, Segment: 2, Path: "p",
		Why: segment.Due{Limit: "segment.ms", Over: 5}, Contents: segment.Contents{Count: 3}}
	for result, want := range map[offload.Result]string{
		offload.Created:           "info partition has its first segment segment=clicks/2",
		offload.Rolled:            "info segment is sealed, and the next one open segment=clicks/2 limit=segment.ms over_ms=5 entries=3",
		offload.Dropped:           "info local copy is removed segment=clicks/2 limit=segment.ms over_ms=5 entries=3",
		offload.Hidden:            "info segment is hidden, and will be deleted after delete-grace segment=clicks/2 limit=segment.ms over_ms=5",
		offload.Expired:           "info segment is deleted segment=clicks/2 object=p entries=3",
		offload.ExpiredUnuploaded: "warn segment is deleted that was never copied segment=clicks/2 entries=3",
	} {
		o.Result = result
		b.Finished(o)
		b.wrote(want)
	}
	o.Result, o.Cause = offload.Reopened, errors.New("object damaged")
	b.Finished(o)
	b.wrote("warn segment is local again, and will be copied once more segment=clicks/2 cause=object damaged")
	o.Result, o.Missing = offload.Copied, 4
	b.Finished(o)
	b.wrote("info segment is remote segment=clicks/2 result=copied object=p entries=3 bytes_in=0 bytes_out=0 took=0s removed_before=4")
}

// A group that nobody reads keeps local copies for ever: that is said when it
// begins and when it is over, not at every tick.
func TestHeldCopiesAreSaidOnce(t *testing.T) {
	b := newBook(t)
	o := offload.Outcome{Partition: segment.Partition{Topic: "t"}, Result: offload.Held, Cause: errors.New(`group "g"`)}
	for range 3 {
		b.Finished(o)
		b.Passed(offload.Report{Outcomes: []offload.Outcome{o, o}}, nil)
	}
	b.wrote(`info local copies past retention are kept for consumer groups (hold-pending) segments=2 one=group "g"`)
	b.Passed(offload.Report{}, nil)
	b.wrote("info no consumer group keeps local copies any more")
	b.Passed(offload.Report{}, nil)
	b.wrote()
}

// What stays as it is is said once; what had gone and comes back, again.
func TestNoticesOfAPlanAreSaidOnce(t *testing.T) {
	b := newBook(t)
	plan := offload.Plan{Counts: offload.Counts{Topics: 1, Unuploaded: 2}, Warnings: []string{"orders: segment.ms is above"},
		Removed: []offload.TopicState{{Topic: segment.Topic{Name: "old"}, Phase: offload.Removed}}}
	b.Planned(plan)
	b.Planned(plan)
	b.wrote("warn orders: segment.ms is above", "warn topic old left the registry: kept as it was, until korvet.storage.offload.topic-delete-grace is over",
		"warn segments are past total retention and were never copied; they stay in redis (expire-unuploaded)")
	plan.Removed[0].Phase = offload.Abandoned
	b.Planned(plan)
	b.wrote("warn topic old left the registry: left alone; korvet.storage.offload.delete-removed-topics would delete it")
}

// Rolling needs no store, and says nothing about it.
func TestAStoreThatIsDownStaysDownWhileSegmentsRoll(t *testing.T) {
	b := newBook(t)
	down := offload.Problem{Topic: "t", Reason: offload.ReasonStore, Err: errors.New("no bucket")}
	b.Passed(offload.Report{Problems: []offload.Problem{down}}, fmt.Errorf("%w: no bucket", offload.ErrStoreDown))
	b.Passed(offload.Report{Problems: []offload.Problem{down}, Outcomes: []offload.Outcome{{Result: offload.Rolled}, {Result: offload.Held}}}, nil)
	b.ready("not ready: no bucket")
	b.Passed(offload.Report{Outcomes: []offload.Outcome{{Result: offload.Dropped}}}, nil)
	b.ready("ready")
}

// A locked bucket is one warning, however many objects are in it.
func TestDeletionsThatAreDeniedAreSaidOnce(t *testing.T) {
	b := newBook(t)
	var denied []offload.Problem
	for n := range 3 {
		denied = append(denied, problem(fmt.Sprint(n), offload.ReasonDenied))
	}
	b.Passed(offload.Report{Problems: denied}, nil)
	b.wrote("warn can't be worked on for now; all else goes on what=deletions reason=delete_denied cause=cause of delete_denied")
	b.Passed(offload.Report{Problems: denied[1:]}, nil)
	b.wrote()
	b.Passed(offload.Report{}, nil)
	b.wrote("info no longer a problem, or no longer looked at what=deletions")
}

// An outage that lasts is written down every five minutes, whoever asks, with
// for how long; its end is written once.
func TestOutagesAreSaidAgain(t *testing.T) {
	b := newBook(t)
	now := time.Unix(1000, 0)
	b.now = func() time.Time { return now }
	const waits = "error waiting for redis "
	b.waitsForRedis(errors.New("dial 1"))
	b.wrote(waits + "error=dial 1")
	now = now.Add(outageReminder - time.Second)
	b.waitsForRedis(errors.New("dial 2"))
	b.reminds()
	b.wrote()
	now = now.Add(time.Second)
	b.waitsForRedis(errors.New("dial 3"))
	b.reminds()
	b.wrote(waits + "for=5m0s error=dial 3")
	now = now.Add(outageReminder)
	b.fails(partStore, "no store", errors.New("none"), zap.Int("segments_left", 2))
	b.wrote("error no store segments_left=2 error=none", waits+"for=10m0s error=dial 3")
	b.works(partRedis)
	b.logs.TakeAll()
	now = now.Add(outageReminder)
	b.reminds()
	b.wrote("error no store segments_left=2 for=5m0s error=none")
	b.works(partStore)
	b.logs.TakeAll()
	now = now.Add(time.Hour)
	b.reminds()
	b.wrote()
}
