package metrics

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

func TestLagShrinksAsSegmentsAreCopied(t *testing.T) {
	b := newBench(t)
	b.LoopObserver().Leads()
	p := plan(named("a"), named("b"), named("idle"))
	waits(&p, "a", 1, 3*time.Minute, 100)
	waits(&p, "a", 2, time.Minute, 50)
	waits(&p, "b", 7, 30*time.Second, 1)
	b.Observer().Planned(p)
	b.must(map[string]string{
		"archive_lag_segments": "3", "archive_lag_bytes": "151", "archive_lag_oldest_seconds": "180", "sla_met": "0", "sla_seconds": "120",
		`topic_lag_segments{topic="a"}`: "2", `topic_lag_bytes{topic="a"}`: "150", `topic_lag_oldest_seconds{topic="b"}`: "30",
		`topic_lag_segments{topic="idle"}`: "0", `topic_lag_oldest_seconds{topic="idle"}`: "0", `topic_archive_segments_total{topic="a"}`: "0",
	})
	b.Observer().Finished(copied("a", 1))
	b.now = b.now.Add(10 * time.Second)
	b.must(map[string]string{
		"archive_lag_segments": "2", "archive_lag_bytes": "51", "archive_lag_oldest_seconds": "70", "sla_met": "1",
		"archive_segments_total": "1", "archive_bytes_total": "300", "archive_source_bytes_total": "1000", "archive_saved_bytes_total": "700",
		"archive_messages_total": "10", `archive_seconds_sum{result="success",tier="remote"}`: "2",
		`topic_archive_segments_total{topic="a"}`: "1", `topic_archive_bytes_total{topic="a"}`: "300", `topic_lag_oldest_seconds{topic="a"}`: "70",
	})
	b.Observer().Finished(copied("a", 1)) // not twice
	b.Observer().Finished(copied("a", 99))
	b.Observer().Finished(copied("a", 2))
	b.Observer().Finished(copied("b", 7))
	b.must(map[string]string{"archive_lag_segments": "0", "archive_lag_bytes": "0", "archive_lag_oldest_seconds": "0",
		`headroom_seconds{limit="total_retention"}`: ""})
}

func TestSLACanBeUnknown(t *testing.T) {
	unread := plan(named("a"))
	unread.Problems = []offload.Problem{{Topic: "a", Reason: offload.ReasonRedis}}
	undated := plan(named("a"))
	undated.Waiting = []offload.Waiting{{Partition: segment.Partition{Topic: "a"}, Bytes: 5}}
	for name, p := range map[string]offload.Plan{"unread": unread, "undated": undated} {
		b := newBench(t)
		b.Observer().Planned(p)
		b.must(map[string]string{"sla_met": "", "archive_lag_segments": fmt.Sprint(len(p.Waiting)), "archive_lag_unknown_segments": fmt.Sprint(len(p.Waiting))})
		waits(&p, "a", 1, 3*time.Minute, 100)
		b.Observer().Planned(p)
		if got := b.scrape()["korvet_storage_sla_met"]; got != "0" {
			t.Errorf("%s: broken all the same, and it says %q", name, got)
		}
	}
}

func TestHeadroomOfRetention(t *testing.T) {
	b := newBench(t)
	p := plan(named("a"), named("b"), named("sized"))
	p.Topics[0].Settings.LocalRetentionMs, p.Topics[0].Settings.RetentionMs = 60_000, 600_000
	p.Topics[1].Settings.RetentionMs = -1
	p.Topics[2].Settings.RetentionMs, p.Topics[2].Settings.RetentionBytes = -1, 100
	p.Topics[2].Total = offload.Headroom{Limited: true}
	waits(&p, "a", 1, 90*time.Second, 1)
	waits(&p, "a", 2, 20*time.Second, 1)
	waits(&p, "b", 1, time.Hour, 1)
	waits(&p, "sized", 1, time.Hour, 1)
	b.Observer().Planned(p)
	b.must(map[string]string{
		`headroom_seconds{limit="local_retention"}`: "-30", `headroom_seconds{limit="total_retention"}`: "0", `headroom_seconds{limit="maxmemory"}`: "",
		`topic_headroom_seconds{limit="local_retention",topic="a"}`: "-30", `topic_headroom_seconds{limit="total_retention",topic="a"}`: "510",
		`topic_headroom_seconds{limit="local_retention",topic="b"}`: "", `topic_headroom_seconds{limit="total_retention",topic="sized"}`: "0",
	})
	b.Observer().Finished(copied("a", 1))
	b.Observer().Finished(copied("sized", 1))
	b.now = b.now.Add(5 * time.Second)
	b.must(map[string]string{
		`headroom_seconds{limit="local_retention"}`: "35", `headroom_seconds{limit="total_retention"}`: "575",
		`topic_headroom_seconds{limit="total_retention",topic="sized"}`: "",
	})
}

