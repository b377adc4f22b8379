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
	"korvet-offload/segment"
)

// planView is a plan as --output json prints it.
type planView struct {
	At       time.Time      `json:"at"` // by the Redis server's clock
	Actions  []actionView   `json:"actions"`
	Doubt    string         `json:"doubt,omitempty"` // why nothing would be deleted
	Warnings []string       `json:"warnings"`
	Problems []problemView  `json:"problems"`
	Paused   []pauseView    `json:"paused"` // for what there are no actions
	Counts   offload.Counts `json:"found"`
}

// actionView is one thing that a pass would do, and why.
type actionView struct {
	Topic     string `json:"topic"` // of a plain stream its key
	Partition int    `json:"partition"`
	Plain     bool   `json:"plain,omitempty"` // a plain stream
	Segment   string `json:"segment"`
	Action    string `json:"action"`          // create, roll, copy, drop, hide, delete or return
	Limit     string `json:"limit,omitempty"` // the setting that is exceeded
	Over      int64  `json:"over"`            // by how much: ms, bytes or entries
	Messages  *int64 `json:"messages"`        // null = the manifest does not say
	// SealedSeconds is how long it has been sealed; null = the manifest does
	// not say.
	SealedSeconds *float64 `json:"sealed_seconds"`
	Object        string   `json:"object,omitempty"`

	unit      string
	partition segment.Partition
	number    segment.Number
}

// printPlan prints what a pass would do.
func (p Process) printPlan(format string, plan offload.Plan, cfg config.Config) error {
	view := planView{At: plan.At, Actions: actionViews(plan, cfg.Redis.Layout), Warnings: append([]string{}, plan.Warnings...),
		Problems: problemViews(plan.Problems), Paused: pauseViews(plan.Paused), Counts: plan.Counts}
	if plan.Doubt != nil {
		view.Doubt = plan.Doubt.Error()
	}
	if format == outputJSON {
		return cmdline.WriteJSON(p.Stdout, view)
	}
	t := newTable("PARTITION", ">SEGMENT", "ACTION", "WHY", ">MESSAGES", ">SEALED FOR", "OBJECT")
	for _, v := range view.Actions {
		messages, sealedFor := "?", "?"
		if v.Messages != nil {
			messages = fmt.Sprint(*v.Messages)
		}
		if v.SealedSeconds != nil {
			sealedFor = ago(seconds(*v.SealedSeconds))
		}
		t.add(v.partition, v.Segment, v.Action, v.why(), messages, sealedFor, v.Object)
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	if err := p.writeLines(pauseLines(plan.Paused)); err != nil {
		return err
	}
	for _, w := range plan.Warnings {
		p.complain("warning: " + w)
	}
	_, err := fmt.Fprintf(p.Stdout, "%s; files go to %s; %d sealed too short a time ago, %d remote, %d open. Nothing was changed\n%s",
		tally(view.Actions), cfg.Store.URL, plan.Counts.Grace, plan.Counts.Remote, plan.Counts.Open, notLooked(view.Actions))
	return err
}

// notLooked says what may still keep a segment where it is.
func notLooked(actions []actionView) string {
	drops := func(a actionView) bool { return a.Action == string(offload.Drop) || a.Action == string(offload.Delete) }
	if !slices.ContainsFunc(actions, drops) {
		return ""
	}
	return "Not looked at: objects, consumer groups, and what came late to a stream; they may keep what is to be dropped or deleted\n"
}

// tally counts the actions.
func tally(actions []actionView) string {
	n := map[string]int{}
	for _, a := range actions {
		n[a.Action]++
	}
	var parts []string
	for _, a := range []offload.Action{offload.Create, offload.Roll, offload.Copy, offload.Drop, offload.Hide, offload.Delete, offload.Return} {
		if n[string(a)] > 0 {
			parts = append(parts, fmt.Sprintf("%d to %s", n[string(a)], a))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

func actionViews(plan offload.Plan, layout segment.Layout) []actionView {
	views := []actionView{}
	for _, jobs := range append([][]offload.Job{plan.Setup, plan.Expiry}, plan.Jobs...) {
		for _, j := range jobs {
			views = append(views, newActionView(j, plan.At, layout))
		}
	}
	slices.SortStableFunc(views, func(a, b actionView) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.number, b.number))
	})
	return views
}

func newActionView(j offload.Job, at time.Time, layout segment.Layout) actionView {
	e := j.Stored.Entry
	v := actionView{Topic: j.Partition.Topic, Partition: j.Partition.Number, Plain: j.Partition.Plain, Segment: j.Stored.Number.String(),
		Action: string(j.Action), Limit: j.Why.Limit, Over: j.Why.Over, unit: j.Why.Unit(), partition: j.Partition, number: j.Stored.Number}
	switch {
	case j.Action == offload.Copy:
		v.Object = segment.ObjectPath(layout.Folder(j.Partition), j.Stored.Number, e.Copy, "")
	case e.Object != nil:
		v.Object = e.Object.Path
	}
	if j.Action != offload.Create && e.State != segment.Open && e.Count != segment.NoCount {
		v.Messages = &e.Count
	}
	if e.SealedAt != 0 {
		v.SealedSeconds = new(float64(at.UnixMilli()-e.SealedAt) / 1000)
	}
	return v
}

// why says which limit is exceeded, and by how much.
func (v actionView) why() string {
	switch {
	case v.Action == string(offload.Create):
		return "it has no manifest"
	case v.Action == string(offload.Copy):
		return "sealed"
	case v.Action == string(offload.Return):
		return "its topic is back"
	case v.Limit == "":
		return ""
	case v.unit == "bytes":
		return v.Limit + " + " + words.Size(v.Over)
	case v.unit == "entries":
		return fmt.Sprintf("%s + %d", v.Limit, v.Over)
	case v.Over == 0:
		return v.Limit
	}
	return v.Limit + " + " + ago(time.Duration(v.Over)*time.Millisecond)
}
