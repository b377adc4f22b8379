package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/segment"
)

// namesRig is a movedRig with a second partition, orders:1, of one open segment, and
// a plain stream with two segments on the store.
func namesRig(t *testing.T) (r rig, folder string) {
	t.Helper()
	r, folder = movedRig(t)
	r.server.Exec("HSET", "korvet:topic:orders", "partitions", "2")
	r.environ = append(r.environ, "KORVET_STREAMS_0_KEY=events", "KORVET_STREAMS_0_SEGMENT_ENTRIES=2")
	for _, id := range []string{"1-0", "2-0", "3-0", "4-0"} {
		r.server.Exec("XADD", "events", id, "value", id)
	}
	for range 3 {
		mustCall(t, r.environ, exitDone, "run", "--once", "--seal-grace", "0")
	}
	return r, folder
}

// Every verb that takes names takes them alike.
func TestNamesOfEveryVerb(t *testing.T) {
	r, _ := namesRig(t)
	for args, want := range map[string]string{
		"ls orders":                           "orders:0          3 ",
		"ls orders:0/1":                       "      1  both tiers ",
		"ls orders:0/0,2 orders:1":            "orders:1         0  open ",
		"ls orders:0/1 --from-store":          "korvet:storage:local:orders:0/1.parquet\n",
		"ls orders:0/1 orders:0 --compare":    "      2  not copied ",
		"ls --stream events 0":                "      0  both tiers ",
		"describe orders:0/0-1 orders:1/0":    "segment   orders:1/0",
		"describe --stream events 0":          "segment   events/0",
		"cat orders:0/2":                      "1708956789000-0",
		"cat orders:0/0,1":                    "1708956789000-0",
		"cat --stream events 0":               `{"id":"1-0","fields":[["value","1-0"]]}`,
		"cat --stream events 0 --from-store":  `{"id":"2-0","fields":[["value","2-0"]]}`,
		"verify orders":                       "2 partitions, 4 segments, ",
		"verify --topic orders":               "2 partitions, 4 segments, ",
		"verify orders:0":                     "1 partition, 3 segments, 2 objects; ",
		"verify orders:0/1 --deep":            "1 partition, 1 segment, 1 object; read 1 object ",
		"verify orders:0/0-1 orders:1 --deep": "2 partitions, 3 segments, 2 objects; read 2 objects ",
		"verify --stream events 0 --deep":     "1 partition, 1 segment, 1 object; read 1 object ",
		"repair orders":                       "0 findings",
		"repair orders:0/1 orders:1/0":        "0 findings",
		"repair --stream events 0":            "0 findings",
		"gc orders":                           "2 objects (",
		"gc orders:0/1":                       "1 object (",
		"gc --stream events 0":                "1 object (",
		"restore orders:0/1":                  "1 segment with 10 messages would be restored",
		"restore orders:0 --segment 1":        "1 segment with 10 messages would be restored",
		"restore --stream events 0":           "1 segment with 2 messages would be restored",
		"restore --manifests orders:0":        "orders:0   there ",
		"restore --manifests --topic orders":  "orders:0   there ",
		"restore --manifests --stream events": "events     there ",
		"restore --manifests orders payments": "orders:0   there ",
	} {
		if got := call(t, r.environ, strings.Fields(args)...); got.code != exitDone || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: exit %d, no %q in\n%s%s", args, got.code, want, got.stdout, got.stderr)
		}
	}
	for args, want := range map[string]string{
		"verify orders:0/9":             "segment orders:0/9: it has no entry, and there is no object of it on the store; korvet-offload ls lists those that there are",
		"repair orders:0/0-1,5,7-8":     "segment orders:0/5,7-8: it has no entry, ",
		"gc --stream events 7":          "segment events/7: it has no entry, ",
		"cat orders:0/0,9":              "segment orders:0/9: there is none; korvet-offload ls lists those that there are",
		"cat orders:0/9 --from-store":   "segment orders:0/9: there is none; ",
		"ls orders:0/0,8-9":             "segment orders:0/8-9: it has no entry",
		"ls orders:0/1,9 --from-store":  "segment orders:0/9: nothing of it lies in the bucket",
		"ls orders:0/9 --compare":       "segment orders:0/9: there is neither an entry nor an object of it",
		"ls nope orders":                "topic nope: it is in no registry, and was not offloaded before",
		"ls nope orders --from-store":   "topic nope: nothing of it lies in the bucket",
		"describe orders:0/9":           "segment orders:0/9: there is neither an entry nor an object of it",
		"describe orders:0/1,9 -o json": "segment orders:0/9: there is neither an entry nor an object of it",
		"restore orders:0/9":            "segment orders:0/9: it has no entry, ",
		"restore orders:0/1 orders:2":   "partition orders:2: it is in no registry, ",
	} {
		if got := call(t, r.environ, strings.Fields(args)...); got.code != exitFault || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: exit %d, no %q in\n%s%s", args, got.code, want, got.stdout, got.stderr)
		}
	}
}