func TestHeadroomOfMemory(t *testing.T) {
	b := newBench(t)
	limit := `headroom_seconds{limit="maxmemory"}`
	b.SetMemory("n", 100, 1000)
	b.must(map[string]string{limit: "", "redis_used_memory_bytes": "100", "redis_max_memory_bytes": "1000"})
	b.now = b.now.Add(10 * time.Second)
	b.SetMemory("n", 900, 1000)
	b.must(map[string]string{limit: ""}) // too short a time
	b.now = b.now.Add(20 * time.Second)
	b.SetMemory("n", 400, 1000) // 300 in 30 s
	b.must(map[string]string{limit: "60"})
	b.SetMemory("n", 50, 1000)
	b.must(map[string]string{limit: ""}) // it does not fill
	b.SetMemory("n", 1100, 1000)
	b.must(map[string]string{limit: "0"})
	b.SetMemory("another", 400, 1000)
	b.must(map[string]string{limit: ""})
	for range 100 { // only the last minutes count
		b.now = b.now.Add(time.Minute)
		b.SetMemory("another", 400, 1000)
	}
	if n := len(b.state.memory.looks); n != 11 {
		t.Errorf("%d looks are kept", n)
	}
	b.SetMemory("another", 500, 0)
	b.must(map[string]string{limit: "", "redis_max_memory_bytes": "0"})
}

// What a leader knows goes with its lead, and so does what it was.
func TestALostLeadership(t *testing.T) {
	for name, lose := range map[string]func(offload.LoopObserver){
		"lost":    func(o offload.LoopObserver) { o.Lost(errors.New("expired")) },
		"follows": func(o offload.LoopObserver) { o.Follows() },
	} {
		b := newBench(t)
		b.LoopObserver().Leads()
		p := plan(named("a"))
		waits(&p, "a", 1, time.Minute, 1)
		b.Observer().Planned(p)
		b.Observer().Finished(copied("a", 1))
		b.LoopObserver().Passed(offload.Report{Plan: p}, nil)
		before := b.scrape()
		b.must(map[string]string{"leader": "1", "shards_held": "1", "pass_last_success_timestamp_seconds": "1e+06"})
		lose(b.LoopObserver())
		after := b.scrape()
		for series := range before {
			m := rowOf(t, cutLabels(series))
			leads := m.scope == withScan || m.scope == perTopic || m.scope == withSuccess
			if _, still := after[series]; still == leads {
				t.Errorf("%s: %s is there: %t", name, series, still)
			}
		}
		b.must(map[string]string{"leader": "0", "shards_held": "0", "archive_segments_total": "1"})
		b.LoopObserver().Passed(offload.Report{Plan: p}, errors.New("cut short")) // the pass that was under way
		b.Observer().Finished(copied("a", 1))
		b.must(map[string]string{"archive_lag_segments": "", "archive_segments_total": "2"})
	}
}

func cutLabels(series string) string {
	for i, c := range series {
		if c == '{' {
			return series[:i]
		}
	}
	return series
}

func TestParked(t *testing.T) {
	b := newBench(t)
	o, loop := b.Observer(), b.LoopObserver()
	stuck := offload.Problem{Topic: "a", Partition: 0, Segment: "3", Reason: offload.ReasonSourceMissing}
	broken := offload.Problem{Topic: "bad topic", Partition: -1, Reason: offload.ReasonTopicName}
	clock := offload.Problem{Partition: -1, Reason: offload.ReasonClock}
	p := plan(named("a"))
	p.Problems = []offload.Problem{broken, clock}
	o.Planned(p)
	o.Failed(stuck)
	want := map[string]string{
		`parked{reason="source_missing"}`: "1", `parked{reason="topic_name"}`: "1", `parked{reason="clock_jump"}`: "1", `parked{reason="store"}`: "0",
		`topic_parked{reason="source_missing",topic="a"}`: "1", `topic_parked{reason="topic_name",topic="_other"}`: "1",
	}
	b.must(want)
	loop.Passed(offload.Report{Plan: p, Problems: []offload.Problem{stuck, stuck, broken, clock}}, nil) // one place counts once
	b.must(want)
	o.Planned(plan(named("a"))) // until the pass is over, nobody knows better
	b.must(map[string]string{`parked{reason="source_missing"}`: "1"})
	o.Finished(copied("a", 3))
	b.must(map[string]string{`parked{reason="source_missing"}`: "0", `parked{reason="topic_name"}`: "1"})
	loop.Passed(offload.Report{Plan: p}, errors.New("given up")) // and not all were looked at
	b.must(map[string]string{`parked{reason="topic_name"}`: "1"})
	loop.Passed(offload.Report{Plan: p, Outcomes: []offload.Outcome{{Result: offload.Held}, {Result: offload.Dropped}}}, nil)
	b.must(map[string]string{`parked{reason="topic_name"}`: "0", "held_segments": "1", `topic_parked{reason="topic_name",topic="_other"}`: ""})
}

