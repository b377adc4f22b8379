package command

import (
	"net"
	"strings"
	"sync"

	"go.uber.org/zap"

	"korvet-offload/internal/ops"
	"korvet-offload/offload"
)

// journal writes the log of a running worker and keeps its health. What stays
// the same from tick to tick is written once: a problem when it comes, when
// its reason changes and when it is gone; following when it begins.
type journal struct {
	log    *zap.Logger
	health *ops.Health

	mu        sync.Mutex
	known     map[string]offload.Reason // problems, by where they are
	following bool
	down      string // why the last pass failed; "" = it did not
}

func newJournal(log *zap.Logger, h *ops.Health) *journal {
	return &journal{log: log, health: h, known: map[string]offload.Reason{}}
}

// Planned implements offload.Observer.
func (j *journal) Planned(p offload.Plan) {
	j.log.Debug("scanned", zap.Int("topics", p.Counts.Topics), zap.Int("partitions", p.Counts.Partitions),
		zap.Int("sealed", p.Counts.Sealed), zap.Int("remote", p.Counts.Remote), zap.Duration("oldest", p.Lag.Oldest))
}

// Advanced implements offload.Observer.
func (j *journal) Advanced(int, int) {}

// Finished implements offload.Observer.
func (j *journal) Finished(o offload.Outcome) {
	segment := zap.String("segment", o.Partition.String()+"/"+o.Segment.String())
	if o.Result == offload.LostRace {
		j.log.Info("segment was changed by another instance first; nothing done", segment)
		return
	}
	j.log.Info("segment is remote", segment, zap.String("result", string(o.Result)), zap.String("object", o.Path),
		zap.Int64("entries", o.Contents.Count), zap.Int64("bytes_in", o.BytesIn), zap.Int64("bytes_out", o.BytesOut),
		zap.Duration("took", o.Duration))
}

// Failed implements offload.Observer: Passed writes it down with the others.
func (j *journal) Failed(offload.Problem) {}

// Leads implements offload.LoopObserver.
func (j *journal) Leads() {
	j.setFollowing(false)
	j.log.Info("this instance leads")
}

// Follows implements offload.LoopObserver. Redis has answered, which is all
// that a follower needs.
func (j *journal) Follows() {
	j.works()
	if !j.setFollowing(true) {
		j.log.Info("another instance leads; this one waits to take over")
	}
}

func (j *journal) setFollowing(now bool) (before bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, j.following = j.following, now
	return before
}

// Lost implements offload.LoopObserver.
func (j *journal) Lost(cause error) {
	j.log.Warn("this instance leads no longer; work under way was cancelled", zap.Error(cause))
}

// LoopFailed is LoopObserver's Failed.
func (j *journal) loopFailed(err error) {
	j.outage("the lease can't be asked for; trying again at the next tick", err)
}

// Passed implements offload.LoopObserver.
func (j *journal) Passed(r offload.Report, err error) {
	j.problems(r.Problems)
	if err != nil {
		j.outage("pass given up; going on at the next tick", err, zap.Int("segments_left", r.Left))
		return
	}
	j.works()
	j.log.Debug("pass done", zap.Int("segments", len(r.Outcomes)), zap.Int("problems", len(r.Problems)), zap.Duration("took", r.Duration))
}

// works ends an outage, if there was one.
func (j *journal) works() {
	j.mu.Lock()
	recovered := j.down != ""
	j.down = ""
	j.mu.Unlock()
	j.health.Ready()
	if recovered {
		j.log.Info("works again")
	}
}

// outage writes down, once for each cause, why no work can be done.
func (j *journal) outage(what string, err error, fields ...zap.Field) {
	j.health.NotReady(err.Error())
	cause := sameCause(err)
	j.mu.Lock()
	same := j.down == cause
	j.down = cause
	j.mu.Unlock()
	if !same {
		j.log.Error(what, append(fields, zap.Error(err))...)
	}
}

// sameCause is an error's text without its numbers: the local port of a
// connection is another one each time.
func sameCause(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// problems writes down what has come, changed and gone since the last pass.
func (j *journal) problems(now []offload.Problem) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before := j.known
	j.known = make(map[string]offload.Reason, len(now))
	for _, p := range now {
		where := p.Where()
		j.known[where] = p.Reason
		if before[where] != p.Reason {
			j.log.Warn("parked; tried again with back-off, all else goes on", zap.String("what", where),
				zap.String("reason", string(p.Reason)), zap.NamedError("cause", p.Err))
		}
	}
	for where := range before {
		if _, still := j.known[where]; !still {
			j.log.Info("no longer parked", zap.String("what", where))
		}
	}
}

// listening tells where the HTTP server is.
func (j *journal) listening(a net.Addr) {
	j.log.Info("listening", zap.String("address", a.String()))
}

// loopJournal is a journal as offload.Loop wants it.
type loopJournal struct {
	*journal
	stopping func() bool // the program has been told to stop
}

// Failed implements offload.LoopObserver.
func (l loopJournal) Failed(err error) { l.loopFailed(err) }

// Passed implements offload.LoopObserver. A pass that ends because the
// program does is no fault.
func (l loopJournal) Passed(r offload.Report, err error) {
	if err == nil || !l.stopping() {
		l.journal.Passed(r, err)
		return
	}
	l.log.Info("pass stopped; the next run goes on from the manifests", zap.Int("segments", len(r.Outcomes)), zap.Int("segments_left", r.Left))
}
