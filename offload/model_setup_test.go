//go:build model

package offload

import (
	"maps"
	"slices"
	"strings"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// short is a name without what all have in common.
func short(name string) string { return strings.ReplaceAll(name, baseKey, "orders:0") }

func late(times int) event {
	return event{name: "a LATE APPEND to segment 0", times: times, do: func(w *world) { w.appendLate(key0) }}
}

func passing(name string, d time.Duration) event {
	return event{name: name, times: 1, do: func(w *world) { w.now = w.now.Add(d) }}
}

// damaged is something that somebody does to an object whose segment is still
// in Redis. Nothing helps against damage right after the last look.
func damaged(name string, do func(*world)) event {
	return event{name: name, times: 1, do: do, can: func(s *state) bool {
		_, there := s.world.objects[path0]
		return there && s.world.wholeInRedis() && !slices.ContainsFunc(s.agents, func(a *agent) bool { return a.running })
	}}
}

// vanish deletes the stream. Nobody but its producer knows what came after the
// segment was sealed.
func vanish(w *world) {
	for _, id := range w.log[key0] {
		if id.Compare(w.entry(orders0, 0).LastID) > 0 {
			w.forgive(key0, id)
		}
	}
	delete(w.streams, key0)
}

// nothingGone says whether all of the topic is still there, and nobody is
// about to delete it.
func nothingGone(s *state) bool {
	_, there := s.world.objects[path0]
	return there && !slices.ContainsFunc(s.agents, func(a *agent) bool { return a.running })
}

// failsOver says whether the failover is still to come.
func failsOver(s *state) bool { return s.events[1] > 0 }

// beforeTheLook says whether everybody will look at the object again before
// the stream is removed. Nothing helps against damage after the last look.
func beforeTheLook(s *state) bool {
	return s.world.objects[path0].body != nil && s.world.wholeInRedis() && !s.anyAt("remove stream")
}

func (s *state) anyAt(call string) bool {
	return slices.ContainsFunc(s.agents, func(a *agent) bool { return a.running && strings.HasPrefix(a.at, call) })
}

func isLocal(s *state) bool {
	e, err := segment.ParseEntry([]byte(s.world.manifests[orders0]["0"]))
	return err == nil && e.Tier == segment.Local
}

// modelTopic is a topic whose local copies may go at once.
func modelTopic(w *world, retention time.Duration) {
	w.topic("orders", 1)
	w.set("orders", func(s *segment.TopicSettings) {
		s.LocalRetentionMs, s.RetentionMs = 1000, -1
		if retention > 0 {
			s.RetentionMs = retention.Milliseconds()
		}
	})
}

func sealedModel(w *world) {
	modelTopic(w, 0)
	w.local(orders0, 0, 2, w.now.Add(-time.Hour))
}

func adoptedModel(w *world) {
	sealedModel(w)
	ids := w.log[key0]
	delete(w.streams, key0)
	delete(w.log, key0)
	for _, id := range ids {
		w.xadd(baseKey, id)
	}
	w.change(orders0, 0, func(e *segment.Entry) { e.Key = baseKey })
}

func presentModel(w *world) {
	modelTopic(w, 0)
	w.remote(orders0, 0, 2, w.now.Add(-time.Hour))
}

func goneModel(w *world) {
	modelTopic(w, 30*time.Minute)
	w.gone(orders0, 0, 2, w.now.Add(-time.Hour))
}

func hiddenModel(w *world) {
	goneModel(w)
	e, err := w.entry(orders0, 0).Delete(StreamInfo{}, w.now.Add(-2*graceTime).UnixMilli())
	if err != nil {
		w.t.Fatal(err)
	}
	w.put(orders0, "0", string(e.Encode()))
}

func overdueModel(w *world) {
	modelTopic(w, 30*time.Minute)
	w.local(orders0, 0, 2, w.now.Add(-time.Hour))
}

func openModel(w *world) {
	modelTopic(w, 0)
	w.set("orders", func(s *segment.TopicSettings) { s.SegmentMs = 60_000 })
	w.now = w.now.Add(-time.Hour)
	w.open(orders0, 0, 2)
	w.now = w.now.Add(time.Hour)
}

func modelPlain(w *world) {
	w.plain(clicks, func(s *segment.TopicSettings) { s.SegmentEntries, s.LocalRetentionMs = 2, 1000 })
	w.now = w.now.Add(-time.Hour)
	w.produce(clicks, 3)
	w.now = w.now.Add(time.Hour)
}

// copiedPlainModel has a range that was copied, the last entry of which the
// replica has not.
func copiedPlainModel(w *world) {
	p := w.plain(clicks, func(s *segment.TopicSettings) { s.LocalRetentionMs = 1000 })
	at := uint64(w.now.Add(-time.Hour).UnixMilli())
	open := segment.NewOpenRange(clicks, segment.ID{Seq: 1}, segment.Source{}, int64(at))
	w.xadd(clicks, segment.ID{Ms: at})
	w.xadd(clicks, segment.ID{Ms: at + 10})
	w.replicate()
	w.xadd(clicks, segment.ID{Ms: at + 20})
	info := w.look(clicks)
	held := segment.Contents{FirstID: info.FirstID, LastID: info.LastID, Count: info.Length}
	sealed, err := open.Seal(held, int64(at))
	if err != nil {
		w.t.Fatal(err)
	}
	e, err := sealed.Flip(held, info, w.object(p, 0, w.streams[clicks].entries), int64(at))
	if err != nil {
		w.t.Fatal(err)
	}
	e.Source.CRC32C = w.digest(clicks)
	w.put(p, "0", string(e.Encode()))
	next, _ := info.LastID.Next()
	w.put(p, "1", string(segment.NewOpenRange(clicks, next, segment.Source{LastID: info.LastID, Added: info.EntriesAdded}, int64(at)).Encode()))
}

// digest is that of a whole stream.
func (w *world) digest(key string) int64 {
	var sum uint32
	pages := &fakePages{w: w, key: key, to: segment.MaxID()}
	for page := new(segment.Page); pages.Next(w.t.Context(), page) == nil; {
		sum = page.Digest(sum)
	}
	return int64(sum)
}

// failOverStream loses what the node has that keeps the stream, and nothing of
// the manifest. The new one's clock is behind.
func failOverStream(w *world) {
	w.streams = w.replica.streams
	w.xadd(clicks, segment.ID{Ms: w.streams[clicks].last.Ms + 5})
}

// removedModel has a topic that was copied and is not in the registry any more.
func removedModel(w *world) {
	presentModel(w)
	w.known["orders"] = record{Settings: w.topics[0].Settings, RemovedAt: w.now.Add(-time.Hour).UnixMilli()}.encode()
	w.aside, w.topics = w.topics, nil
	w.topic("other", 1) // an empty registry is not believed
	w.set("other", func(s *segment.TopicSettings) { s.RemoteStorage = false })
}

func foreignObject() fakeObject {
	return fakeObject{body: []byte("{}"), sha: strings.Repeat("0", 64), etag: "other"}
}

// recreate is what a broker does that deletes a topic and makes one of the same
// name: the streams and the manifest go, and ids begin with 0 again.
func recreate(w *world) {
	for key := range w.streams {
		w.del(key)
	}
	maps.DeleteFunc(w.log, func(string, []segment.ID) bool { return true })
	delete(w.manifests, orders0)
	for i := range w.topics {
		w.topics[i].Settings.ID = "another"
	}
	w.now = w.now.Add(time.Second)
	w.local(orders0, 0, 3, w.now.Add(-10*time.Minute))
}

// What is right although something is missing.

// stillLocal allows what is missing because somebody else deleted its stream,
// as long as the manifest goes on saying that there is something wrong.
func stillLocal(w *world, _ string, _ bool) bool {
	e, err := segment.ParseEntry([]byte(w.manifests[orders0]["0"]))
	return err == nil && e.Tier == segment.Local && e.State == segment.Sealed
}

// stillInRedis allows an object to be damaged as long as all that it held is
// still in its stream.
func stillInRedis(w *world, _ string, settled bool) bool { return !settled && w.wholeInRedis() }

func (w *world) wholeInRedis() bool {
	there := w.streams[key0].all()
	return !slices.ContainsFunc(w.log[key0], func(id segment.ID) bool {
		return !slices.ContainsFunc(there, func(e fakeEntry) bool { return e.ID == id })
	})
}

// onStore allows a manifest to have forgotten, in a failover, that a segment
// was copied and removed: its object is there, at the path where it belongs.
func onStore(w *world, finding string, settled bool) bool {
	if leftOver(w, finding, settled) {
		return true
	}
	e, err := segment.ParseEntry([]byte(w.manifests[orders0]["0"]))
	there := w.file(segment.ObjectPath(baseKey, 0, e.Copy, "")).Entries
	return err == nil && e.Tier == segment.Local && !slices.ContainsFunc(w.log[key0], func(id segment.ID) bool {
		return !slices.ContainsFunc(there, func(e fakeEntry) bool { return e.ID == id })
	})
}

// leftOver allows a failover to bring a stream back whose removal it has lost,
// until somebody has seen it.
func leftOver(_ *world, finding string, settled bool) bool {
	return !settled && strings.HasPrefix(finding, string(checker.GoneButThere))
}

// removed allows what was deleted with its topic to be missing.
func removed(w *world, _ string, _ bool) bool { return len(w.aside) > 0 }
