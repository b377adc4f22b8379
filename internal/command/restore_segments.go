package command

import (
	"context"
	"errors"
	"fmt"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/restore"
	"korvet-offload/internal/words"
)

// restoreView is a restore of segments as --output json prints it.
type restoreView struct {
	Partition string               `json:"partition"`
	Original  bool                 `json:"original"`
	Done      bool                 `json:"done"` // false: it is only said what would be done
	Segments  []restoreSegmentView `json:"segments"`
	Messages  int64                `json:"messages"`
	There     int64                `json:"there"` // of the messages, those that were in the streams already
	Memory    restoreMemoryView    `json:"memory"`
	Refused   []string             `json:"refused"`
	Notes     []string             `json:"notes"`
	Error     string               `json:"error,omitempty"`
}

type restoreSegmentView struct {
	Segment  string `json:"segment"`
	Result   string `json:"result"` // would_restore, restored, there, skipped or failed
	Messages int64  `json:"messages"`
	Written  int64  `json:"written"`
	There    int64  `json:"there"` // of the messages, those that were in the stream already
	Stream   string `json:"stream"`
	Object   string `json:"object,omitempty"`
	Why      string `json:"why,omitempty"`
}

type restoreMemoryView struct {
	Needs   int64 `json:"needs"`   // estimated, bytes
	Sampled int64 `json:"sampled"` // messages that the estimate rests on
	Used    int64 `json:"used"`    // -1 = the server does not say
	Max     int64 `json:"max"`     // 0 = no limit
}

// The results of a segment.
const (
	wouldRestore  = "would_restore"
	restored      = "restored"
	restoreThere  = "there" // all of it is in the stream already
	skipped       = "skipped"
	restoreFailed = "failed"
)

// segments restores segments of partitions, one partition after the other. One that
// can't be restored holds up no other.
func (r restorer) segments(ctx context.Context, what names, q restore.Query) error {
	parts, err := r.partitionsOf(ctx, what)
	if err != nil {
		return err
	}
	out := restoreOutput{restorer: r, single: len(what) == 1 && !what[0].topic}
	queries := make([]restore.Query, len(parts))
	for i, p := range parts {
		if queries[i], err = r.queryOf(q, what, p); err != nil {
			return err
		}
	}
	do := func(ctx context.Context) error {
		for _, q := range queries {
			if err := r.partition(ctx, q, &out); err != nil {
				return err
			}
		}
		return nil
	}
	if r.yes {
		err = r.borrowed(ctx, do)
	} else {
		err = do(ctx)
	}
	return out.end(err)
}

// partition restores segments of one partition, or says what would be done. The
// error is one that the others would meet as well.
func (r restorer) partition(ctx context.Context, q restore.Query, out *restoreOutput) error {
	plan, err := r.planSegments(ctx, q)
	if err != nil {
		return err
	}
	if q.Original {
		paused, err := r.pauses.Paused(ctx)
		if err != nil {
			return err
		}
		if why := whyPaused(paused, q.Partition); why != nil {
			plan.Refused = append(plan.Refused, why)
		}
	}
	var done []restore.Done
	if r.yes {
		err = r.Run(ctx, plan, func(d restore.Done) { done = append(done, d) })
		if errors.Is(err, context.Canceled) {
			return err
		}
	}
	return out.add(segmentsView(plan, done, err, r.yes))
}

func (r restorer) planSegments(ctx context.Context, q restore.Query) (restore.Plan, error) {
	topics, err := r.redis.Topics(ctx)
	if err != nil {
		return restore.Plan{}, err
	}
	return r.Plan(ctx, q, settingsOf(topics, q.Partition))
}

// restoreOutput prints what is restored: of each partition a table as it is done,
// or all as JSON in the end.
type restoreOutput struct {
	restorer
	single bool // one partition was named
	views  []restoreView
	fault  bool
}

func (o *restoreOutput) add(v restoreView) error {
	if o.format != outputJSON {
		if !o.single {
			if err := o.writeLines([]string{v.Partition + ":"}); err != nil {
				return err
			}
		}
		if err := o.segmentsTable(v); err != nil {
			return err
		}
	}
	o.views = append(o.views, v)
	o.complainOf(v)
	return nil
}

// complainOf says what was not restored.
func (o *restoreOutput) complainOf(v restoreView) {
	for _, why := range v.Refused {
		o.complain(fmt.Sprintf("restore %s: %s", v.Partition, why))
	}
	fault := len(v.Refused) > 0
	for _, s := range v.Segments {
		if s.Result == restoreFailed {
			fault = true
			o.complain(fmt.Sprintf("segment %s/%s: %s", v.Partition, s.Segment, s.Why))
		}
	}
	if v.Error != "" && !fault {
		o.complain(fmt.Sprintf("restore %s: %s", v.Partition, v.Error))
	}
	o.fault = o.fault || fault || v.Error != ""
}

