package metrics

import (
	"slices"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// state is what gauges are made of.
type state struct {
	leads        bool
	shards       int // that are held; -1 = as many as follow from leads
	paused       bool
	pausedTopics int
	rate         int64 // upload-rate in effect
	sla          time.Duration
	limit        int    // requests at once that the store gets; 0 = no limit
	eviction     string // "" = not known
	memory       fill
	topics       slots
	archived     map[string]*amount // by the label of the topic
	verified     *verified          // nil: this instance does not lead, or has not verified all yet
	found        *found             // nil: this instance does not lead, or has not scanned yet
}

// amount is what was brought to the remote tier of a topic.
type amount struct{ segments, bytes int64 }

// found is what the last scan has found, and became of it since.
type found struct {
	plan    offload.Plan // without its jobs
	doubts  bool         // something could not be read: more may wait than is known
	backlog *backlog
	parked  map[place]offload.Reason
	held    int
	success time.Time // when the last pass ended that was not given up; zero = none has
}

// place is what can't be worked on.
type place struct {
	topic     string
	plain     bool
	partition int
	segment   string
}

func newState(o Options) state {
	return state{shards: -1, sla: o.SLA, topics: newSlots(o.Topics, o.MaxTopics), archived: map[string]*amount{}}
}

// follow forgets what only a leader knows.
func (s *state) follow() { s.leads, s.found, s.verified = false, nil, nil }

// planned takes a scan. What could not be worked on in the last pass is not
// known to work until it was tried again.
func (s *state) planned(p offload.Plan, now time.Time) {
	f := s.found
	if f == nil {
		f = &found{parked: map[place]offload.Reason{}}
		s.found = f
	}
	s.topics.keep(present(p))
	for label := range s.archived {
		if !s.topics.inUse(label) {
			delete(s.archived, label)
		}
	}
	f.plan = offload.Plan{At: p.At, Counts: p.Counts, Lag: p.Lag}
	f.doubts = len(p.Problems) > 0
	f.backlog = newBacklog(p, &s.topics, now)
	for label := range f.backlog.lines {
		if s.archived[label] == nil {
			s.archived[label] = new(amount) // so that the first segment shows as an increase
		}
	}
	for _, problem := range p.Problems {
		s.park(problem)
	}
}

// present lists the topics of a plan, in its order.
func present(p offload.Plan) []topic {
	var all []topic
	for _, t := range p.Topics {
		all = append(all, topic{t.Topic, t.Plain})
	}
	for _, problem := range p.Problems {
		if problem.Topic != "" {
			all = append(all, topic{problem.Topic, problem.Plain})
		}
	}
	return all
}

// finished takes what became of a segment.
func (s *state) finished(o offload.Outcome) {
	if s.found == nil {
		return
	}
	if o.Result != offload.Held && o.Result != offload.LostRace {
		delete(s.found.parked, place{o.Partition.Topic, o.Partition.Plain, o.Partition.Number, o.Segment.String()})
	}
	if o.Result != offload.Copied && o.Result != offload.Adopted {
		return
	}
	s.found.backlog.done(o.Partition, o.Segment)
	if a := s.archived[s.topics.label(topic{o.Partition.Topic, o.Partition.Plain})]; a != nil {
		a.segments++
		a.bytes += o.BytesOut
	}
}

// park takes what can't be worked on.
func (s *state) park(p offload.Problem) {
	if s.found == nil {
		return
	}
	if !slices.Contains(offload.Reasons(), p.Reason) {
		p.Reason = offload.ReasonOther
	}
	s.found.parked[placeOf(p)] = p.Reason
}

func placeOf(p offload.Problem) place { return place{p.Topic, p.Plain, p.Partition, p.Segment} }

// passed takes a pass that is over.
func (s *state) passed(r offload.Report, err error, now time.Time) {
	f := s.found
	if f == nil {
		return
	}
	if err == nil { // otherwise not all were looked at
		clear(f.parked)
	}
	for _, p := range r.Problems {
		s.park(p)
	}
	f.held = 0
	for _, o := range r.Outcomes {
		if o.Result == offload.Held {
			f.held++
		}
	}
	if err == nil {
		f.success = now
	}
}

// heldShards is how many shards this instance holds.
func (s *state) heldShards() int {
	switch {
	case s.shards >= 0:
		return s.shards
	case s.leads:
		return 1
	}
	return 0
}

// topic names a topic, or a plain stream.
type topic struct {
	name  string // of a plain stream its key
	plain bool
}

// otherTopics is the label that all topics share that have none of their own.
const otherTopics = "_other"

// text is a topic as a label. A name that breaks the rule may hold anything, and
// be of any length: it is none.
func (t topic) text() string {
	switch {
	case t.plain:
		return segment.SafeKey(t.name)
	case segment.ValidateTopic(t.name) != nil:
		return otherTopics
	}
	return t.name
}

// slots gives labels to topics. Who has one keeps it until the topic is gone.
type slots struct {
	on    bool
	most  int
	taken map[string]bool
	rest  bool // there are topics without one
}

func newSlots(on bool, most int) slots { return slots{on: on, most: most, taken: map[string]bool{}} }

// keep takes the labels of topics that are gone, and gives them to those that
// have none, in their order.
func (s *slots) keep(present []topic) {
	s.rest = false
	if !s.on {
		return
	}
	there := make(map[string]bool, len(present))
	for _, t := range present {
		there[t.text()] = true
	}
	for text := range s.taken {
		if !there[text] {
			delete(s.taken, text)
		}
	}
	for _, t := range present {
		switch text := t.text(); {
		case s.taken[text]:
		case len(s.taken) < s.most && text != otherTopics:
			s.taken[text] = true
		default:
			s.rest = true
		}
	}
}

func (s *slots) label(t topic) string {
	if text := t.text(); s.taken[text] {
		return text
	}
	return otherTopics
}

func (s *slots) inUse(label string) bool { return s.taken[label] || s.rest && label == otherTopics }
