package load

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// ahead is by how many segments one partition may be ahead of another. The
// partitions take turns, so it is 1, and 2 while a turn is under way; one more
// for a segment that takes a whole turn because the disk or the machine was
// busy with others.
const ahead = 3

// perSegment is what a pass keeps of each segment that is due until it ends: the
// plan and, when it is done, its outcome. They are part of Go's limit, which is
// soft: beyond it there is more garbage collection, and no error.
const perSegment = 1 << 10

// progressScript counts, in one step, the copied segments of each partition
// and returns the least, the most and the sum.
const progressScript = `local least, most, sum = 1e9, 0, 0
for t = 0, ARGV[2] - 1 do
  for p = 0, ARGV[3] - 1 do
    local n = 0
    for _, entry in ipairs(redis.call('HVALS', ARGV[1] .. t .. ':' .. p)) do
      if string.find(entry, '"tier":"REMOTE"', 1, true) then n = n + 1 end
    end
    least, most, sum = math.min(least, n), math.max(most, n), sum + n
  end
end
return {least, most, sum}`

// fairness is what was seen of the partitions' progress.
type fairness struct {
	looks     int // while some segments were copied, and some not
	widest    int // between the least and the most advanced partition
	at        string
	remaining int
}

// Every partition gets its turn, in little memory, however many there are.
// Asserted: one pass copies all; what the system can't take back of the
// program's memory (the rest are pages of its file) stays within the limit and
// what a pass keeps of its segments; at no moment is a partition more than a few
// segments ahead of another; every n-th object holds what was loaded.
//
//fault:load | 1,000 partitions with 20 sealed segments each and a memory limit of 64 MiB | a real Redis is loaded and one pass runs under GOMEMLIMIT (100 x 5 in short) | one pass copies all within the limit and 1 KiB per segment, and no partition gets more than a few segments ahead of another
func TestManyPartitions(t *testing.T) {
	const perTopic, limit = 50, 64 * mib
	partitions, segments, messages := size(100, 1000), size(5, 20), 50
	r := newRig(t)
	topics := partitions / perTopic
	of := func(i int) segment.Partition {
		return segment.Partition{Topic: "load" + strconv.Itoa(i/perTopic), Number: i % perTopic}
	}
	all := func(i, n int) content {
		return content{messages, func(m int) []string {
			return []string{"key", strconv.Itoa(m), "value", fmt.Sprintf("message %d of segment %d of partition %d, and some words more to make it as long as messages are", m, n, i)}
		}}
	}
	pipe := r.pipeline()
	for i := range partitions {
		for n := range segments {
			r.send(pipe, of(i), segment.Number(n), all(i, n)) //nolint:gosec // a count
		}
	}
	pipe.end()
	for i := range topics {
		r.topic("load"+strconv.Itoa(i), perTopic)
	}

	var seen fairness
	got := r.once(size(2*time.Minute, 30*time.Minute), func() { seen.look(r, topics, perTopic, partitions*segments) }, "GOMEMLIMIT=64MiB")
	r.mustHaveDone(got)
	seen.look(r, topics, perTopic, partitions*segments)
	t.Logf("%d partitions x %d segments: %s, peak memory %s, %s of it anonymous; %d looks, at most %d segments between two partitions (%s)",
		partitions, segments, got.took.Round(time.Millisecond), inMiB(got.peak), inMiB(got.anonymous), seen.looks, seen.widest, seen.at)
	if bound := int64(limit + perSegment*partitions*segments); got.anonymous > bound {
		t.Errorf("%s of anonymous memory, want at most %s", inMiB(got.anonymous), inMiB(bound))
	}
	if seen.remaining > 0 {
		t.Errorf("%d segments are not copied after one pass", seen.remaining)
	}
	if seen.widest > ahead {
		t.Errorf("a partition is %d segments ahead of another (%s), want %d at most", seen.widest, seen.at, ahead)
	}
	if seen.looks < 3 {
		t.Errorf("only %d looks while it ran: too few to tell", seen.looks)
	}
	for i := 0; i < partitions; i += size(7, 97) {
		for n := range segments {
			r.mustHold(of(i), segment.Number(n), all(i, n)) //nolint:gosec // a count
		}
	}
}

// look counts what is copied at one moment.
func (f *fairness) look(r *rig, topics, partitions, all int) {
	r.t.Helper()
	prefix := strings.TrimSuffix(r.layout.ManifestKey(segment.Partition{Topic: "load"}), ":0")
	reply := r.redis.Exec("EVAL", progressScript, "0", prefix, strconv.Itoa(topics), strconv.Itoa(partitions))
	var least, most, sum int
	if _, err := fmt.Sscan(reply, &least, &most, &sum); err != nil {
		r.t.Fatalf("count what is copied: %v in %q", err, reply)
	}
	f.remaining = all - sum
	if sum > 0 && sum < all {
		f.looks++
	}
	if most-least > f.widest {
		f.widest, f.at = most-least, fmt.Sprintf("%d and %d with %d of %d copied", least, most, sum, all)
	}
}
