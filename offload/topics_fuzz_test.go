package offload

import (
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// What is remembered of a topic lies in Redis, where anything may have been put
// in its place: only a whole record of this version ever deletes data.
//
//fault:input | The record of a topic that is gone makes no sense | fuzzing of the Hash's field and value | the topic has a fault and nothing of it is deleted, and a record that is taken is read as it was written
func FuzzRecord(f *testing.F) {
	good := record{Settings: segment.DefaultTopicSettings(), RemovedAt: 5, Bare: true}
	f.Add("orders", good.encode(), int64(1<<41), true)
	f.Add("orders", `{"v":1,"settings":{"retention.ms":-5,"partitions":0},"removedAt":-1}`, int64(0), false)
	f.Add("orders", `{"v":1,"settings":{"RETENTION.MS":1,"retention.ms":1e3}}`, int64(7), true)
	f.Add("orders", `{"v":1,"v":2}`, int64(7), true)
	f.Add("../orders", `{"v":1}`, int64(7), false)
	f.Add("", `null`, int64(7), false)
	f.Fuzz(func(t *testing.T, topic, raw string, now int64, doomed bool) {
		r, err := parseRecord(topic, raw)
		if err == nil {
			checkRecord(t, topic, r)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\r\n") {
			t.Fatalf("more than one line: %q", err)
		}
		cfg := DefaultConfig()
		cfg.DeleteRemovedTopics = doomed
		gone := newRoster(nil, map[string]string{topic: raw}, false, cfg, time.UnixMilli(now))
		if len(gone.states) != 1 {
			t.Fatalf("one record makes %d topics", len(gone.states))
		}
		if s := gone.states[0]; err != nil && (s.Topic.Err == nil || len(gone.notes) > 0 || s.Phase == Doomed) {
			t.Fatalf("a record that is none (%v) gives %+v and is written as %q", err, s, gone.notes)
		}
		for _, n := range gone.notes {
			if _, err := parseRecord(n.topic, n.new); err != nil || n.old != raw {
				t.Fatalf("%q is written as %q: %v", raw, n.new, err)
			}
		}
	})
}

// checkRecord: a record that was taken has settings to work with, and stays
// what it is.
func checkRecord(t *testing.T, topic string, r record) {
	t.Helper()
	s := r.Settings
	if r.RemovedAt < 0 || s.RetentionMs < -1 || s.RetentionBytes < -1 || s.LocalRetentionMs < -2 || s.LocalRetentionBytes < -2 ||
		s.SegmentMs < 1 || s.SegmentBytes < 1 || s.AverageMessageBytes < 0 || s.SegmentEntries < 0 {
		t.Fatalf("topic %s goes on with %+v", topic, r)
	}
	again, err := parseRecord(topic, r.encode())
	r.V = recordVersion
	if err != nil || again != r {
		t.Fatalf("%+v is read back as %+v, %v", r, again, err)
	}
}
