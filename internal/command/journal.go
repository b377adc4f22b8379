package command

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/ops"
	"korvet-offload/lease"
	"korvet-offload/offload"
)

// journal writes the log of a running worker and keeps its health. What stays
// the same from tick to tick is written once: a problem when it comes, when
// its reason changes and when it is gone; following when it begins.
type journal struct {
	log    *zap.Logger
	health *ops.Health
	now    func() time.Time

	mu        sync.Mutex
	known     map[string]offload.Reason // problems, by where they are
	following bool
	down      map[part]outage
	barren    bool // the last scan found no topic
	noticed   []string
	holds     bool // local copies are kept for consumer groups
	throttled bool // the store gets fewer requests at once than there are
	leading   bool
	scanned   bool // since it leads
	lag       offload.Lag

	waits func(forWhat string) // told while the program can't start
}

func newJournal(log *zap.Logger, h *ops.Health) *journal {
	return &journal{log: log, health: h, now: time.Now, known: map[string]offload.Reason{}, down: map[part]outage{}, waits: func(string) {}}
}

// Planned implements offload.Observer.
func (j *journal) Planned(p offload.Plan) {
	j.log.Debug("scanned", zap.Int("topics", p.Counts.Topics), zap.Int("partitions", p.Counts.Partitions),
		zap.Int("sealed", p.Counts.Sealed), zap.Int("remote", p.Counts.Remote), zap.Duration("oldest", p.Lag.Oldest))
	j.mu.Lock()
	before := j.barren
	j.barren = p.Counts.Topics == 0
	j.scanned, j.lag = true, p.Lag
	said := notices(p)
	news := slices.DeleteFunc(slices.Clone(said), func(n string) bool { return slices.Contains(j.noticed, n) })
	j.noticed = said
	j.mu.Unlock()
	for _, n := range news {
		j.log.Warn(n)
	}
	if p.Counts.Topics == 0 && !before {
		j.log.Warn(noTopics, zap.Int("other_topics", p.Counts.OtherTopics))
	}
}

// notices are things worth knowing that are no fault of a segment.
func notices(p offload.Plan) []string {
	notices := slices.Clone(p.Warnings)
	for _, t := range p.Removed {
		notices = append(notices, fmt.Sprintf("topic %s left the registry: %s", t.Topic.Name, whatBecomes(t.Phase)))
	}
	if p.Counts.Unuploaded > 0 {
		notices = append(notices, "segments are past total retention and were never copied; they stay in redis (expire-unuploaded)")
	}
	return notices
}

// noTopics is said where there is nothing to offload at all.
const noTopics = "no topic is to be offloaded: check korvet.namespace, the topic registry, and remote.storage.enable of the topics; " +
	"or, for plain streams, korvet.streams and the Set of their keys"

// Advanced implements offload.Observer.
func (j *journal) Advanced(int, int) {}

// Finished implements offload.Observer.
func (j *journal) Finished(o offload.Outcome) {
	segment := zap.String("segment", o.Partition.String()+"/"+o.Segment.String())
	why := []zap.Field{segment, zap.String("limit", o.Why.Limit), zap.Int64("over_"+o.Why.Unit(), o.Why.Over)}
	switch o.Result {
	case offload.LostRace:
		j.log.Info("segment was changed by another instance first; nothing done", segment)
	case offload.Created:
		j.log.Info("partition has its first segment", segment)
	case offload.Rolled:
		why = append(why, zap.Int64("entries", o.Contents.Count))
		if o.Missing > 0 {
			why = append(why, zap.Int64("removed_before", o.Missing))
		}
		j.log.Info("segment is sealed, and the next one open", why...)
	case offload.Dropped:
		j.log.Info("local copy is removed", append(why, zap.Int64("entries", o.Contents.Count))...)
	case offload.Held:
		j.log.Debug("local copy is kept: a consumer group needs it", append(why, zap.NamedError("group", o.Cause))...)
	case offload.Reopened:
		j.log.Warn("segment is local again, and will be copied once more", segment, zap.NamedError("cause", o.Cause))
	case offload.Hidden:
		j.log.Info("segment is hidden, and will be deleted after delete-grace", why...)
	case offload.Returned:
		j.log.Warn("segment is no longer hidden: its topic has come back", segment)
	case offload.Expired:
		j.log.Info("segment is deleted", segment, zap.String("object", o.Path), zap.Int64("entries", o.Contents.Count))
	case offload.ExpiredUnuploaded:
		j.log.Warn("segment is deleted that was never copied", segment, zap.Int64("entries", o.Contents.Count))
	default:
		j.copied(o, segment)
	}
}

func (j *journal) copied(o offload.Outcome, segment zap.Field) {
	fields := []zap.Field{segment, zap.String("result", string(o.Result)), zap.String("object", o.Path),
		zap.Int64("entries", o.Contents.Count), zap.Int64("bytes_in", o.BytesIn), zap.Int64("bytes_out", o.BytesOut), zap.Duration("took", o.Duration)}
	if o.Missing > 0 {
		fields = append(fields, zap.Int64("removed_before", o.Missing))
	}
	j.log.Info("segment is remote", fields...)
}

// Failed implements offload.Observer: Passed writes it down with the others.
func (j *journal) Failed(offload.Problem) {}

