package torture

import (
	"fmt"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/stage"
	"korvet-offload/internal/testkit/standin"
	"korvet-offload/segment"
)

// The settings of a schedule's topics and workers: a life in a second.
const (
	segmentTime    = 300 * time.Millisecond
	localTime      = 400 * time.Millisecond
	shortRetention = 700 * time.Millisecond
	topicGrace     = 500 * time.Millisecond
	workers        = 2
)

// The topics; each has a promise of its own.
const (
	keep    = "keep"    // for ever
	short   = "short"   // for shortRetention
	guest   = "guest"   // as long as it is registered
	phoenix = "phoenix" // until it is made anew
	events  = "events"  // a plain stream, for ever
)

// parts are the partitions by name.
func parts() []string {
	return []string{keep + ":0", keep + ":1", short + ":0", guest + ":0", phoenix + ":0", events}
}

func partition(name string) segment.Partition {
	if name == events {
		return segment.Partition{Topic: events, Plain: true}
	}
	last := len(name) - 1
	return segment.Partition{Topic: name[:last-1], Number: int(name[last] - '0')}
}

func partitions() (all []segment.Partition) {
	for _, name := range parts() {
		all = append(all, partition(name))
	}
	return all
}

// Program is what is tortured.
type Program struct {
	File   string // built with faultpoints
	Shards int    // that its workers share; 1 = one of them leads
}

// play is one schedule on its stage.
type play struct {
	*stage.Stage
	tally   *Tally
	shards  int
	workers [workers]worker
	wrong   []string // what must not be

	late    map[string]bool // messages, by key and id, that were appended behind a segment's end
	deleted map[string]bool // messages that somebody has deleted
	touched map[string]bool // streams that somebody has deleted from
	epoch   map[string]int  // topics, how many messages of all may be gone with an earlier one

	offset, most, least time.Duration // of the workers' clock: now, and since the topic guest was removed
	ever                time.Duration // the most that it was ever ahead
	removed             time.Time     // zero while the topic guest is registered
	made                int           // how often phoenix was made
}

// stageFailure is what ends a schedule that can't go on. It must not fail the
// test: the shrinker runs schedules that fail.
type stageFailure string

// Run plays a schedule and says what went wrong: nothing, if all is well.
func Run(program Program, s Schedule, tally *Tally) (wrong []string) {
	t := standin.New("torture", func(text string) { panic(stageFailure(text)) })
	defer t.End()
	defer func() {
		if failure := recover(); failure != nil {
			text, is := failure.(stageFailure)
			if !is {
				panic(failure)
			}
			wrong = append(wrong, string(text))
		}
	}()
	p := newPlay(t, program, tally)
	for i, step := range s {
		p.do(step)
		p.tend()
		if len(p.wrong) > 0 {
			return append(p.wrong, fmt.Sprintf("after step %d, %s", i+1, step))
		}
	}
	p.settle()
	p.judge()
	return p.wrong
}

func newPlay(t *standin.TB, program Program, tally *Tally) *play {
	p := &play{
		Stage: stage.New(t, program.File, redisserver.Args("--appendonly", "yes", "--appendfsync", "always", "--enable-debug-command", "local")), tally: tally, shards: program.Shards,
		late: map[string]bool{}, deleted: map[string]bool{}, touched: map[string]bool{}, epoch: map[string]int{},
	}
	p.Env = append(p.Env,
		fmt.Sprintf("KORVET_STORAGE_OFFLOAD_SHARDS=%d", p.shards),
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=100ms",
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1s",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=50ms",
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=300ms",
		"KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE="+topicGrace.String(),
		"KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true",
		"KORVET_STREAMS_0_KEY="+events,
		"KORVET_STREAMS_0_SEGMENT_TIME="+segmentTime.String(),
		"KORVET_STREAMS_0_LOCAL_RETENTION_TIME="+localTime.String(),
	)
	p.register(keep, "partitions", "2", "retention.ms", "-1")
	p.register(short, "retention.ms", ms(shortRetention))
	p.register(guest, "retention.ms", "-1")
	p.recreate()
	p.start(0)
	if !p.await(patience, p.allOpen) {
		p.fail("not every partition has an open segment within %s: %s", patience, tail(p.workers[0].process.Log()))
	}
	tally.Add(Schedules, 1)
	return p
}

// allOpen says whether every partition can be written to.
func (p *play) allOpen() bool {
	for _, part := range partitions() {
		if _, there := open(p.stored(part)); !there && !part.Plain {
			return false
		}
	}
	return true
}

func (p *play) register(topic string, settings ...string) {
	p.Topic(topic, append([]string{"segment.ms", ms(segmentTime), "local.retention.ms", ms(localTime)}, settings...)...)
}

func ms(d time.Duration) string { return fmt.Sprint(d.Milliseconds()) }

// fail notes what must not be.
func (p *play) fail(format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf(format, args...))
}

// do does a step.
func (p *play) do(s Step) {
	arg := func(i int) int64 { return s.Numbers[i] }
	switch s.Kind {
	case Produce:
		p.produce(s.Part, int(arg(0)))
	case Late:
		p.appendLate(s.Part, int(arg(0)), int(arg(1)))
	case Read:
		p.read(s.Part)
	case Wait:
		p.wait(time.Duration(arg(0)) * time.Millisecond)
	case Clock:
		p.clock(time.Duration(arg(0)) * time.Millisecond)
	case Redis:
		p.Redis.Restart()
		p.Conn.Close()
	case Errors:
		p.Fail(int(arg(0)), uint64(arg(1))) //nolint:gosec // any number will do
	case Recreate:
		p.recreate()
	case Remove:
		p.remove()
	case Back:
		p.back()
	case Xdel:
		p.xdel(s.Part, int(arg(0)))
	case Del, Trim:
		p.deleteCopied(s.Part, s.Kind == Trim)
	default:
		p.doWorker(s)
	}
	p.tally.Add(string(s.Kind), 1)
}

// wait lets time pass in which processes come and go as they should.
func (p *play) wait(d time.Duration) {
	p.await(d, func() bool { return false })
}

// await polls a condition, and says whether it held in time.
func (p *play) await(within time.Duration, condition func() bool) bool {
	deadline := time.Now().Add(within)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if !time.Now().Before(deadline) {
			return false
		}
		<-tick.C
		p.tend()
	}
	return true
}

func name(key, id string) string { return key + " " + id }

func (p *play) clock(by time.Duration) {
	p.Ahead(by)
	p.offset += by
	p.most, p.least, p.ever = max(p.most, p.offset), min(p.least, p.offset), max(p.ever, p.offset)
}

// may says why a message may be gone.
func (p *play) may(now int64) func(checker.Ack) string {
	index := map[string]int{}
	for i, a := range p.Acks {
		index[name(a.Key, a.ID)] = i
	}
	return func(a checker.Ack) string {
		of := name(a.Key, a.ID)
		id, err := segment.ParseID(a.ID)
		topic := partOf(a)
		switch {
		case p.deleted[of]:
			return "deleted"
		case index[of] < p.epoch[topic]:
			return "its topic was removed"
		case topic == short && err == nil && now+p.ever.Milliseconds()-int64(id.Ms) > shortRetention.Milliseconds(): //nolint:gosec // the server's time
			return "expired"
		}
		return ""
	}
}

// partOf is the topic of a message.
func partOf(a checker.Ack) string {
	for _, name := range parts() {
		if partition(name).String() == a.Partition {
			return partition(name).Topic
		}
	}
	return ""
}
