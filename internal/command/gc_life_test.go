package command

import (
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/redisstore"
	"korvet-offload/segment"
)

// writeAnew makes topic orders of an emptied Redis, with other messages.
func (r rig) writeAnew(t *testing.T) {
	t.Helper()
	s, err := redisstore.Open(t.Context(), redisstore.Config{URI: r.server.URI()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := broker.New(s.Client(), segment.DefaultLayout())
	if err := b.CreateTopic(t.Context(), "orders", 1); err != nil {
		t.Fatal(err)
	}
	for n := range segment.Number(3) {
		err := b.Write(t.Context(), broker.Segment{Partition: segment.Partition{Topic: "orders"}, Number: n, Seed: uint64(n) + 100, Count: 12,
			ValueBytes: 100, Open: n == 2, SealedAt: time.Now().Add(-time.Hour)}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}

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
			rig.writeAnew(t)
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