// What is wrong with a segment is told of to who asks for it, and to nobody else.
func TestOnlyTheSegmentsThatAreNamed(t *testing.T) {
	r, folder := namesRig(t)
	spoil(t, os.WriteFile(filepath.Join(folder, "0.parquet"), []byte("short"), 0o600))
	for args, code := range map[string]int{
		"verify orders:0/1": exitDone, "verify orders:1": exitDone, "verify orders:0/0": exitFault, "verify orders": exitFault, "verify orders:0/1 --deep": exitDone,
	} {
		got := call(t, r.environ, strings.Fields(args)...)
		if got.code != code || strings.Contains(got.stdout, "truncated  orders:0/0") != (code == exitFault) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	report := filepath.Join(t.TempDir(), "found.json")
	spoil(t, os.WriteFile(report, []byte(call(t, r.environ, "verify", "-o", "json").stdout), 0o600))
	mustRead(t, call(t, r.environ, "repair", "orders:0/1", "--report", report, "--yes"), exitDone, "", "0 findings")
	mustRead(t, call(t, r.environ, "repair", "orders:0/0", "--report", report), exitDone, "", "would: recopy  orders:0/0")
	mustRead(t, call(t, r.environ, "repair", "orders:0/0", "--yes"), exitDone, "", "1 healed")
	mustRead(t, call(t, r.environ, "verify", "orders:0/0", "--deep"), exitDone, "", "nothing is wrong")
}

// In JSON a single partition, or segment, is what it always was, and several are a
// list.
func TestSeveralInJSON(t *testing.T) {
	r, _ := namesRig(t)
	var one struct{ Partition string }
	var many struct{ Partitions, Segments []struct{ Partition string } }
	for args, into := range map[string]any{
		"restore orders:0": &one, "describe orders:0/1": &one,
		"restore orders:0/0 orders:1": &many, "describe orders:0/0-1": &many, "ls orders:0 orders:1": &many,
	} {
		got := call(t, r.environ, append(strings.Fields(args), "-o", "json")...)
		if err := json.Unmarshal([]byte(got.stdout), into); err != nil {
			t.Errorf("%s: %v in %+v", args, err, got)
		}
	}
	if one.Partition != "orders:0" || len(many.Partitions) != 2 || len(many.Segments) < 2 || many.Segments[1].Partition != "orders:0" {
		t.Errorf("%+v %+v", one, many)
	}
}

// pause and resume take a topic by its name alone.
func TestPauseByName(t *testing.T) {
	r := newRig(t)
	mustRead(t, call(t, r.environ, "pause", "orders"), exitDone, "", "paused: topic orders since ")
	mustRead(t, call(t, r.environ, "resume", "orders"), exitDone, "", "nothing is paused")
}

// Segments that are named of one partition hide nothing of another that is named whole.
func TestSegmentsOfOneHideNothingOfAnother(t *testing.T) {
	r, _ := namesRig(t)
	r.server.Exec("HSET", "korvet:storage:manifest:orders:1", "x", "y")
	for _, verb := range []string{"verify orders:1", "verify orders:0/0 orders:1", "repair orders:0/0 orders:1"} {
		if got := call(t, r.environ, strings.Fields(verb)...); got.code != exitFault || !strings.Contains(got.stdout, `field "x" of the manifest is no segment id`) {
			t.Errorf("%s: exit %d\n%s%s", verb, got.code, got.stdout, got.stderr)
		}
	}
	if got := call(t, r.environ, "verify", "orders:0/0", "orders:1/0"); got.code != exitDone {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// A topic of which one partition is named is not registered while another one, which
// has files, lacks its manifest, and never with fewer partitions than have files.
func TestRestoreOfAPartitionRegistersNoPart(t *testing.T) {
	r := newRig(t)
	b := brokerOf(t, r.server)
	spoil(t, b.CreateTopic(t.Context(), "payments", 2))
	for p := range 2 {
		spoil(t, b.Write(t.Context(), broker.Segment{Partition: segment.Partition{Topic: "payments", Number: p}, Seed: uint64(p), Count: 10, ValueBytes: 100, SealedAt: time.Now().Add(-time.Hour)}, nil))
	}
	mustCall(t, r.environ, exitDone, "run", "--once")
	r.server.Exec("FLUSHALL")
	for _, named := range []string{"payments:0", "payments:1"} {
		got := mustCall(t, r.environ, exitFault, "restore", "--manifests", named, "--registry", "--yes")
		if !strings.Contains(got.stderr, "topic payments: it is not registered while payments:") || r.server.Exec("EXISTS", "korvet:topics", "korvet:topic:payments") != "0" {
			t.Errorf("%s: %s%s", named, got.stdout, got.stderr)
		}
		r.server.Exec("FLUSHALL")
	}
	mustCall(t, r.environ, exitFault, "restore", "--manifests", "payments:1", "--registry", "--yes")
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "payments:0", "--registry", "--yes")
	if got := r.server.Exec("HGET", "korvet:topic:payments", "partitions"); got != "2" {
		t.Errorf("%s partitions", got)
	}
}