func TestTopicsAreCapped(t *testing.T) {
	b := newBench(t, func(o *Options) { o.MaxTopics = 2 })
	p := plan(named("c"), named("a"), named("d"), offload.TopicLag{Topic: "str\x00m", Plain: true})
	for i, topic := range []string{"c", "a", "d", "d"} {
		waits(&p, topic, segment.Number(i), time.Minute, 10)
	}
	b.Observer().Planned(p)
	of := func(topic string) string { return fmt.Sprintf("topic_lag_segments{topic=%q}", topic) }
	b.must(map[string]string{of("c"): "1", of("a"): "1", of("d"): "", of("_other"): "2"})
	b.Observer().Finished(copied("d", 3))
	b.must(map[string]string{of("_other"): "1", `topic_archive_segments_total{topic="_other"}`: "1"})
	b.Observer().Planned(plan(named("a"), named("aa"), named("c"))) // who has a label keeps it
	b.must(map[string]string{of("c"): "0", of("a"): "0", of("aa"): "", of("_other"): "0"})
	b.Observer().Planned(plan(named("a"), named("aa"))) // c is gone: its place is free
	b.must(map[string]string{of("c"): "", of("aa"): "0", of("_other"): "", `topic_archive_segments_total{topic="c"}`: "",
		`topic_archive_segments_total{topic="_other"}`: ""})
	b.Observer().Planned(plan())
	if left := families(b.scrape(), "korvet_storage_topic_"); len(left) != 0 {
		t.Errorf("of topics that are gone there is still %q", left)
	}
}

func TestTopicsCanBeLeftAway(t *testing.T) {
	b := newBench(t, func(o *Options) { o.Topics = false })
	p := plan(named("a"))
	waits(&p, "a", 1, time.Minute, 10)
	p.Problems = []offload.Problem{{Topic: "a", Reason: offload.ReasonOther}}
	b.Observer().Planned(p)
	b.Observer().Finished(copied("a", 1))
	if left := families(b.scrape(), "korvet_storage_topic_"); len(left) != 0 {
		t.Errorf("%q", left)
	}
	b.must(map[string]string{"archive_lag_segments": "0", "archive_segments_total": "1", "topics": "1"})
}

// A topic and a plain stream of the same name share their series, and a key
// with unusual bytes does no harm.
func TestNamesOfStreams(t *testing.T) {
	b := newBench(t)
	b.Observer().Planned(plan(named("x"), offload.TopicLag{Topic: "x", Plain: true}, offload.TopicLag{Topic: "k\xff\"", Plain: true}, named("_other")))
	b.must(map[string]string{`topic_lag_segments{topic="x"}`: "0", `topic_lag_segments{topic="k%FF%22"}`: "0", `topic_lag_segments{topic="_other"}`: "0"})
}

func TestSetters(t *testing.T) {
	up := false
	b := newBench(t, func(o *Options) { o.Shards, o.Up = 4, func() bool { return up } })
	b.must(map[string]string{"worker_up": "0", "paused": "0", "paused_topics": "0", "shards": "4", "shards_held": "0", "upload_rate_limit_bytes": "0",
		"throttle_limit": "0", `redis_eviction_risk{risk="none"}`: ""})
	up = true
	b.SetPaused(true, 3)
	b.SetShards(2)
	b.SetUploadRate(1 << 20)
	b.SetEviction("streams")
	b.must(map[string]string{"worker_up": "1", "paused": "1", "paused_topics": "3", "shards_held": "2", "upload_rate_limit_bytes": "1.048576e+06",
		`redis_eviction_risk{risk="streams"}`: "1", `redis_eviction_risk{risk="none"}`: "0"})
	if got := b.scrape()[`korvet_application_build{goversion="go1",revision="abc",version="v1"}`]; got != "1" {
		t.Errorf("build: %q", got)
	}
}
