package command

import (
	"regexp"
	"strings"
	"testing"
)

// onePlural is "1 messages", and not "11 messages", "0.1 messages" or a 1 in a table.
var onePlural = regexp.MustCompile(`(^|[^0-9.,:/-])1 (other |more |unfinished )?(messages|segments|objects|files|entries|partitions|topics|streams|manifests|bytes|requests|findings|notes|steps|copies|uploads|keys|fields|instances|folders)\b`)

// Of one thing every verb speaks of one.
func TestOneOfAThing(t *testing.T) {
	r := newRig(t)
	r.environ = append(r.environ, "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0")
	for _, key := range []string{"korvet:storage:manifest:orders:0", streamKey + ":0", streamKey + ":1", streamKey + ":2"} {
		r.server.Exec("DEL", key)
	}
	r.server.Exec("XADD", streamKey+":0", "1700000000000-0", "f", "v")
	r.server.Exec("XADD", streamKey+":1", "1700000000001-0", "f", "v")
	r.server.Exec("HSET", manifestKey, "0", `{"v":1,"state":"SEALED","tier":"LOCAL","sealedAt":1}`, "1", `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
	said := func(args ...string) {
		got := call(t, r.environ, args...)
		if text := got.stdout + got.stderr; onePlural.MatchString(text) {
			t.Errorf("%q: %s", args, text)
		}
	}
	verbs := []string{"status", "ls", "ls orders:0", "ls --compare", "ls --from-store", "ls orders:0 --from-store --footers", "describe orders:0/0", "describe orders:0/1",
		"cat orders:0 --stats", "verify", "verify --deep --notes", "repair", "gc", "restore orders:0", "restore --manifests", "run --once --dry-run", "run --once", "doctor", "pause", "resume"}
	all := func() {
		for _, verb := range verbs {
			said(strings.Fields(verb)...)
		}
	}
	all()
	all() // with the segment on the store
	said("restore", "orders:0", "--yes")
	said("restore", "orders:0")
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "0")
	all() // with the local copy gone
	r.server.Exec("XADD", streamKey+":0", "1700000000000-0", "f", "v")
	all() // with a stray stream of one message
	r.server.Exec("DEL", streamKey+":0")
	said("restore", "orders:0", "--original", "--yes")
	r.server.Exec("HDEL", manifestKey, "0")
	all() // with an orphan
	r.server.Exec("FLUSHALL")
	all()
	said("restore", "--manifests", "--registry", "--yes")
	if !onePlural.MatchString("there is 1 messages") || onePlural.MatchString("11 messages, 0.1 messages, orders:1 messages") {
		t.Error("the pattern is wrong")
	}
}

// What the demo says at its end is typed as it stands.
func TestTheLastLinesOfTheDemo(t *testing.T) {
	demo := call(t, nil, "demo", "--messages", "160", "--dir", t.TempDir())
	typed := 0
	for line := range strings.Lines(demo.stdout) {
		args, ok := strings.CutPrefix(line, "  korvet-offload ")
		if !ok {
			continue
		}
		typed++
		got := call(t, nil, strings.Fields(args)...)
		want := map[bool]string{true: "orders  ", false: `{"id":"`}[strings.HasPrefix(args, "ls")]
		if got.code != exitDone || got.stderr != "" || !strings.Contains(got.stdout, want) {
			t.Errorf("%s: %+v", args, got)
		}
		if strings.HasPrefix(args, "cat") && strings.Count(got.stdout, "\n") != 5 {
			t.Errorf("%s: %s", args, got.stdout)
		}
	}
	if demo.code != exitDone || typed != 2 {
		t.Errorf("%d lines in %+v", typed, demo)
	}
	for text, want := range map[string]string{"file:///tmp/a-b": "file:///tmp/a-b", "a b": "'a b'", "it's": `'it'\''s'`} {
		if got := shellWord(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
