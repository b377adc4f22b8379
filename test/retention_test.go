package test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/segment"
)

// stopped ends a daemon, which has to end well.
func stopped(t *testing.T, p *process) {
	t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.wait(t, 20*time.Second); code != 0 || strings.Contains(p.log(), `"level":"error"`) {
		t.Errorf("exit %d\n%s", code, p.log())
	}
}

// entriesOf reads a manifest.
func (l *life) entriesOf(p segment.Partition) []segment.Stored {
	l.t.Helper()
	entries, err := l.broker.Entries(context.Background(), p)
	if err != nil {
		l.t.Fatal(err)
	}
	return entries
}

// A partition whose whole log is one stream is adopted: the stream becomes
// segment 0, rolls, is copied and removed like any other, while its producer
// goes on. A partition that is added meanwhile is picked up.
//
//fault:crash | The worker dies after it has adopted a stream | SIGKILL, and another worker | The adopted stream is copied and removed as its manifest says, and nothing is lost
func TestAdoptedStream(t *testing.T) {
	t.Parallel()
	l := newLife(t, newFileRig(t))
	l.topic("orders", 1, "retention.ms", "-1", "local.retention.ms", ms(lifeLocal), "segment.ms", ms(lifeSegment))
	l.watch.retention = 0
	base := l.layout.StreamKey(l.parts[0])
	first := l.everywhere()[0]
	first.Base = true
	l.begin(first)
	await(t, "the stream has grown", 20*time.Second, func() bool { return l.length(base) > 100 })

	worker := l.start("run")
	await(t, "the stream is adopted and rolled", 20*time.Second, func() bool { return len(l.entriesOf(l.parts[0])) > 1 })
	if e := l.entriesOf(l.parts[0])[0]; e.Entry.Key != base || e.Number != 0 {
		t.Errorf("the first entry is %s", e.Raw)
	}
	l.set("orders", "partitions", "2")
	await(t, "the second partition has a segment", 20*time.Second, func() bool { return len(l.entriesOf(l.parts[1])) > 0 })
	second := l.everywhere()[1]
	l.more(second)
	worker.kill() // what it knew is in the manifests
	worker = l.start("run")
	await(t, "the adopted stream is removed", 20*time.Second, func() bool { return l.redis.Exec("EXISTS", base) == "0" })
	await(t, "the second partition is copied", 20*time.Second, func() bool { return rank(l.entriesOf(l.parts[1])[0].Entry) >= "4" })
	l.end()
	await(t, "every sealed segment is copied", 20*time.Second, l.quiet)
	stopped(t, worker)
	e := l.entriesOf(l.parts[0])[0]
	if e.Entry.Local != segment.Gone || e.Entry.Object.Path != base+"/0.parquet" || e.Entry.Key != base {
		t.Errorf("the adopted segment is %s", e.Raw)
	}
	if v := l.verify(); len(v.Excused) > 0 || v.OnStore < 100 {
		t.Errorf("%+v", v)
	}
	l.noStreamsLeft()
}

// aboutToGo is a life with two topics, both of which have segments in Redis,
// in both tiers and on the store alone; the worker has been stopped.
func aboutToGo(t *testing.T, env ...string) *life {
	t.Helper()
	l := newLife(t, newFileRig(t), env...)
	l.parts = l.parts[:3]
	l.watch.retention = 0
	l.set("orders", "retention.ms", "-1", "local.retention.ms", ms(lifeLocal))
	l.topic("others", 1)
	l.sealed(segment.Partition{Topic: "others"}, 0, 10)
	worker := l.start("run")
	l.begin(l.everywhere()...)
	await(t, "segments have been dropped", 20*time.Second, func() bool { return l.watched("4 gone") >= 3 })
	l.end()
	stopped(t, worker)
	return l
}

// left is what there is of topic orders: streams, objects, manifests.
func (l *life) left() (streams, objects, manifests int) {
	for _, s := range l.books.Sources() {
		if l.redis.Exec("EXISTS", s.Key) == "1" {
			streams++
		}
	}
	for _, path := range l.objects() {
		if strings.HasPrefix(path, "korvet:storage:local:orders:") {
			objects++
		}
	}
	for _, p := range l.parts {
		manifests += len(l.entriesOf(p))
	}
	return streams, objects, manifests
}

// remove takes a topic out of the registry.
func (l *life) remove(topic string) {
	l.redis.Exec("SREM", l.layout.TopicsKey(), topic)
	l.redis.Exec("DEL", l.layout.TopicKey(topic))
}

