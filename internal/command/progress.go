package command

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"korvet-offload/offload"
)

// redraw is how often the progress line is drawn.
const redraw = 200 * time.Millisecond

// progress draws one line on a terminal while a pass runs: segments,
// messages, speed, time left. Anywhere else it draws nothing.
type progress struct {
	out   io.Writer    // nil = nobody looks
	begun atomic.Int64 // when the pass knew what to do, Unix ns

	planned, done, left atomic.Int64 // segments, segments, messages planned
	messages, bytes     atomic.Int64

	stop  chan struct{}
	drawn sync.WaitGroup
}

// startProgress draws on w if it is a terminal, until end is called.
func startProgress(w io.Writer) *progress {
	p := &progress{stop: make(chan struct{})}
	if !terminal(w) {
		return p
	}
	p.out = w
	p.drawn.Go(p.draw)
	return p
}

// end wipes the line away.
func (p *progress) end() {
	close(p.stop)
	p.drawn.Wait()
}

func (p *progress) draw() {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			_, _ = fmt.Fprint(p.out, "\r\x1b[K")
			return
		case <-tick.C:
			if p.planned.Load() > 0 {
				_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", p.line(time.Since(time.Unix(0, p.begun.Load()))))
			}
		}
	}
}

// line is what is drawn after a time.
func (p *progress) line(after time.Duration) string {
	line := fmt.Sprintf("%d/%d segments  %d messages  %.1f MB/s", p.done.Load(), p.planned.Load(), p.messages.Load(),
		float64(p.bytes.Load())/1e6/after.Seconds())
	if got, all := p.messages.Load(), p.left.Load(); got > 0 && all > got {
		left := time.Duration(float64(after) * float64(all-got) / float64(got))
		line += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	return line
}

// Planned implements offload.Observer. The speed counts from here.
func (p *progress) Planned(plan offload.Plan) {
	p.begun.Store(time.Now().UnixNano())
	for _, jobs := range plan.Jobs {
		p.planned.Add(int64(len(jobs)))
		for _, j := range jobs {
			p.left.Add(max(0, j.Stored.Entry.Count))
		}
	}
}

// Advanced implements offload.Observer.
func (p *progress) Advanced(entries, bytes int) {
	p.messages.Add(int64(entries))
	p.bytes.Add(int64(bytes))
}

// Finished implements offload.Observer.
func (p *progress) Finished(offload.Outcome) { p.done.Add(1) }

// Failed implements offload.Observer.
func (p *progress) Failed(offload.Problem) { p.done.Add(1) }
