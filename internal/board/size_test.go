package board

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/scans"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// large is a rig of 10,000 partitions in 1,000 topics, each with that many
// segments on the store, and a few that are not settled.
func large(t testing.TB, history int) *rig {
	letters := strings.Repeat("r", history) + "bbbso"
	topics := map[string][]string{}
	for i := range 1000 {
		parts := make([]string, 10)
		for k := range parts {
			parts[k] = letters
		}
		topics[fmt.Sprintf("topic%03d", i)] = parts
	}
	r := newRig(t, topics)
	all := scans.States(letters, start())
	r.world.Fields = func(segment.Partition) map[string]string { return all }
	return r
}

func allocated() uint64 {
	runtime.GC()
	runtime.GC() // what the first has let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// The board costs a few hundred bytes per partition, and a tick in which nothing
// has changed allocates next to nothing.
func TestTheCostOfTenThousandPartitions(t *testing.T) {
	r := large(t, 3)
	s, plan, err := scans.Scan(t.Context(), r.worker, r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	before := allocated()
	r.board.Leads()
	r.board.Scanned(s)
	r.board.Planned(plan)
	const most = 1000
	if each := (allocated() - before) / 10_000; each > most {
		t.Errorf("%d bytes per partition, want %d at most", each, most)
	}
	first := r.board.parts[5000]
	if allocations := testing.AllocsPerRun(3, func() { r.board.Scanned(s) }); allocations > 100 {
		t.Errorf("a scan that is as it was makes %.0f allocations", allocations)
	}
	if r.board.parts[5000] != first {
		t.Error("a partition that is as it was is summed up again")
	}
	if got := r.board.Status(Query{Limit: 1000, TopicLimit: 1000}); got.Partitions.Total != 10_000 || got.Topics.Total != 1000 || len(got.Partitions.Items) != 1000 {
		t.Errorf("%d partitions, %d topics", got.Partitions.Total, got.Topics.Total)
	}
	runtime.KeepAlive(s)
	runtime.KeepAlive(plan)
}

// BenchmarkLarge is 10,000 partitions of 1,000 segments: the first scan, one in
// which nothing has changed, one in which all has, and a page.
func BenchmarkLarge(b *testing.B) {
	r := large(b, 1000)
	s, plan, err := scans.Scan(b.Context(), r.worker, r.cfg)
	if err != nil {
		b.Fatal(err)
	}
	before := allocated()
	begun := time.Now()
	r.board.Scanned(s)
	took, each := time.Since(begun), float64(allocated()-before)/10_000
	r.board.Planned(plan)
	b.Run("first", func(b *testing.B) {
		b.ReportMetric(each, "bytes/partition")
		b.ReportMetric(float64(took.Microseconds())/1000, "ms")
	})
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			r.board.Scanned(s)
		}
	})
	b.Run("changed", func(b *testing.B) {
		for b.Loop() {
			for i, p := range r.board.parts {
				q := *p
				q.mark = 0
				r.board.parts[i] = &q
			}
			r.board.Scanned(s)
		}
	})
	b.Run("page", func(b *testing.B) {
		for b.Loop() {
			r.board.Status(Query{Sort: ByLag, Limit: 50, TopicLimit: 25})
		}
	})
	b.Run("finished", func(b *testing.B) {
		for b.Loop() {
			r.board.Finished(offload.Outcome{Partition: segment.Partition{Topic: "topic500", Number: 3}, Segment: 1003, Result: offload.Copied})
		}
	})
}
