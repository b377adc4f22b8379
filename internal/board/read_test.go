package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// names lists what a query gives.
func (r *rig) names(q Query) (topics, partitions string) {
	s := r.board.Status(q)
	var t, p []string
	for _, one := range s.Topics.Items {
		t = append(t, one.Topic)
	}
	for _, one := range s.Partitions.Items {
		p = append(p, segment.Partition{Topic: one.Topic, Number: one.Partition, Plain: one.Plain}.String())
	}
	return strings.Join(t, " "), strings.Join(p, " ")
}

func TestWhatIsAskedFor(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rso", "rrro"}, "payments": {"rsssso"}, "Pay-outs": {"o"}, "stream:clicks": {"bo"}})
	r.lead()
	r.board.Failed(offload.Problem{Topic: "payments", Partition: 0, Segment: "2", Reason: offload.ReasonStore, Err: errors.New("x")})
	for _, tt := range []struct {
		name       string
		q          Query
		topics     string
		partitions string
	}{
		{"all, by name", Query{Limit: 9, TopicLimit: 9}, "Pay-outs orders payments stream:clicks", "Pay-outs:0 orders:0 orders:1 payments:0 stream:clicks"},
		{"none", Query{}, "", ""},
		{"a page", Query{Offset: 1, Limit: 2, TopicOffset: 3, TopicLimit: 2}, "stream:clicks", "orders:0 orders:1"},
		{"past the end", Query{Offset: 99, Limit: 2, TopicOffset: 99, TopicLimit: 2}, "", ""},
		{"before the beginning", Query{Offset: -5, Limit: 1}, "", "Pay-outs:0"},
		{"one topic", Query{Topic: "pay", Limit: 9, TopicLimit: 9}, "", ""},
		{"part of a name", Query{Contains: "PAY", Limit: 9, TopicLimit: 9}, "Pay-outs payments", "Pay-outs:0 payments:0"},
		{"what waits", Query{Only: Behind, Limit: 9}, "", "orders:0 payments:0"},
		{"what is stuck", Query{Only: Stuck, Limit: 9}, "", "payments:0"},
		{"the longest wait", Query{Sort: ByLag, Limit: 9, TopicLimit: 9}, "payments orders Pay-outs stream:clicks", "payments:0 orders:0 Pay-outs:0 orders:1 stream:clicks"},
		{"the largest", Query{Sort: BySize, Limit: 2, TopicLimit: 1}, "orders", "orders:1 orders:0"},
		{"the most stuck", Query{Sort: ByStuck, Limit: 1, TopicLimit: 1}, "payments", "payments:0"},
	} {
		if topics, partitions := r.names(tt.q); topics != tt.topics || partitions != tt.partitions {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, topics, partitions, tt.topics, tt.partitions)
		}
	}
	one := r.board.Status(Query{Topic: "orders", Limit: 1, TopicLimit: 9})
	if one.Topics.Total != 1 || one.Topics.Items[0].Partitions != 2 || one.Topics.Items[0].Sealed != 1 || one.Partitions.Total != 2 {
		t.Errorf("%+v", one.Topics)
	}
	if _, _, known := r.board.Partition(segment.Partition{Topic: "stream:clicks"}); known {
		t.Error("a topic is taken for the stream of that name")
	}
}

func TestWhatIsPaused(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"o"}, "payments": {"o"}, "stream:clicks": {"o"}})
	r.world.Pauses = segment.Pauses{List: []segment.Pause{
		{Scope: segment.Scope{Topic: "orders"}, Since: start(), By: "eve@host", Reason: "store is being moved"},
		{Scope: segment.Scope{Stream: "stream:clicks"}, Err: errors.New("can't be read")},
	}}
	r.lead()
	s := r.board.Status(Query{Limit: 5, TopicLimit: 5})
	paused := map[string]bool{}
	for _, topic := range s.Topics.Items {
		paused[topic.Topic] = topic.Paused
	}
	for _, p := range s.Partitions.Items {
		paused[p.Topic] = paused[p.Topic] && p.Paused
	}
	if !paused["orders"] || paused["payments"] || !paused["stream:clicks"] {
		t.Errorf("%v", paused)
	}
	if p := s.Paused[0]; p.Scope != "topic" || p.Name != "orders" || !p.Since.Equal(start()) || p.By != "eve@host" || p.Reason != "store is being moved" {
		t.Errorf("%+v", p)
	}
	if p := s.Paused[1]; p.Scope != "stream" || p.Since != nil || p.Error != "can't be read" {
		t.Errorf("%+v", p)
	}
	r.board.SetPaused(segment.Pauses{List: []segment.Pause{{}}})
	if s := r.board.Status(Query{Limit: 5}); s.Paused[0].Scope != ScopeAll || !s.Partitions.Items[1].Paused || s.Health.Level != LevelWaiting {
		t.Errorf("%+v %+v", s.Paused, s.Health)
	}
}

// A manifest that can't be read keeps its timeline, and says so.
func TestAManifestThatCantBeRead(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rso"}})
	r.lead()
	before := r.runs(orders(0))
	s := offload.Scan{At: start(), Partitions: []offload.PartitionScan{{Partition: orders(0), Err: errors.New("torn")}}}
	r.board.Scanned(&s)
	p, _, _ := r.board.Partition(orders(0))
	if p.Error != "torn" || short(p.Runs) != before || r.board.Status(Query{Only: Stuck}).Partitions.Total != 1 {
		t.Errorf("%q, %s", p.Error, short(p.Runs))
	}
	r.scan()
	if p, _, _ := r.board.Partition(orders(0)); p.Error != "" {
		t.Error(p.Error)
	}
}

