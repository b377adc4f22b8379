package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Of an open segment ls says what is in its stream; of one that shares its stream
// only where that takes no counting.
func TestLsOfOpenSegments(t *testing.T) {
	r, _ := movedRig(t)
	r.server.Exec("DEL", "korvet:storage:local:orders:0:2")
	mustRead(t, call(t, r.environ, "ls", "orders:0/2"), exitDone, "", "      2  open          0  -         -        ")
	r.server.Exec("XADD", "korvet:storage:local:orders:0:2", "1700000000000-0", "f", "v")
	r.server.Exec("XADD", "korvet:storage:local:orders:0:2", "1700000000005-0", "f", "v")
	mustRead(t, call(t, r.environ, "ls", "orders:0/2"), exitDone, "", "      2  open          2  1700000000000-0  1700000000005-0  2023-11-14T22:13:20Z")
	r.server.Exec("DEL", "korvet:storage:local:orders:0:2")
	r.server.Exec("SET", "korvet:storage:local:orders:0:2", "x")
	if got := call(t, r.environ, "ls", "orders:0"); got.code != exitFault || !strings.Contains(got.stdout, "      2  open ") || !strings.Contains(got.stderr, "it is a string") {
		t.Errorf("%+v", got)
	}
}

func TestLsOfOpenRanges(t *testing.T) {
	r := newRig(t)
	r.environ = append(r.environ, "KORVET_STREAMS_0_KEY=events", "KORVET_STREAMS_0_SEGMENT_ENTRIES=2")
	for _, id := range []string{"1-0", "2-0", "3-0", "4-0", "5-0"} {
		r.server.Exec("XADD", "events", id, "value", id)
	}
	for range 3 {
		mustCall(t, r.environ, exitDone, "run", "--once", "--seal-grace", "0")
	}
	mustRead(t, call(t, r.environ, "ls", "--stream", "events"), exitDone, "", "  open               -  -         5-0 ")
	r.server.Exec("XTRIM", "events", "MINID", "5-0")
	mustRead(t, call(t, r.environ, "ls", "--stream", "events"), exitDone, "", "  open               1  5-0       5-0 ")
}

// What lies there of another namespace is said to be that, and counts as no topic.
func TestLsOfOtherNamespaces(t *testing.T) {
	r, folder := movedRig(t)
	whole, err := os.ReadFile(filepath.Join(folder, "0.parquet"))
	spoil(t, err)
	for _, other := range []string{"demo-1:storage:local:orders:0", "a:b:storage:local:orders:1", "events", "my:storage:local:notes"} {
		dir := filepath.Join(filepath.Dir(folder), other)
		spoil(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "0.parquet"), whole, 0o600))
	}
	got := call(t, r.environ, "ls", "--from-store", "-o", "csv")
	mustRead(t, got, exitDone, "", "\norders,false,1,2,", "\nevents,true,1,1,", "\nmy:storage:local:notes,true,1,1,",
		"\n(of namespace a:b),false,1,1,", ",a:b\n", "\n(of namespace demo-1),false,1,1,", ",demo-1\n")
	if strings.Contains(got.stdout, "storage:local:orders") || strings.Count(got.stdout, "\n") != 6 {
		t.Errorf("%s", got.stdout)
	}
	mine := append(slices.Clone(r.environ), "KORVET_STREAMS_0_KEY=demo-1:storage:local:orders:0")
	mustRead(t, call(t, mine, "ls", "--from-store", "-o", "csv"), exitDone, "", "\ndemo-1:storage:local:orders:0,true,1,1,")
}