// A topic that was removed goes with all that it has, after the grace, which a
// restart does not begin anew; another topic is not touched.
//
//fault:crash | The worker dies while the grace of a removed topic runs | SIGKILL, and another worker | The grace goes on where it was, and another topic is not touched
func TestRemovedTopicIsDeleted(t *testing.T) {
	t.Parallel()
	l := aboutToGo(t, "KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true", "KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=3s")
	l.remove("orders")
	removed := time.Now()
	worker := l.start("run")
	await(t, "its removal is noticed", 20*time.Second, func() bool { return strings.Contains(worker.log(), "orders left the registry") })
	worker.kill()
	l.redis.Exec("DEL", l.layout.LeaseKey())
	streams, objects, manifests := l.left()
	if streams == 0 || objects == 0 || manifests == 0 {
		t.Errorf("in the grace there are %d streams, %d objects, %d entries", streams, objects, manifests)
	}
	worker = l.start("run")
	await(t, "all of it is gone", 30*time.Second, func() bool {
		s, o, m := l.left()
		return s+o+m == 0
	})
	if took := time.Since(removed); took < 3*time.Second+lifeDelGrace {
		t.Errorf("it was gone after %s", took)
	}
	await(t, "it is forgotten", 20*time.Second, func() bool { return l.redis.Exec("HEXISTS", l.layout.KnownKey(), "orders") == "0" })
	stopped(t, worker)
	l.rest()
	l.mustBeSound()
	for key := range strings.Lines(l.redis.Exec("KEYS", "*")) {
		if strings.Contains(key, "orders") {
			t.Errorf("key %s is left", key)
		}
	}
}

// By default a removed topic's segments stay, and status says so.
//
//fault:topics | A topic leaves the registry | Its registration is removed | Nothing of it is deleted or changed after its grace, and status says so
func TestRemovedTopicIsReported(t *testing.T) {
	t.Parallel()
	l := aboutToGo(t, "KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=1s")
	l.remove("orders")
	worker := l.start("run")
	await(t, "its grace is over", 20*time.Second, func() bool { return strings.Contains(worker.log(), "orders left the registry: left alone") })
	before := l.snapshot()
	await(t, "eight ticks pass", 20*time.Second, after(8*lifeTick))
	stopped(t, worker)
	now := l.snapshot()
	for _, key := range []string{l.layout.LeaseKey(), l.layout.MembersKey()} { // gone at the stop
		delete(before, "key "+key)
		delete(now, "key "+key)
	}
	mustEqualSnapshots(t, before, now)
	if v := l.verify(); v.OnStore == 0 || len(v.Excused) > 0 {
		t.Errorf("%+v", v)
	}
	stdout, stderr, code := l.run("status")
	if code != 0 || !strings.Contains(stdout, "topic orders left the registry at ") || !strings.Contains(stdout, "delete-removed-topics") {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	status := decode[struct {
		Removed []struct{ Topic, Phase string }
	}](t, l.statusJSON())
	if len(status.Removed) != 1 || status.Removed[0].Topic != "orders" || status.Removed[0].Phase != "abandoned" {
		t.Errorf("status: %+v", status)
	}
}

func (l *life) statusJSON() string {
	stdout, _, _ := l.run("status", "--output", "json")
	return stdout
}

// A registry that reads as empty all of a sudden deletes nothing, then or
// during the grace, and everything goes on when it is back.
//
//fault:topics | The registry reads as empty all of a sudden | DEL of the registry's key under a running worker | Nothing is deleted, and everything goes on when it is back
func TestEmptyRegistryDeletesNothing(t *testing.T) {
	t.Parallel()
	l := aboutToGo(t, "KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true", "KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=1h")
	worker := l.start("run")
	await(t, "it leads", 20*time.Second, func() bool { return strings.Contains(worker.log(), "this instance leads") })
	await(t, "two ticks pass", 20*time.Second, after(2*lifeTick))
	_, objects, manifests := l.left()
	l.redis.Exec("DEL", l.layout.TopicsKey())
	await(t, "it is noticed", 20*time.Second, func() bool {
		return strings.Contains(worker.log(), `"registry_doubt"`) && strings.Contains(worker.log(), "orders left the registry: kept as it was")
	})
	await(t, "eight ticks pass", 20*time.Second, after(8*lifeTick))
	if _, o, m := l.left(); o < objects || m < manifests {
		t.Errorf("%d objects and %d entries, %d and %d are left", objects, manifests, o, m)
	}
	l.redis.Exec("SADD", l.layout.TopicsKey(), "orders", "others")
	w := l.ledger["korvet:storage:local:others:0:0"]
	l.sealed(w.partition, 1, 10)
	await(t, "work goes on", 20*time.Second, func() bool {
		return l.rig.entries()["korvet:storage:local:others:0:1"].Tier == segment.Remote
	})
	stopped(t, worker)
	if v := l.verify(); v.OnStore == 0 || len(v.Excused) > 0 {
		t.Errorf("%+v", v)
	}
	l.mustKnowAll()
}

// mustKnowAll checks that no topic counts as removed.
func (l *life) mustKnowAll() {
	l.t.Helper()
	status := decode[struct {
		Removed    []struct{ Topic string }
		Partitions []struct{ Topic string }
	}](l.t, l.statusJSON())
	if len(status.Removed) != 0 || len(status.Partitions) != 5 {
		l.t.Errorf("status: %+v", status)
	}
}