func TestOneSentence(t *testing.T) {
	down := []Outage{{Part: "redis", Text: "redis does not answer.", Since: start().Add(-time.Hour)}}
	for _, tt := range []struct {
		name    string
		letters string
		change  func(*rig)
		level   Level
		want    string
	}{
		{"well", "rro", nil, LevelGood, "All is well: every sealed segment is on the store."},
		{"one waits", "rso", nil, LevelGood, "All is well: 1 segment waits to be copied, within what is allowed."},
		{"behind", "sssso", nil, LevelBad, "Behind: the oldest sealed segment has waited 5 min, and 2 min are allowed."},
		{"stuck", "ro", func(r *rig) { r.board.Failed(problem("1", offload.ReasonStore)) }, LevelWarning, "Working, but 1 thing is stuck; all else goes on."},
		{"lost", "ro", func(r *rig) { r.board.Failed(problem("1", offload.ReasonSourceMissing)) }, LevelBad, "Data seems to be lost, or out of every reader's sight: see 1 problem below."},
		{"down", "ro", func(r *rig) { r.board.sources.Outages = func() []Outage { return down } }, LevelBad, "No work can be done, for 60 min now: redis does not answer."},
		{"dead", "ro", func(r *rig) { r.board.sources.Alive = func() error { return errors.New("it hangs") } }, LevelBad, "A restart is needed: it hangs."},
		{"off", "ro", func(r *rig) { r.board.cfg.Enabled = false }, LevelWaiting, "Offloading is switched off by korvet.storage.offload.enabled."},
		{"follows", "ro", func(r *rig) { r.board.Follows() }, LevelWaiting, "Another instance leads; this one waits to take over."},
		{"a share", "ro", func(r *rig) { r.board.SetMembers([]Member{{Self: true, Shards: []int{1}, Of: 4}}) }, LevelGood,
			"All is well: every sealed segment is on the store. This is about this instance's share; the others show theirs."},
		{"lost the lead", "ro", func(r *rig) { r.board.Lost(errors.New("x")) }, LevelWaiting, "This instance has lost the lead, and asks for it again."},
		{"new", "ro", func(r *rig) { r.board.clear() }, LevelWaiting, "Starting: the first scan is not done yet."},
		{"a topic is paused", "ro", func(r *rig) {
			r.board.SetPaused(segment.Pauses{List: []segment.Pause{{Scope: segment.Scope{Topic: "orders"}}}})
		}, LevelWaiting, "Working, with 1 topic paused."},
	} {
		r := newRig(t, map[string][]string{"orders": {tt.letters}})
		r.lead()
		if tt.change != nil {
			tt.change(r)
		}
		if h := r.board.Overview().Health; h.Level != tt.level || h.Text != tt.want {
			t.Errorf("%s: %s %q, want %s %q", tt.name, h.Level, h.Text, tt.level, tt.want)
		}
	}
	empty := newRig(t, nil)
	if empty.lead(); empty.board.Overview().Health.Level != LevelWarning {
		t.Errorf("no topics: %+v", empty.board.Overview().Health)
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Hour: "0 ms", 0: "0 ms", 5: "<1 ms", 999 * time.Millisecond: "999 ms", 1500 * time.Millisecond: "1.5 s",
		59 * time.Second: "59 s", 119 * time.Second: "119 s", 2 * time.Minute: "2 min", 119 * time.Minute: "119 min", 2 * time.Hour: "2 h", 47 * time.Hour: "47 h", 100 * 24 * time.Hour: "100 days"} {
		if got := Ago(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// What is given out is not changed any more, and may be read while a pass works.
func TestReadersAndAPass(t *testing.T) {
	topics := map[string][]string{}
	for i := range 20 {
		topics[fmt.Sprintf("topic%02d", i)] = []string{"rrrbbbssssso", "rrro"}
	}
	r := newRig(t, topics)
	plan := r.lead()
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				s := r.board.Status(Query{Sort: ByLag, Limit: 100, TopicLimit: 100})
				if raw, err := json.Marshal(s); err != nil || len(raw) == 0 {
					t.Error(err)
				}
				r.board.Partition(segment.Partition{Topic: "topic00"})
			}
		})
	}
	for range 20 {
		r.scan()
		for n := segment.Number(6); n < 11; n++ {
			for topic := range topics {
				id := segment.Partition{Topic: topic}
				r.board.Finished(offload.Outcome{Partition: id, Segment: n, Result: offload.Copied})
				r.board.Failed(offload.Problem{Topic: topic, Segment: n.String(), Reason: offload.ReasonStore, Err: errors.New("x")})
			}
		}
		r.board.SetPaused(segment.Pauses{List: []segment.Pause{{}}})
		r.board.SetMembers([]Member{{ID: "a"}})
		r.board.SetSettings([]Setting{{Name: "a"}})
		r.board.Passed(offload.Report{Plan: plan}, nil)
	}
	r.board.Follows()
	close(done)
	readers.Wait()
}
