package offload

import (
	"errors"
	"sync"
	"time"

	"korvet-offload/segment"
)

// longestParking caps the back-off of a segment that fails again and again;
// longestOutage that of one that failed because of Redis or the store, which
// says nothing about the segment.
const (
	longestParking = time.Hour
	longestOutage  = 5 * time.Minute
)

// ref names a segment.
type ref struct {
	partition segment.Partition
	number    segment.Number
}

// parking remembers the segments that could not be copied, so that each is
// retried with back-off instead of at every tick. It is memory only: a
// restart tries everything again. Safe for concurrent use.
type parking struct {
	base   time.Duration // the first wait
	now    func() time.Time
	jitter func() float64 // 0 <= jitter < 1

	mu     sync.Mutex
	parked map[ref]parked
}

type parked struct {
	raw     string // the entry then; a changed one is tried at once
	fails   int
	until   time.Time
	problem Problem
}

func newParking(base time.Duration, now func() time.Time, jitter func() float64) *parking {
	return &parking{base: base, now: now, jitter: jitter, parked: map[ref]parked{}}
}

// rebase changes the first wait of what is parked from now on.
func (p *parking) rebase(base time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.base = base
}

// failed parks a segment for longer each time: between half of and the whole
// of base, 2 base, 4 base ... up to an hour. raw is the entry as the attempt
// has left it: an attempt that raised the copy is no new beginning.
func (p *parking) failed(j Job, raw string, problem Problem) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := ref{j.Partition, j.Stored.Number}
	was := p.parked[r]
	fails := was.fails + 1
	if was.raw != j.Stored.Raw {
		fails = 1
	}
	longest := longestParking
	if isOutage(problem.Err) {
		longest = max(p.base, longestOutage)
	}
	wait := p.base
	for i := 1; i < fails && wait < longest; i++ {
		wait *= 2
	}
	wait = min(wait, longest)
	wait = wait/2 + time.Duration(p.jitter()*float64(wait/2))
	problem.Retry = p.now().Add(wait)
	p.parked[r] = parked{raw: raw, fails: fails, until: problem.Retry, problem: problem}
}

// holds says whether a segment still waits, and for what it was parked.
func (p *parking) holds(j Job) (Problem, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, ok := p.parked[ref{j.Partition, j.Stored.Number}]
	return was.problem, ok && was.raw == j.Stored.Raw && p.now().Before(was.until)
}

// waits says whether a segment still waits, as far as is known without its
// entry.
func (p *parking) waits(j Job) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was, ok := p.parked[ref{j.Partition, j.Stored.Number}]
	return ok && p.now().Before(was.until) && (j.Stored.Raw == "" || j.Stored.Raw == was.raw)
}

// outageOver lets the segments be tried at once that failed because of the
// store or Redis: both work again.
func (p *parking) outageOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for r, was := range p.parked {
		if isOutage(was.problem.Err) {
			was.until = p.now()
			p.parked[r] = was
		}
	}
}

// isOutage says whether an error speaks of Redis or the store as a whole.
func isOutage(err error) bool { return errors.Is(err, ErrStoreDown) || errors.Is(err, ErrRedisDown) }

// freed forgets a segment that went through.
func (p *parking) freed(j Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.parked, ref{j.Partition, j.Stored.Number})
}

// keepOnly forgets the segments that are no longer due.
func (p *parking) keepOnly(due [][]Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.parked) == 0 {
		return
	}
	keep := map[ref]bool{}
	for _, jobs := range due {
		for _, j := range jobs {
			keep[ref{j.Partition, j.Stored.Number}] = true
		}
	}
	for r := range p.parked {
		if !keep[r] {
			delete(p.parked, r)
		}
	}
}
