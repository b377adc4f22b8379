package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/words"
	"korvet-offload/offload"
)

// passView is a pass as --output json prints it.
type passView struct {
	Led      bool           `json:"led"` // false: another instance leads, or offload is switched off
	Segments []segmentView  `json:"segments"`
	Problems []problemView  `json:"problems"`
	Left     int            `json:"left"` // due, not tried
	Counts   offload.Counts `json:"found"`
	Paused   []pauseView    `json:"paused"`
	Seconds  float64        `json:"seconds"`
}

type segmentView struct {
	Topic     string  `json:"topic"` // of a plain stream its key
	Partition int     `json:"partition"`
	Plain     bool    `json:"plain,omitempty"` // a plain stream
	Segment   string  `json:"segment"`
	Result    string  `json:"result"`
	Messages  int64   `json:"messages"`
	BytesIn   int64   `json:"bytes_in"`
	BytesOut  int64   `json:"bytes_out"`
	Object    string  `json:"object"`
	Cause     string  `json:"cause,omitempty"` // of reopened and held
	Seconds   float64 `json:"seconds"`
}

type problemView struct {
	What      string `json:"what"`
	Topic     string `json:"topic,omitempty"`
	Partition *int   `json:"partition,omitempty"`
	Segment   string `json:"segment,omitempty"`
	Reason    string `json:"reason"`
	Error     string `json:"error"`
}

func problemViews(problems []offload.Problem) []problemView {
	views := make([]problemView, len(problems))
	for i, p := range problems {
		views[i] = problemView{What: p.Where(), Topic: p.Topic, Segment: p.Segment, Reason: string(p.Reason), Error: p.Err.Error()}
		if p.Partition >= 0 {
			views[i].Partition = &p.Partition
		}
	}
	return views
}

// printReport prints what a pass did.
func (p Process) printReport(format string, r offload.Report, cfg config.Config) error {
	slices.SortFunc(r.Outcomes, func(a, b offload.Outcome) int {
		return cmp.Or(cmp.Compare(a.Partition.Topic, b.Partition.Topic), cmp.Compare(a.Partition.Number, b.Partition.Number),
			cmp.Compare(a.Segment, b.Segment))
	})
	if format == outputJSON {
		return p.reportJSON(r, true)
	}
	t := newTable("PARTITION", ">SEGMENT", "RESULT", ">MESSAGES", ">READ", ">STORED", ">TOOK", "OBJECT")
	for _, o := range r.Outcomes {
		t.add(o.Partition, o.Segment, o.Result, o.Contents.Count, words.Size(o.BytesIn), words.Size(o.BytesOut), ago(o.Duration), o.Path)
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	if err := p.writeLines(pauseLines(r.Plan.Paused)); err != nil {
		return err
	}
	c := r.Plan.Counts
	_, err := fmt.Fprintf(p.Stdout, "%d of %s moved to %s in %s%s; %s, %s, %s remote before, %d open; %s\n",
		moved(r.Outcomes), words.Count(c.Sealed, "sealed segment"), cfg.Store.URL, ago(r.Duration), others(r.Outcomes), topicCount(c),
		words.Count(c.Partitions, "partition"), words.Count(c.Remote, "segment"), c.Open, words.Count(len(r.Problems), "problem"))
	if next := whatNext(r.Outcomes, cfg.Worker.SealGrace); err == nil && next != "" {
		_, err = fmt.Fprintln(p.Stdout, next)
	}
	if err == nil && c.Topics == 0 && !r.Plan.At.IsZero() { // a scan was made
		p.complain(noTopics)
	}
	return err
}

// whatNext says what becomes of what was only begun: nothing of it was moved, and
// that is no failure. "" where nothing was begun.
func whatNext(outcomes []offload.Outcome, grace time.Duration) string {
	created, rolled := false, false
	for _, o := range outcomes {
		created = created || o.Result == offload.Created
		rolled = rolled || o.Result == offload.Rolled
	}
	switch {
	case rolled:
		return fmt.Sprintf("Next: what was rolled is copied by a run that is seal-grace (%s) later, or more", grace)
	case created:
		return fmt.Sprintf("Next: producers fill what was created; a later run rolls what is full, and one that is seal-grace (%s) later, or more, copies it", grace)
	}
	return ""
}

func moved(outcomes []offload.Outcome) (n int) {
	for _, o := range outcomes {
		if o.Result == offload.Copied || o.Result == offload.Adopted {
			n++
		}
	}
	return n
}

// others counts what was done beside moving.
func others(outcomes []offload.Outcome) string {
	n := map[offload.Result]int{}
	for _, o := range outcomes {
		n[o.Result]++
	}
	text := ""
	for _, r := range []offload.Result{offload.Created, offload.Rolled, offload.Dropped, offload.Held, offload.Reopened, offload.Returned, offload.Hidden,
		offload.Expired, offload.ExpiredUnuploaded, offload.LostRace} {
		if n[r] > 0 {
			text += fmt.Sprintf(", %d %s", n[r], strings.ReplaceAll(string(r), "_", " "))
		}
	}
	return text
}

func (p Process) reportJSON(r offload.Report, led bool) error {
	view := passView{Led: led, Segments: []segmentView{}, Problems: problemViews(r.Problems), Left: r.Left, Counts: r.Plan.Counts, Paused: pauseViews(r.Plan.Paused), Seconds: r.Duration.Seconds()}
	for _, o := range r.Outcomes {
		cause := ""
		if o.Cause != nil {
			cause = o.Cause.Error()
		}
		view.Segments = append(view.Segments, segmentView{Cause: cause,
			Topic: o.Partition.Topic, Partition: o.Partition.Number, Plain: o.Partition.Plain, Segment: o.Segment.String(), Result: string(o.Result),
			Messages: o.Contents.Count, BytesIn: o.BytesIn, BytesOut: o.BytesOut, Object: o.Path, Seconds: o.Duration.Seconds(),
		})
	}
	return cmdline.WriteJSON(p.Stdout, view)
}
