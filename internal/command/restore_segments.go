package command

import (
	"context"
	"errors"
	"fmt"

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
	Memory    restoreMemoryView    `json:"memory"`
	Refused   []string             `json:"refused"`
	Notes     []string             `json:"notes"`
	Error     string               `json:"error,omitempty"`
}

type restoreSegmentView struct {
	Segment  string `json:"segment"`
	Result   string `json:"result"` // would_restore, restored, skipped or failed
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
	skipped       = "skipped"
	restoreFailed = "failed"
)

// segments restores segments of one partition.
func (r restorer) segments(ctx context.Context, q restore.Query) error {
	if !r.yes {
		plan, err := r.planSegments(ctx, q)
		if err != nil {
			return err
		}
		return r.printSegments(plan, nil, nil)
	}
	return r.borrowed(ctx, func(ctx context.Context) error {
		plan, err := r.planSegments(ctx, q)
		if err != nil {
			return err
		}
		var done []restore.Done
		err = r.Run(ctx, plan, func(d restore.Done) { done = append(done, d) })
		if errors.Is(err, context.Canceled) {
			return err
		}
		return r.printSegments(plan, done, err)
	})
}

func (r restorer) planSegments(ctx context.Context, q restore.Query) (restore.Plan, error) {
	topics, err := r.redis.Topics(ctx)
	if err != nil {
		return restore.Plan{}, err
	}
	return r.Plan(ctx, q, settingsOf(topics, q.Partition))
}

func (r restorer) printSegments(plan restore.Plan, done []restore.Done, failed error) error {
	v := segmentsView(plan, done, failed, r.yes)
	var err error
	if r.format == outputJSON {
		err = writeJSON(r.Stdout, v)
	} else {
		err = r.segmentsTable(v)
	}
	if err != nil {
		return err
	}
	for _, why := range v.Refused {
		r.complain(fmt.Sprintf("restore %s: %s", v.Partition, why))
	}
	fault := len(v.Refused) > 0
	for _, s := range v.Segments {
		if s.Result == restoreFailed {
			fault = true
			r.complain(fmt.Sprintf("segment %s/%s: %s", v.Partition, s.Segment, s.Why))
		}
	}
	if v.Error != "" && !fault {
		r.complain(fmt.Sprintf("restore %s: %s", v.Partition, v.Error))
	}
	if fault || v.Error != "" {
		return errReported
	}
	return nil
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
		one.Written, one.There = d.Written, d.There
		switch {
		case s.Fault != nil:
			one.Result, one.Why = restoreFailed, s.Fault.Error()
		case s.Skip != "":
			one.Result, one.Why = skipped, s.Skip
		case was && d.Err != nil:
			one.Result, one.Why = restoreFailed, d.Err.Error()
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
	var written, there int64
	n := 0
	for _, s := range v.Segments {
		t.add(s.Segment, s.Result, s.Messages, s.Written, s.There, word(s.Stream), dash(s.Why))
		written, there = written+s.Written, there+s.There
		if s.Result == restored || s.Result == wouldRestore {
			n++
		}
	}
	if len(t.rows) > 0 {
		if err := t.write(r.Stdout); err != nil {
			return err
		}
	}
	lines := append([]string{}, v.Notes...)
	if v.Memory.Sampled > 0 {
		lines = append(lines, memoryLine(v.Memory))
	}
	if v.Done {
		lines = append(lines, fmt.Sprintf("%s restored: %s written, %d there already", words.Count(n, "segment"), words.Count(written, "message"), there))
	} else {
		lines = append(lines, fmt.Sprintf("%s with %s would be restored; --yes does it", words.Count(n, "segment"), words.Count(v.Messages, "message")))
	}
	return r.writeLines(lines)
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
