//go:build model

package offload

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
)

const graceTime = time.Minute

// scenarios are all small worlds in which something could be lost. What each
// worker does in them is what the program does: the planner, the copy, the drop
// and the expiry are those of this package.
func scenarios() map[string]*scenario { //fault:test TestModel
	return map[string]*scenario{
		//fault:leaders | Two leaders at once, each of which may sleep before any call, and a late append | Every interleaving of the real planner, copy and drop, in memory | Every acknowledged message is where a reader looks, just once
		"copy and drop": {
			setup: sealedModel, agents: 2, passes: 5, ends: true,
			events: []event{late(1)},
		},
		//fault:crash | Any call fails, fails with its work done, or is the last one of the process, with late appends | Every interleaving, in memory | The same
		"copy and drop, a call fails": {
			setup: sealedModel, agents: 1, passes: 4, faults: 1, ends: true,
			events: []event{late(2)},
		},
		//fault:redis | A server before 7.0, which does not tell how much was ever added | Every interleaving, in memory | The same
		"copy and drop, before 7.0": {
			setup: func(w *world) { sealedModel(w); w.old = true }, agents: 2, passes: 4, ends: true,
			events: []event{late(1)},
		},
		//fault:store | A store without conditional puts | Every interleaving, in memory | Paths are unique, and nothing is overwritten
		"copy and drop, no conditional puts": {
			setup: func(w *world) { sealedModel(w); w.createOnly = false }, agents: 2, passes: 4, ends: true,
			events: []event{late(1)},
		},
		//fault:leaders | Two leaders and a late append to a stream that was adopted | Every interleaving, in memory | Nothing is lost
		"copy and drop of an adopted stream": {
			setup: adoptedModel, agents: 2, passes: 4, ends: true,
			events: []event{{name: "a late append to the adopted stream", times: 1, do: func(w *world) { w.appendLate(baseKey) }}},
		},
		//fault:leaders | A worker sleeps between its look at the object and the removal, and the object is damaged meanwhile | Every interleaving, in memory | The object is looked at again, and the stream stays
		"the worker sleeps between look and removal": {
			setup: presentModel, agents: 2, passes: 3, ends: true,
			events: []event{late(1), {name: "two minutes pass, in which the object is altered", times: 1, can: beforeTheLook, do: func(w *world) { w.now = w.now.Add(2 * time.Minute); w.objects[path0] = w.objects[path0].altered() }}},
			allow:  stillInRedis,
		},
		//fault:store | An object is deleted while its stream is still there | Every interleaving, in memory | The segment is copied again from its stream
		"damaged objects": {
			setup: presentModel, agents: 2, passes: 4, ends: true,
			events: []event{late(1), damaged("the object is deleted, while nobody works", func(w *world) { delete(w.objects, path0) })},
			allow:  stillInRedis,
		},
		//fault:store | The store keeps another body than it was given | Every interleaving, in memory | No entry ever names it
		"the store damages what it was given": {
			setup: sealedModel, agents: 2, passes: 3, ends: true,
			events: []event{{name: "from now on the store DAMAGES what it is given next", times: 1, do: func(w *world) { w.damageNext = true }}},
		},
		//fault:store | Another file lies at the path of a segment | Every interleaving, in memory | It stays as it is, and the segment takes the next path
		"another file lies at the path": {
			setup: func(w *world) { sealedModel(w); w.objects[path0] = foreignObject() }, agents: 2, passes: 3, ends: true,
			events: []event{late(1)},
		},
		//fault:late-data | A producer that holds on to the segment that was rolled | Every interleaving of two leaders, in memory | Nothing is lost, and no segment is opened twice
		"roll": {
			setup: openModel, agents: 2, passes: 3, config: rolls,
			events: []event{late(1), {name: "an append to the open segment", times: 1, do: func(w *world) { w.produce(w.openKey(orders0), 1) }}},
		},
		//fault:late-data | An append to a stream that was dropped, while its segment expires | Every interleaving of two leaders, in memory | The stray stream stays, and only what is past total retention goes
		"expire": {
			setup: goneModel, agents: 2, passes: 4, ends: true,
			events: []event{passing("the grace passes", 2*graceTime), late(1)},
		},
		//fault:crash | Any call of an expiry fails or is the last one | Every interleaving, in memory | Expiry goes on
		"expire, a call fails": {
			setup: goneModel, agents: 1, passes: 5, faults: 2, ends: true,
			events: []event{passing("the grace passes", 2*graceTime)},
		},
		//fault:late-data | An append to a segment that is to be deleted without a copy | Every interleaving of two leaders, in memory | The deletion is taken back
		"expire what was never copied": {
			setup: overdueModel, agents: 2, passes: 4, config: func(c *Config) { c.ExpireUnuploaded = Expire },
			events: []event{passing("the grace passes", 2*graceTime), {name: "a LATE APPEND, of now", times: 1, do: func(w *world) { w.produce(key0, 1) }}},
		},
		//fault:redis | Somebody deletes the stream of a segment that is being copied, and producers go on | Every interleaving, in memory | The entry stays LOCAL and is reported; an empty or short file never takes the stream's place
		"a stream vanishes": {
			setup: sealedModel, agents: 2, passes: 3,
			events: []event{{name: "somebody deletes the stream", times: 1, can: isLocal, do: vanish}, late(1)},
			allow:  stillLocal,
		},
		//fault:redis | A failover loses the last writes at any moment, without wait-replicas | Every interleaving, in memory | All that was removed from Redis is in an object at its path
		"failover": {
			setup: func(w *world) { sealedModel(w); w.replicate() }, agents: 2, passes: 3,
			events: []event{
				{name: "the replica has everything", times: 1, can: failsOver, do: (*world).replicate},
				{name: "FAILOVER to the replica", times: 1, do: (*world).failOver},
			},
			allow: onStore, ends: true,
		},
		//fault:redis | A failover loses the last writes at any moment, with wait-replicas | Every interleaving, in memory | Nothing is out of sight, and a stream that came back is removed again
		"failover, with wait-replicas": {
			setup: func(w *world) { sealedModel(w); w.replicate(); w.waits = true }, agents: 2, passes: 3, ends: true,
			allow: leftOver,
			events: []event{
				{name: "the replica has everything", times: 1, can: failsOver, do: (*world).replicate},
				{name: "FAILOVER to the replica", times: 1, do: (*world).failOver},
			},
		},
		//fault:redis | In a cluster the node of the manifest fails over and loses writes, and that of the stream does not | Every interleaving, in memory | The manifest never forgets that a stream was removed
		"failover of the manifest's node alone, with wait-replicas": {
			setup: func(w *world) { sealedModel(w); w.replicate(); w.waits = true }, agents: 2, passes: 3,
			events: []event{{name: "FAILOVER of the manifest's node", times: 1, do: (*world).failOverManifest}},
		},
		//fault:topics | A topic is deleted and made anew while it is copied and dropped | Every interleaving of two leaders, in memory | Nothing of the new topic is lost or mixed with the old
		"the topic is made anew": {
			setup: sealedModel, agents: 2, passes: 4, ends: true,
			events: []event{{name: "the topic is deleted and made anew", times: 1, do: recreate}},
		},
		//fault:topics | A topic is made anew while segments of the old one are deleted | Every interleaving of two leaders, in memory | Entries are read again right before objects are deleted
		"the topic is made anew while it expires": {
			setup: hiddenModel, agents: 2, passes: 2, ends: true,
			events: []event{{name: "the topic is deleted and made anew", times: 1, do: recreate}},
		},
		//fault:topics | A topic is missing in the registry and is back later | Every interleaving of two leaders, in memory | What is still there is brought back
		"a topic is removed, and is back": {
			setup: removedModel, agents: 2, passes: 4,
			config: func(c *Config) { c.DeleteRemovedTopics, c.TopicDeleteGrace = true, 0 },
			events: []event{passing("the grace passes", 2*graceTime), {name: "the topic is back", times: 1, can: nothingGone, do: func(w *world) { w.topics, w.aside = append(w.topics, w.aside...), nil }}, late(1)},
			allow:  removed,
		},
		//fault:redis | The node of a plain stream fails over, loses copied entries, and others come with ids between them | Every interleaving of count and trim, in memory | Only entries that were copied are trimmed
		"plain stream, its node fails over": {
			setup: copiedPlainModel, agents: 2, passes: 2, config: rolls,
			events: []event{{name: "FAILOVER of the stream's node, and an append by a clock that is behind", times: 1, do: failOverStream}},
			allow:  leftOver,
		},
		//fault:leaders | Two leaders cut, copy and trim a plain stream that grows and from which somebody deletes | Every interleaving, in memory | Nothing is lost, and no message is in two segments
		"plain stream": {
			setup: modelPlain, agents: 2, passes: 3, config: rolls,
			events: []event{
				{name: "an append", times: 1, do: func(w *world) { w.produce(clicks, 1) }},
				{name: "somebody deletes the first entry", times: 1, can: func(s *state) bool { return len(s.world.streams[clicks].all()) > 0 }, do: func(w *world) { w.xdel(clicks, 0) }},
			},
		},
	}
}