// Leads implements offload.LoopObserver.
func (j *journal) Leads() {
	j.setStanding(true, false)
	j.log.Info("this instance leads")
}

// Follows implements offload.LoopObserver. Redis has answered, which is all
// that a follower needs.
func (j *journal) Follows() {
	j.works(partRedis, partLease, partStore, partData)
	if !j.setStanding(false, true) {
		j.log.Info("another instance leads; this one waits to take over")
	}
}

// Lost implements offload.LoopObserver.
func (j *journal) Lost(cause error) {
	j.setStanding(false, false)
	if to := lentTo(cause); to != "" {
		j.log.Info("the lease is lent; this instance goes on when it is given back", zap.String("to", to))
		return
	}
	if errNoShards(cause) {
		j.log.Info("this instance has no shard any more; others do the work")
		return
	}
	j.log.Warn("this instance leads no longer; work under way was cancelled", zap.Error(cause))
}

// LoopFailed is LoopObserver's Failed.
func (j *journal) loopFailed(err error) {
	j.fails(partLease, "the lease can't be asked for; trying again at the next tick", err)
}

// Passed implements offload.LoopObserver.
func (j *journal) Passed(r offload.Report, err error) {
	j.problems(r.Problems)
	j.held(r.Outcomes)
	j.judge(r, err)
	j.judgeData(r.Plan)
	j.log.Debug("pass done", zap.Int("segments", len(r.Outcomes)), zap.Int("problems", len(r.Problems)), zap.Duration("took", r.Duration))
}

// held says, when it begins and when it ends, that consumer groups keep local
// copies: a group that nobody reads keeps them for ever.
func (j *journal) held(outcomes []offload.Outcome) {
	n, who := 0, error(nil)
	for _, o := range outcomes {
		if o.Result == offload.Held {
			n, who = n+1, o.Cause
		}
	}
	j.mu.Lock()
	before := j.holds
	j.holds = n > 0
	j.mu.Unlock()
	switch {
	case n > 0 && !before:
		j.log.Info("local copies past retention are kept for consumer groups (hold-pending)", zap.Int("segments", n), zap.NamedError("one", who))
	case n == 0 && before:
		j.log.Info("no consumer group keeps local copies any more")
	}
}

// judge says what a pass has shown of Redis and the store. As long as segments
// wait for the store to work again and none goes through, it is down, however
// quiet the passes in between are.
func (j *journal) judge(r offload.Report, err error) {
	const givenUp = "pass given up; going on at the next tick"
	switch left := zap.Int("segments_left", r.Left); {
	case errNoShards(err):
		j.works(partRedis, partLease)
		return
	case errors.Is(err, lease.ErrLost):
		j.fails(partLease, givenUp, err, left)
		return
	case errors.Is(err, offload.ErrDataLost):
		j.fails(partData, "redis seems to have lost its data; nothing is done", err)
		return
	case err != nil && !errors.Is(err, offload.ErrStoreDown):
		j.fails(partRedis, givenUp, err, left)
		return
	}
	worked := slices.ContainsFunc(r.Outcomes, func(o offload.Outcome) bool { return o.Result.UsedStore() })
	if err == nil && !worked {
		for _, p := range r.Problems {
			if p.Reason == offload.ReasonStore {
				err = p.Err
			}
		}
	}
	if err != nil {
		j.fails(partStore, "the store can't be used; going on at the next tick", err, zap.Int("segments_left", r.Left))
	} else {
		j.works(partStore)
	}
	j.works(partRedis, partLease)
}

// judgeData says what a plan, if there is one, shows of the data in Redis. All
// that is there is worked on; but nobody is to believe that all is well.
func (j *journal) judgeData(p offload.Plan) {
	switch {
	case errors.Is(p.Doubt, offload.ErrDataLost):
		j.fails(partData, "redis seems to have lost its data; nothing of a topic is deleted", p.Doubt)
	case !p.At.IsZero():
		j.works(partData)
	}
}

// problems writes down what has come, changed and gone since the last pass.
func (j *journal) problems(now []offload.Problem) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.known
	j.known = make(map[string]offload.Reason, len(now))
	for _, p := range now {
		where := place(p)
		if _, said := j.known[where]; said {
			continue
		}
		j.known[where] = p.Reason
		if before[where] != p.Reason {
			j.writeProblem(where, p)
		}
	}
	for where := range before {
		if _, still := j.known[where]; !still {
			j.log.Info("no longer a problem, or no longer looked at", zap.String("what", where))
		}
	}
}

// place is where a problem is said to be. A store that does not let objects go
// does so for all of them; that is one thing to write down, not ten thousand.
func place(p offload.Problem) string {
	if p.Reason == offload.ReasonDenied {
		return "deletions"
	}
	return p.Where()
}

func (j *journal) writeProblem(where string, p offload.Problem) {
	write := j.log.Warn
	if p.Reason.Loss() {
		write = j.log.Error
	}
	write("can't be worked on for now; all else goes on", zap.String("what", where),
		zap.String("reason", string(p.Reason)), zap.NamedError("cause", p.Err))
}

// listening tells where the HTTP server is.
func (j *journal) listening(a net.Addr) {
	j.log.Info("listening", zap.String("address", a.String()))
}
