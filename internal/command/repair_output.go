package command

import (
	"fmt"
	"strings"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/repair"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/words"
)

// repairView is a repair as --output json prints it.
type repairView struct {
	DryRun   bool          `json:"dry_run"`
	Healed   bool          `json:"healed"` // nothing is left that is wrong, as far as was looked; of a dry run: nothing would be
	Findings int64         `json:"findings"`
	Steps    []stepView    `json:"steps"`
	Counts   repair.Report `json:"counts"`
	Error    string        `json:"error"` // why it was given up, or could not look at everything; "" = it was not
}

type stepView struct {
	Action    repair.Deed   `json:"action"`
	Result    repair.Result `json:"result"`
	Topic     string        `json:"topic"` // of a plain stream its key; "" where it is about the root
	Partition int           `json:"partition"`
	Plain     bool          `json:"plain,omitempty"`
	Segment   *uint64       `json:"segment"` // null where it is about no segment
	Kinds     []scrub.Kind  `json:"kinds"`   // of the findings
	Path      string        `json:"path"`    // of the object that it relies on or is about
	Before    string        `json:"before"`
	After     string        `json:"after"`
	Object    string        `json:"object"` // that was put, of an action that copies
	Why       string        `json:"why"`
	Error     string        `json:"error"`
}

func makeStep(s repair.Step) stepView {
	v := stepView{Action: s.Deed, Result: s.Result, Topic: s.Partition.Topic, Partition: s.Partition.Number, Plain: s.Partition.Plain,
		Kinds: append([]scrub.Kind{}, s.Kinds...), Path: s.Path, Before: s.Before(), After: s.After(), Object: s.Copied.Path, Why: s.Why}
	if s.HasSegment {
		v.Segment = new(uint64(s.Segment))
	}
	if s.Err != nil {
		v.Error = s.Err.Error()
	}
	return v
}

// repairOutput prints what is done: a line for each action as it comes, which of
// JSON, printed at the end, goes to stderr if anything is changed.
type repairOutput struct {
	Process
	json, act  bool
	incomplete error // why not everything could be verified

	view repairView
	err  error // of printing
}

// did takes a step.
func (o *repairOutput) did(s repair.Step) {
	o.view.Steps = append(o.view.Steps, makeStep(s))
	to := o.Stdout
	switch {
	case o.json && (!o.act || !s.Deed.Acts()):
		return
	case o.json:
		to = o.Stderr
	}
	if _, err := fmt.Fprintln(to, stepLine(s)); err != nil && o.err == nil {
		o.err = err
	}
	if s.Err != nil {
		o.complain(s.Err.Error())
	}
}

// stepLine is a step as people read it: what, of which segment, from what to what,
// and why.
func stepLine(s repair.Step) string {
	place := findingPlace(scrub.Finding{Partition: s.Partition, Segment: s.Segment, HasSegment: s.HasSegment})
	if !s.Deed.Acts() {
		line := fmt.Sprintf("%s  %s  %s", s.Result, place, joined(s.Kinds))
		if s.Path != "" {
			line += "  " + word(s.Path)
		}
		return line + "  " + s.Why
	}
	line := fmt.Sprintf("%s: %s  %s", s.Result, s.Deed, place)
	after := s.After()
	if s.Path != "" && !strings.Contains(s.Before()+after, s.Path) {
		line += "  " + word(s.Path)
	}
	if s.Copied.Path != "" {
		after += ", then " + string(s.Copied.Result) + " to " + s.Copied.Path
	}
	return fmt.Sprintf("%s  %s -> %s  (%s)", line, s.Before(), after, s.Why)
}

func joined(kinds []scrub.Kind) string {
	all := make([]string, len(kinds))
	for i, k := range kinds {
		all[i] = string(k)
	}
	return strings.Join(all, ",")
}

// finish prints the end, and decides about the exit code.
func (o *repairOutput) finish(r repair.Report, err error) error {
	o.view.DryRun, o.view.Findings, o.view.Counts = !o.act, r.Findings, r
	o.view.Healed = err == nil && o.incomplete == nil && !r.Open()
	for _, e := range []error{o.incomplete, err} {
		if e != nil && o.view.Error == "" {
			o.view.Error = e.Error()
		}
	}
	if o.err != nil {
		return fmt.Errorf("print what was done: %w", o.err)
	}
	if perr := o.end(r); perr != nil {
		return perr
	}
	if o.incomplete != nil {
		o.complain(fmt.Sprintf("not all could be verified: %v", o.incomplete))
	}
	if err != nil {
		return err
	}
	if !o.view.Healed {
		return cmdline.ErrReported
	}
	return nil
}

func (o *repairOutput) end(r repair.Report) error {
	if o.json {
		o.view.Steps = append([]stepView{}, o.view.Steps...)
		return cmdline.WriteJSON(o.Stdout, o.view)
	}
	text := words.Count(r.Findings, "finding")
	for _, part := range []struct {
		result repair.Result
		says   string
	}{
		{repair.Done, "healed"}, {repair.Would, "would be healed"}, {repair.Healthy, "healthy"}, {repair.Left, "left"},
		{repair.LostRace, "changed meanwhile, run it again"}, {repair.Failed, "failed"},
	} {
		if n := r.Steps[part.result]; n > 0 {
			text += fmt.Sprintf("; %d %s", n, part.says)
		}
	}
	if !o.act && r.Steps[repair.Would] > 0 {
		text += "; nothing was changed: --yes acts"
	}
	return o.writeLines([]string{text})
}
