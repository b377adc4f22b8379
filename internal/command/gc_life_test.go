package command

import (
	"testing"
	"time"
)

// A Redis that was emptied goes on below its root where the marker names no
// cluster, and with restore --claim. The objects of before lie at the first
// copies' paths then, and are the only ones of their messages.
//
//fault:store | Objects of an earlier life of Redis lie where older copies would | FLUSHALL under a marker without a cluster, or restore --claim; the same topic with other messages; gc --yes | The earlier objects stay, with the reason
func TestGCLeavesWhatIsOfAnEarlierLife(t *testing.T) {
	for name, begin := range map[string]func(rig rig){
		"marker without a cluster": func(rig rig) { rig.setMarker(t, ""); rig.server.Exec("FLUSHALL") },
		"claimed": func(rig rig) {
			rig.server.Exec("FLUSHALL")
			mustRead(t, call(t, rig.environ, "restore", "--claim", "--yes"), exitDone, "")
		},
		"the id alone is lost later": func(rig rig) {
			rig.server.Exec("FLUSHALL")
			rig.server.Exec("HSET", "korvet:storage:offload:topics", "x", "{}")
		},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t)
			mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
			begin(rig)
			writeOrders(t, rig.server, 100, 12) // other messages
			call(t, rig.environ, "run", "--once")
			call(t, rig.environ, "run", "--once")
			rig.age(t, 10*24*time.Hour)
			before := rig.files(t)
			if len(before) != 4 {
				t.Fatalf("%q", before)
			}
			mustRead(t, call(t, rig.environ, "gc", "--yes"), exitDone, "", "leave "+gcFolder+"/0.parquet", "leave "+gcFolder+"/1.parquet", "another life")
			rig.mustHave(t, before...)
		})
	}
}