// Every interleaving of what may happen in each of the small worlds. Nothing is
// lost in any state; if something is, the shortest schedule that leads there is
// printed.
func TestModel(t *testing.T) {
	total := 0
	for _, name := range slices.Sorted(maps.Keys(scenarios())) {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			states, wrong := explore(t, scenarios()[name])
			total += states
			t.Logf("%d states, %s", states, time.Since(start).Round(time.Millisecond))
			if wrong != "" {
				t.Errorf("after %d states:\n%s", states, wrong)
			}
		})
	}
	t.Logf("%d states", total)
}

// What is not promised: a store can't be told to delete an object only if it is
// still the same one. A worker that falls asleep between its last look at the
// manifest and its request, and wakes up when the segment has been deleted by
// another and the topic made anew, deletes the new object at the old path.
func TestModelOfWhatIsNotPromised(t *testing.T) {
	sc := &scenario{
		setup: hiddenModel, agents: 2, passes: 4,
		events: []event{{name: "the topic is deleted and made anew", times: 1, do: recreate}},
	}
	states, wrong := explore(t, sc)
	if !strings.Contains(wrong, string(checker.Missing)) {
		t.Errorf("no loss in %d states: the pages say otherwise\n%s", states, wrong)
	}
	t.Logf("after %d states:\n%s", states, wrong)
}
