package offload

import (
	"strconv"
	"time"

	"korvet-offload/segment"
)

// Share is this instance's part of the work, where several instances share it.
// The partitions are spread over shards (ShardOf), and each shard is one
// instance's at a time. Like the lease it saves work and is not trusted: two
// instances may be at work on one partition for a while.
type Share interface {
	// Terms is asked at the beginning of a pass. It has a number for each shard: 0
	// if it is not this instance's, and else one that is another one whenever the
	// shard was somebody else's in between.
	Terms() []int
	// Enter is asked right before a job on something of a shard begins, as Gate's
	// is. The shard is not given to another instance before leave was called.
	Enter(shard int) (leave func(), ok bool)
	// Gained gives a value when there are shards of which Terms has not told, so
	// that what waits there need not wait for the next tick.
	Gained() <-chan struct{}
}

// ShardOf is the shard, of so many, to which a partition of a topic belongs, or
// a plain stream: FNV-1a, 64 bits, of "topic/number" or "stream:key". All
// instances have to agree on it.
func ShardOf(p segment.Partition, shards int) int {
	if p.Plain {
		return hashed("stream:"+p.Topic, shards)
	}
	return hashed(p.Topic+"/"+strconv.Itoa(p.Number), shards)
}

// TopicShard is the shard to which a topic belongs as a whole once it is not
// Live, so that one instance alone decides to forget it; and the instance that
// reports what is wrong with the topic itself.
func TopicShard(topic string, shards int) int { return hashed(topic, shards) }

func hashed(text string, shards int) int {
	h := uint64(14695981039346656037)
	for i := range len(text) {
		h = (h ^ uint64(text[i])) * 1099511628211
	}
	return int(h % uint64(shards)) //nolint:gosec // less than shards
}

// shard is the one to which a partition of the topic belongs.
func (t TopicState) shard(p segment.Partition, shards int) int {
	if t.Phase == Live || p.Plain {
		return ShardOf(p, shards)
	}
	return TopicShard(p.Topic, shards)
}

// terms is what Share has told at the beginning of a pass; nil = everything is
// this instance's.
type terms []int

func (t terms) owns(shard func(shards int) int) bool { return t == nil || t[shard(len(t))] > 0 }

// whole says whether the instance speaks for the topic itself.
func (t terms) whole(s TopicState) bool {
	return t.owns(func(n int) int {
		if s.Topic.Plain {
			return s.shard(s.Topic.Partition(0), n)
		}
		return TopicShard(s.Topic.Name, n)
	})
}

// forgetAfter is for how long nothing of a topic must have been left before it is
// forgotten, where the work is shared: another instance may be in the middle of a
// pass that began when the topic was still live.
const forgetAfter = time.Hour

// sharing is what a worker keeps of the shards from pass to pass.
type sharing struct {
	terms terms
	whole map[string]bool      // topics that belong to one shard as a whole
	empty map[string]time.Time // since when, by this host's clock, nothing is left of these
}

// lastingly are those of the topics, of which nothing is left, of which nothing
// has been left for long enough.
func (w *Worker) lastingly(topics []string) (forget []string) {
	if w.ports.Share == nil {
		return topics
	}
	now, before := w.now(), w.memory.sharing.empty
	w.memory.sharing.empty = map[string]time.Time{}
	for _, t := range topics {
		since, known := before[t]
		if !known {
			since = now
		}
		w.memory.sharing.empty[t] = since
		if now.Sub(since) >= forgetAfter {
			forget = append(forget, t)
		}
	}
	return forget
}

// shardOf is the shard of a partition that was scanned.
func (s *sharing) shardOf(p segment.Partition) int {
	if s.whole[p.Topic] && !p.Plain {
		return TopicShard(p.Topic, len(s.terms))
	}
	return ShardOf(p, len(s.terms))
}

// kept says whether a shard has been this instance's since the last pass.
func (s *sharing) kept(now terms, shard func(int) int) bool {
	return now == nil || len(s.terms) == len(now) && s.terms[shard(len(now))] == now[shard(len(now))]
}

// begin notes what the pass that begins was told.
func (s *sharing) begin(now terms, topics []TopicState) {
	s.terms, s.whole = now, map[string]bool{}
	for _, t := range topics {
		if now != nil && !t.Topic.Plain && t.Phase != Live {
			s.whole[t.Topic.Name] = true
		}
	}
}

// myNotes leaves out what is remembered of topics that are no concern of this
// instance. Of a topic that several work on each writes it, before it does
// anything.
func (s *Scan) myNotes(all []note) (mine []note) {
	topics := map[string]bool{}
	for _, t := range s.Topics {
		topics[t.Topic.Name] = topics[t.Topic.Name] || !t.Elsewhere && !t.Topic.Plain
	}
	for _, p := range s.Partitions {
		topics[p.Partition.Topic] = topics[p.Partition.Topic] || !p.Partition.Plain
	}
	for _, n := range all {
		if topics[n.topic] {
			mine = append(mine, n)
		}
	}
	return mine
}

// enter asks the share and the gate, if there are such.
func (w *Worker) enter(p segment.Partition) (leave func(), ok bool) {
	leaveShard, ok := w.enterShard(p)
	if !ok || w.ports.Gate == nil {
		return leaveShard, ok
	}
	leaveGate, ok := w.ports.Gate.Enter(p)
	if !ok {
		leaveShard()
		return nil, false
	}
	return func() {
		leaveGate()
		leaveShard()
	}, true
}

func (w *Worker) enterShard(p segment.Partition) (leave func(), ok bool) {
	if w.ports.Share == nil {
		return func() {}, true
	}
	return w.ports.Share.Enter(w.memory.sharing.shardOf(p))
}

// gained is Share's; without a share it never gives anything.
func (w *Worker) gained() <-chan struct{} {
	if w.ports.Share == nil {
		return nil
	}
	return w.ports.Share.Gained()
}
