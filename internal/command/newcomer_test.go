package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// What Redis has lost is a problem, and no work of a probe that says "ready".
func TestLostDataIsNotReady(t *testing.T) {
	b := newBook(t)
	b.Passed(offload.Report{Plan: offload.Plan{At: time.Now()}}, nil)
	b.ready("ready")
	doubt := fmt.Errorf("in doubt: %w", offload.ErrDataLost)
	lost := offload.Report{Plan: offload.Plan{At: time.Now(), Doubt: doubt}, Problems: []offload.Problem{{Partition: -1, Reason: offload.ReasonRegistry, Err: doubt}}}
	said := "error redis seems to have lost its data; nothing of a topic is deleted error=" + doubt.Error()
	for i := range 2 {
		b.Passed(lost, nil)
		b.ready("not ready: " + doubt.Error())
		if i == 0 {
			b.wrote("warn can't be worked on for now; all else goes on what=registry reason=registry_doubt cause="+doubt.Error(), said)
		}
	}
	b.Passed(offload.Report{}, errors.New("no scan was made")) // which says nothing of the data
	if !b.isDown(partData) {
		t.Error("a pass without a scan has found the data")
	}
	b.Passed(offload.Report{Plan: offload.Plan{At: time.Now()}}, nil)
	b.ready("ready")
	b.Passed(lost, nil)
	b.Follows()
	b.ready("ready")
}

func TestWhatNext(t *testing.T) {
	created, rolled := offload.Outcome{Result: offload.Created}, offload.Outcome{Result: offload.Rolled}
	for _, c := range []struct {
		outcomes []offload.Outcome
		want     string
	}{
		{nil, ""},
		{[]offload.Outcome{{Result: offload.Copied}}, ""},
		{[]offload.Outcome{created}, "Next: producers fill what was created; a later run rolls what is full, and one that is seal-grace (5s) later, or more, copies it"},
		{[]offload.Outcome{created, rolled}, "Next: what was rolled is copied by a run that is seal-grace (5s) later, or more"},
	} {
		if got := whatNext(c.outcomes, 5*time.Second); got != c.want {
			t.Errorf("%v: %q", c.outcomes, got)
		}
	}
}

// A first run on a fresh Redis says what happens next.
func TestAFirstRunSaysWhatIsNext(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("DEL", "korvet:storage:manifest:orders:0")
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "", "1 created", "\nNext: producers fill what was created; ")
}

// What is stuck shows without a run, by whoever looks, and is not said to be
// copied.
func TestAStreamThatIsGoneShows(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("DEL", "korvet:storage:local:orders:0:1")
	const problem = "korvet-offload: segment orders:0/1: [source_missing] "
	r := call(t, rig.environ, "status")
	mustRead(t, r, exitFault, problem, "orders:0             0           0        2     1 ")
	r = call(t, rig.environ, "run", "--once", "--dry-run")
	mustRead(t, r, exitFault, problem, "\n1 to copy; ")
	for _, verb := range []string{"status", "run --once --dry-run"} {
		r = call(t, rig.environ, append(strings.Fields(verb), "-o", "json")...)
		if r.code != exitFault || !strings.Contains(r.stdout, `"reason": "source_missing"`) {
			t.Errorf("%s: %+v", verb, r)
		}
	}
}

// A topic whose settings make no sense is counted.
func TestAFaultyTopicIsCounted(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("HSET", "korvet:topic:orders", "partitions", "none")
	r := call(t, rig.environ, "status")
	if r.code != exitFault || !strings.Contains(r.stdout, "; 0 topics, 1 that can't be worked on, 0 partitions; ") {
		t.Errorf("%+v", r)
	}
	if r = call(t, rig.environ, "status", "-o", "json"); !strings.Contains(r.stdout, `"faulty_topics": 1`) {
		t.Errorf("%+v", r)
	}
}

// A start at a place that was written to, with a Redis that remembers nothing, asks
// whether that is meant.
func TestAStartWithoutWhatWasThere(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "", "2 of 2 sealed segments moved")
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	const asks = "and redis remembers no topic that was ever offloaded: has redis lost its data, or is this another redis?"
	rig.server.Exec("FLUSHALL")
	rig.setMarker(t, "") // as versions put it that knew no cluster
	if r := call(t, rig.environ, "run", "--once"); r.code != exitDone || strings.Count(r.stderr, asks) != 1 || !strings.Contains(r.stderr, " has been written to since 20") {
		t.Errorf("%+v", r)
	}
	root := strings.TrimPrefix(rig.environ[1], "KORVET_STORAGE_REMOTE_PATH=file://")
	if err := os.Remove(filepath.Join(root, s3sink.MarkerKey)); err != nil {
		t.Fatal(err)
	}
	if r := call(t, rig.environ, "run", "--once"); r.code != exitDone || strings.Contains(r.stderr, asks) {
		t.Errorf("without a marker: %+v", r)
	}
}

// A run after restore --manifests complains of nothing: what the manifests tell of is
// not lost. As long as they tell of nothing, it asks.
func TestAFirstRunAfterRestore(t *testing.T) {
	r := newLossRig(t)
	r.server.Exec("FLUSHALL")
	mustCall(t, r.environ, exitDone, "restore", "--claim", "--yes")
	if got := call(t, r.environ, "run", "--once"); got.code != exitDone || !strings.Contains(got.stderr, "has redis lost its data, or is this another redis?") {
		t.Errorf("emptied and claimed: %+v", got)
	}
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "--registry", "--yes")
	mustRead(t, call(t, r.environ, "run", "--once"), exitDone, "", "0 of 0 sealed segments moved")
}

// A manifest in which no segment is OPEN is legal, and worth a note.
func TestVerifyWithoutAnOpenSegment(t *testing.T) {
	rig := newRig(t)
	mustCall(t, rig.environ, exitDone, "run", "--once")
	mustRead(t, call(t, rig.environ, "verify", "--notes"), exitDone, "", "; nothing is wrong, 1 note\n") // of an overlap
	rig.server.Exec("HDEL", "korvet:storage:manifest:orders:0", "2")
	rig.server.Exec("DEL", "korvet:storage:local:orders:0:2")
	mustRead(t, call(t, rig.environ, "verify", "--notes"), exitDone, "", "note: gap  orders:0/2  no segment is OPEN, after 1: a broker may open the next one by itself; ", "; nothing is wrong, 2 notes\n")
	rig.server.Exec("HSET", "korvet:storage:manifest:orders:0", "2", "no entry")
	got := call(t, rig.environ, "verify", "--notes")
	if got.code != exitFault || strings.Contains(got.stdout, "no segment is OPEN") {
		t.Errorf("%+v", got)
	}
}
