package command

import (
	"slices"
	"strings"
	"testing"
)

// Of a name that is misspelt nothing is wrong, and so nothing is said of it.
func TestNamesThatNothingKnows(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	for args, what := range map[string]string{
		"verify nope:0": "partition nope:0", "repair nope:0": "partition nope:0", "verify orders:1": "partition orders:1", "verify --topic nope": "topic nope",
		"repair --topic nope": "topic nope", "gc --topic nope": "topic nope", "gc --stream nope": "stream nope", "verify --stream nope": "stream nope",
	} {
		r := call(t, rig.environ, strings.Fields(args)...)
		want := "korvet-offload: " + what + ": it is in no registry, has no manifest, and there is no object of it on the store; is the name right?\n"
		if r.code != exitFault || r.stdout != "" || r.stderr != want {
			t.Errorf("%s: exit %d %s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	for _, verb := range []string{"ls", "status"} {
		r := call(t, append(slices.Clone(rig.environ), "KORVET_NAMESPACE=other"), verb)
		if want := "korvet-offload: warning: namespace other has no topic and no plain stream: "; r.code != exitDone || !strings.HasPrefix(r.stderr, want) {
			t.Errorf("%s: %+v", verb, r)
		}
	}
	rig.server.Exec("DEL", "korvet:topics")
	rig.server.Exec("HDEL", "korvet:storage:offload:topics", "orders")
	for _, args := range []string{"verify orders:0", "verify --topic orders", "gc --topic orders"} {
		if r := call(t, rig.environ, strings.Fields(args)...); strings.Contains(r.stderr, "is the name right?") {
			t.Errorf("%s: %s", args, r.stderr)
		}
	}
}
