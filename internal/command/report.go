package command

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"korvet-offload/internal/config"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// passView is a pass as --output json prints it.
type passView struct {
	Led      bool           `json:"led"` // false: another instance leads, or offload is switched off
	Segments []segmentView  `json:"segments"`
	Problems []problemView  `json:"problems"`
	Left     int            `json:"left"` // due, not tried
	Counts   offload.Counts `json:"found"`
	Seconds  float64        `json:"seconds"`
}

type segmentView struct {
	Topic     string  `json:"topic"`
	Partition int     `json:"partition"`
	Segment   string  `json:"segment"`
	Result    string  `json:"result"`
	Messages  int64   `json:"messages"`
	BytesIn   int64   `json:"bytes_in"`
	BytesOut  int64   `json:"bytes_out"`
	Object    string  `json:"object"`
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
		t.add(o.Partition, o.Segment, o.Result, o.Contents.Count, size(o.BytesIn), size(o.BytesOut), ago(o.Duration), o.Path)
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	c := r.Plan.Counts
	_, err := fmt.Fprintf(p.Stdout, "%d of %s moved to %s in %s; %s, %s, %s remote before, %d open; %s\n",
		moved(r.Outcomes), count(c.Sealed, "sealed segment"), cfg.Store.URL, ago(r.Duration), topicCount(c),
		count(c.Partitions, "partition"), count(c.Remote, "segment"), c.Open, count(len(r.Problems), "problem"))
	if err == nil && c.Topics == 0 {
		p.complain(noTopics)
	}
	return err
}

func moved(outcomes []offload.Outcome) (n int) {
	for _, o := range outcomes {
		if o.Result != offload.LostRace {
			n++
		}
	}
	return n
}

func (p Process) reportJSON(r offload.Report, led bool) error {
	view := passView{Led: led, Segments: []segmentView{}, Problems: problemViews(r.Problems), Left: r.Left, Counts: r.Plan.Counts, Seconds: r.Duration.Seconds()}
	for _, o := range r.Outcomes {
		view.Segments = append(view.Segments, segmentView{
			Topic: o.Partition.Topic, Partition: o.Partition.Number, Segment: o.Segment.String(), Result: string(o.Result),
			Messages: o.Contents.Count, BytesIn: o.BytesIn, BytesOut: o.BytesOut, Object: o.Path, Seconds: o.Duration.Seconds(),
		})
	}
	return writeJSON(p.Stdout, view)
}

// planView is a plan as --output json prints it.
type planView struct {
	At       time.Time      `json:"at"` // by the Redis server's clock
	Copy     []copyView     `json:"copy"`
	Problems []problemView  `json:"problems"`
	Counts   offload.Counts `json:"found"`
}

type copyView struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Segment   string `json:"segment"`
	Messages  *int64 `json:"messages"` // null = the manifest does not say
	// SealedSeconds is how long it has been sealed; null = the manifest does
	// not say.
	SealedSeconds *float64 `json:"sealed_seconds"`
	Object        string   `json:"object"`
}

// printPlan prints what a pass would do.
func (p Process) printPlan(format string, plan offload.Plan, cfg config.Config) error {
	view := planView{At: plan.At, Copy: copyViews(plan, cfg.Redis.Layout), Problems: problemViews(plan.Problems), Counts: plan.Counts}
	if format == outputJSON {
		return writeJSON(p.Stdout, view)
	}
	t := newTable("PARTITION", ">SEGMENT", "ACTION", ">MESSAGES", ">SEALED FOR", "OBJECT")
	for _, v := range view.Copy {
		messages, sealedFor := "?", "?"
		if v.Messages != nil {
			messages = fmt.Sprint(*v.Messages)
		}
		if v.SealedSeconds != nil {
			sealedFor = ago(seconds(*v.SealedSeconds))
		}
		t.add(fmt.Sprintf("%s:%d", v.Topic, v.Partition), v.Segment, "copy", messages, sealedFor, v.Object)
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(p.Stdout, "%s would be copied to %s; %d sealed too short a time ago, %d remote, %d open. Nothing was changed\n",
		count(len(view.Copy), "segment"), cfg.Store.URL, plan.Counts.Grace, plan.Counts.Remote, plan.Counts.Open)
	return err
}

func copyViews(plan offload.Plan, layout segment.Layout) []copyView {
	views := []copyView{}
	for _, jobs := range plan.Jobs {
		for _, j := range jobs {
			e := j.Stored.Entry
			v := copyView{Topic: j.Partition.Topic, Partition: j.Partition.Number, Segment: j.Stored.Number.String(),
				Object: segment.ObjectPath(layout.StreamKey(j.Partition), j.Stored.Number, e.Copy, "")}
			if e.Count != segment.NoCount {
				v.Messages = &e.Count
			}
			if e.SealedAt != 0 {
				v.SealedSeconds = new(float64(plan.At.UnixMilli()-e.SealedAt) / 1000)
			}
			views = append(views, v)
		}
	}
	return views
}
