package offload

import (
	"math"
	"time"

	"korvet-offload/segment"
)

// Lag is how far the remote tier and the deletions are behind.
type Lag struct {
	Segments int           `json:"segments"`  // sealed, and not copied yet
	Bytes    int64         `json:"bytes"`     // that these take in Redis, as far as known
	Oldest   time.Duration `json:"oldest_ns"` // since the oldest of them was sealed, as far as known
	Unknown  int           `json:"unknown"`   // of these segments, whose entry does not say when they were sealed

	Local Headroom `json:"local"` // of local retention
	Total Headroom `json:"total"` // of total retention

	Overdue        int           `json:"overdue"`            // segments past a retention
	LongestOverdue time.Duration `json:"longest_overdue_ns"` // by time, of these
}

// TopicLag is the lag of one topic, or plain stream.
type TopicLag struct {
	Topic    string // of a plain stream its key
	Plain    bool
	Settings segment.TopicSettings
	Lag
}

// Headroom is how long it takes until a retention reaches a segment that is not
// copied yet. This program keeps such a segment whatever its age; others, who
// trim by the same settings, may not, and what should be gone by then takes
// memory. Limits of size count from when they are reached, as 0: when that will
// be nobody knows.
type Headroom struct {
	Limited bool          `json:"limited"` // false: there is no such segment, or no limit
	Left    time.Duration `json:"left_ns"` // below 0 = passed so long ago
}

// reach takes note of another segment.
func (h *Headroom) reach(left time.Duration) {
	if !h.Limited || left < h.Left {
		*h = Headroom{true, left}
	}
}

// Waiting is a sealed segment that is not copied yet.
type Waiting struct {
	Partition segment.Partition
	Number    segment.Number
	SealedAt  int64 // epoch ms; 0 = not known
	Newest    int64 // epoch ms, of its newest entry, from which retention counts; 0 = not known
	Bytes     int64 // that it takes in Redis; 0 = not known
}

// lagOf is where the lag of a partition's topic is summed up. The partitions of
// a topic follow one another.
func (p *planner) lagOf(s *PartitionScan) *Lag {
	part := s.Partition
	if n := len(p.Topics); n == 0 || p.Topics[n-1].Topic != part.Topic || p.Topics[n-1].Plain != part.Plain {
		p.Topics = append(p.Topics, TopicLag{Topic: part.Topic, Plain: part.Plain, Settings: s.Topic.Topic.Settings})
	}
	return &p.Topics[len(p.Topics)-1].Lag
}

// sumLag makes the lag of all topics.
func (p *planner) sumLag() {
	for _, t := range p.Topics {
		p.Lag.Segments += t.Segments
		p.Lag.Bytes += t.Bytes
		p.Lag.Oldest = max(p.Lag.Oldest, t.Oldest)
		p.Lag.Unknown += t.Unknown
		p.Lag.Overdue += t.Overdue
		p.Lag.LongestOverdue = max(p.Lag.LongestOverdue, t.LongestOverdue)
		for _, h := range []struct{ all, one *Headroom }{{&p.Lag.Local, &t.Local}, {&p.Lag.Total, &t.Total}} {
			if h.one.Limited {
				h.all.reach(h.one.Left)
			}
		}
	}
}

// behind counts a sealed segment that is not copied yet.
func (p *planner) behind(s *PartitionScan, j Job) {
	e, measured := j.Stored.Entry, s.Streams[j.Stored.Number]
	count := e.Count
	if count < 0 {
		count = measured.Length
	}
	w := Waiting{Partition: s.Partition, Number: j.Stored.Number, SealedAt: e.SealedAt, Bytes: j.Settings.Size(count, measured.Bytes)}
	w.Newest, _ = e.LastAppend(p.now)
	p.lag.Segments++
	p.lag.Bytes += w.Bytes
	if w.SealedAt > p.now {
		w.SealedAt = 0
	}
	if w.SealedAt == 0 {
		p.lag.Unknown++
	} else {
		p.lag.Oldest = max(p.lag.Oldest, time.Duration(p.now-w.SealedAt)*time.Millisecond)
	}
	p.Waiting = append(p.Waiting, w)
	p.lag.Local.age(j.Settings.Local(), w, p.now)
	p.lag.Total.age(j.Settings.Total(), w, p.now)
}

// age takes note of another segment and a limit of time.
func (h *Headroom) age(limit segment.Retention, w Waiting, now int64) {
	if limit.Ms >= 0 && w.Newest != 0 {
		h.reach(milliseconds(limit.Ms - (now - w.Newest)))
	}
}

// sizeReaches notes that a limit of size has come to a segment that is not
// copied yet, if it is one.
func (r *retaining) sizeReaches(h *Headroom, e segment.Entry) {
	if e.State == segment.Sealed && e.Tier == segment.Local && r.part.Topic.Works() {
		h.reach(0)
	}
}

// milliseconds is a number of them as a duration, or the longest there is.
func milliseconds(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Millisecond)
	return time.Duration(min(max(n, -most), most)) * time.Millisecond
}