// end prints what is left, and decides about the exit code.
func (o *restoreOutput) end(err error) error {
	if o.format == outputJSON && len(o.views) > 0 {
		var view any = o.views[0]
		if !o.single {
			view = struct {
				Partitions []restoreView `json:"partitions"`
			}{o.views}
		}
		err = errors.Join(err, cmdline.WriteJSON(o.Stdout, view))
	}
	if err == nil && o.fault {
		return cmdline.ErrReported
	}
	return err
}

func segmentsView(plan restore.Plan, done []restore.Done, failed error, yes bool) restoreView {
	v := restoreView{Partition: plan.Partition.String(), Original: plan.Original, Done: yes, Segments: []restoreSegmentView{},
		Messages: plan.Messages, Refused: []string{}, Notes: append([]string{}, plan.Notes...),
		Memory: restoreMemoryView{Needs: plan.Memory.Needs, Sampled: plan.Memory.Sampled, Used: plan.Memory.Used, Max: plan.Memory.Most}}
	for _, err := range plan.Refused {
		v.Refused = append(v.Refused, err.Error())
	}
	if failed != nil && len(plan.Refused) == 0 {
		v.Error = failed.Error()
	}
	did := map[string]restore.Done{}
	for _, d := range done {
		did[d.Number.String()] = d
	}
	for _, s := range plan.Steps {
		one := restoreSegmentView{Segment: s.Number.String(), Result: wouldRestore, Messages: max(0, s.Messages), Stream: s.Key}
		if s.Entry.Object != nil {
			one.Object = s.Entry.Object.Path
		}
		d, was := did[one.Segment]
		if one.Written, one.There = d.Written, d.There; !yes {
			one.There = s.There
		}
		v.There += one.There
		switch {
		case s.Fault != nil:
			one.Result, one.Why = restoreFailed, s.Fault.Error()
		case s.Skip != "":
			one.Result, one.Why = skipped, s.Skip
		case was && d.Err != nil:
			one.Result, one.Why = restoreFailed, d.Err.Error()
		case !plan.Original && one.There > 0 && one.There == one.Messages:
			one.Result = restoreThere
		case was:
			one.Result = restored
		case yes:
			one.Result, one.Why = skipped, "it was not reached"
		}
		v.Segments = append(v.Segments, one)
	}
	return v
}

func (r restorer) segmentsTable(v restoreView) error {
	t := newTable("SEGMENT", "RESULT", ">MESSAGES", ">WRITTEN", ">THERE", "STREAM", "WHY")
	for _, s := range v.Segments {
		t.add(s.Segment, s.Result, s.Messages, s.Written, s.There, word(s.Stream), dash(s.Why))
	}
	if len(t.rows) > 0 {
		if err := t.write(r.Stdout); err != nil {
			return err
		}
	}
	lines := append([]string{}, v.Notes...)
	if v.Memory.Sampled > 0 && v.Memory.Needs > 0 {
		lines = append(lines, memoryLine(v.Memory))
	}
	return r.writeLines(append(lines, v.sum()))
}

// sum says in a line what was done, or would be.
func (v restoreView) sum() string {
	var written int64
	n, there := 0, 0
	for _, s := range v.Segments {
		written += s.Written
		switch s.Result {
		case restored, wouldRestore:
			n++
		case restoreThere:
			there++
		}
	}
	segments := words.Count(n+there, "segment")
	switch {
	case n+there == 0:
		return "nothing to restore"
	case n == 0 && !v.Done: // what is in them was not read
		return fmt.Sprintf("%d of %s %s there already, by their number and ids; --yes compares what is in them", v.There, words.Count(v.Messages, "message"), words.Are(v.There))
	case n == 0:
		return fmt.Sprintf("%d of %s %s there already; nothing to do", v.There, words.Count(v.Messages, "message"), words.Are(v.There))
	case v.Done:
		return fmt.Sprintf("%s restored: %s written, %d there already", segments, words.Count(written, "message"), v.There)
	case v.There > 0:
		return fmt.Sprintf("%s with %s (%d %s there already) would be restored; --yes does it", segments, words.Count(v.Messages, "message"), v.There, words.Are(v.There))
	}
	return fmt.Sprintf("%s with %s would be restored; --yes does it", segments, words.Count(v.Messages, "message"))
}

func memoryLine(m restoreMemoryView) string {
	text := fmt.Sprintf("memory: about %s, by a sample of %s", words.Size(m.Needs), words.Count(m.Sampled, "message"))
	switch {
	case m.Used < 0:
	case m.Max == 0:
		text += fmt.Sprintf("; Redis uses %s and has no limit", words.Size(m.Used))
	default:
		text += fmt.Sprintf("; Redis uses %s of %s", words.Size(m.Used), words.Size(m.Max))
	}
	return text
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
