package command

import (
	"fmt"
	"io"
	"sync"
	"time"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/words"
)

// findingView is a finding as --output json prints it.
type findingView struct {
	Kind      scrub.Kind `json:"kind"`
	Topic     string     `json:"topic"` // of a plain stream its key; "" where it is about the root
	Partition int        `json:"partition"`
	Plain     bool       `json:"plain,omitempty"`
	Segment   *uint64    `json:"segment"` // null where it is about no segment
	Path      string     `json:"path"`    // of the object, below the root
	Detail    string     `json:"detail"`
}

func makeFinding(f scrub.Finding) findingView {
	v := findingView{Kind: f.Kind, Topic: f.Partition.Topic, Partition: f.Partition.Number, Plain: f.Partition.Plain, Path: f.Path, Detail: f.Detail}
	if f.HasSegment {
		v.Segment = new(uint64(f.Segment))
	}
	return v
}

// verifyView is what --output json prints.
type verifyView struct {
	Clean    bool          `json:"clean"` // nothing is wrong, and all could be read
	Findings []findingView `json:"findings"`
	Notes    []findingView `json:"notes"` // with --notes
	Looked   scrub.Report  `json:"looked"`
	Seconds  float64       `json:"seconds"`
	Error    string        `json:"error"` // what could not be read; "" = nothing
}

// verifyOutput prints what a scrub finds: lines as they come, or JSON at its end.
type verifyOutput struct {
	Process
	format string
	notes  bool
	bar    *scrubProgress

	view verifyView
	err  error // of printing
}

func (o *verifyOutput) found(f scrub.Finding) {
	switch {
	case f.Note && !o.notes:
	case o.format == outputJSON && f.Note:
		o.view.Notes = append(o.view.Notes, makeFinding(f))
	case o.format == outputJSON:
		o.view.Findings = append(o.view.Findings, makeFinding(f))
	default:
		o.bar.clear(func() {
			if _, err := fmt.Fprintln(o.Stdout, findingLine(f)); err != nil && o.err == nil {
				o.err = err
			}
		})
	}
}

// finish prints the end, and decides about the exit code.
func (o *verifyOutput) finish(r scrub.Report, err error) error {
	var wrong int64
	for _, n := range r.Findings {
		wrong += n
	}
	if perr := o.print(r, wrong, err); perr != nil {
		return perr
	}
	if err != nil {
		o.complain(fmt.Sprintf("not all could be looked at: %v", err))
	}
	if err != nil || wrong > 0 {
		return cmdline.ErrReported
	}
	return nil
}

func (o *verifyOutput) print(r scrub.Report, wrong int64, err error) error {
	if o.err != nil {
		return fmt.Errorf("print findings: %w", o.err)
	}
	if o.format == outputJSON {
		o.view.Looked, o.view.Seconds, o.view.Clean = r, r.Duration.Seconds(), wrong == 0 && err == nil
		if err != nil {
			o.view.Error = err.Error()
		}
		o.view.Findings, o.view.Notes = append([]findingView{}, o.view.Findings...), append([]findingView{}, o.view.Notes...)
		return cmdline.WriteJSON(o.Stdout, o.view)
	}
	verdict := "nothing is wrong"
	switch {
	case wrong > 0:
		verdict = words.Count(wrong, "finding")
	case err != nil:
		verdict = "nothing was found to be wrong, and not all could be looked at"
	}
	if r.Notes > 0 {
		verdict += ", " + words.Count(r.Notes, "note")
		if !o.notes {
			verdict += " (--notes)"
		}
	}
	if r.Unsteady > 0 {
		verdict += fmt.Sprintf("; %d that changed at every look", r.Unsteady)
	}
	return o.writeLines([]string{fmt.Sprintf("%s; %s; %s", verifySummary(r), ago(r.Duration), verdict)})
}

// scrubProgress draws one line on a terminal while a scrub runs. Anywhere else it
// draws nothing.
type scrubProgress struct {
	out   io.Writer // nil = nobody looks
	begun time.Time

	mu  sync.Mutex
	now scrub.Progress

	stop  chan struct{}
	drawn sync.WaitGroup
}

// startScrubProgress draws on w if it is a terminal, until end is called.
func startScrubProgress(w io.Writer) *scrubProgress {
	p := &scrubProgress{stop: make(chan struct{}), begun: time.Now()}
	if !terminal(w) {
		return p
	}
	p.out = w
	p.drawn.Go(p.draw)
	return p
}

// end wipes the line away.
func (p *scrubProgress) end() {
	close(p.stop)
	p.drawn.Wait()
}

func (p *scrubProgress) told(now scrub.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = now
}

// clear wipes the line away while something else is printed.
func (p *scrubProgress) clear(say func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.out != nil {
		_, _ = fmt.Fprint(p.out, "\r\x1b[K")
	}
	say()
}

func (p *scrubProgress) draw() {
	tick := time.NewTicker(redraw)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			p.clear(func() {})
			return
		case <-tick.C:
			p.mu.Lock()
			_, _ = fmt.Fprintf(p.out, "\r\x1b[K%s", scrubLine(p.now, time.Since(p.begun)))
			p.mu.Unlock()
		}
	}
}

// scrubLine is what is drawn after a time.
func scrubLine(p scrub.Progress, after time.Duration) string {
	line := fmt.Sprintf("%d/%d partitions", p.Done, p.All)
	if p.Of > 0 {
		line += fmt.Sprintf("  %s of %s  %.1f MB/s", words.Size(p.Read), words.Size(p.Of), float64(p.Read)/1e6/after.Seconds())
	}
	done, all := float64(p.Done), float64(p.All)
	if p.Of > 0 {
		done, all = float64(p.Read), float64(p.Of)
	}
	if done > 0 && all > done {
		left := time.Duration(float64(after) * (all - done) / done)
		line += fmt.Sprintf("  %s left", left.Round(time.Second))
	}
	if p.Partition.Topic != "" {
		line += "  " + p.Partition.String()
	}
	return line
}
