package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/gc"
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
)

// gcView is a collection as --output json prints it.
type gcView struct {
	At        time.Time         `json:"at"` // that ages are told by
	DryRun    bool              `json:"dry_run"`
	OlderThan float64           `json:"older_than_seconds"`
	Objects   []gcObjectView    `json:"objects"` // that go, or were to
	Uploads   []gcUploadView    `json:"uploads"` // the same
	Left      []gcObjectView    `json:"left"`    // that nothing names, and that stay
	Seen      sumView           `json:"seen"`    // all objects
	Named     sumView           `json:"named"`
	Newer     sumView           `json:"newer"`
	Young     sumView           `json:"young"`
	Alien     sumView           `json:"alien"`
	Guarded   sumView           `json:"guarded"`
	Protected []gcProtectedView `json:"protected"` // partitions
	Deleted   sumView           `json:"deleted"`
	Versioned bool              `json:"versioned"` // a deletion only adds a marker
}

type gcObjectView struct {
	Topic     string    `json:"topic"` // of a plain stream its key
	Partition int       `json:"partition"`
	Plain     bool      `json:"plain,omitempty"`
	Segment   string    `json:"segment"`
	Path      string    `json:"path"`
	Bytes     int64     `json:"bytes"`
	Modified  time.Time `json:"modified"`
	Class     gc.Class  `json:"class"`
	Why       string    `json:"why"`
	Result    string    `json:"result"` // would_delete, deleted, skipped, failed, left
	Error     string    `json:"error,omitempty"`
}

type gcUploadView struct {
	Path   string    `json:"path"`
	ID     string    `json:"id"`
	Begun  time.Time `json:"begun"`
	Result string    `json:"result"`
	Error  string    `json:"error,omitempty"`
}

type gcProtectedView struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Plain     bool   `json:"plain,omitempty"`
	Why       string `json:"why"`
	Odd       bool   `json:"odd"` // a person should look at it
}

type sumView struct {
	Objects int64 `json:"objects"`
	Bytes   int64 `json:"bytes"`
}

// gcPrinter prints a collection: a line for each object as it goes, or all at
// the end as JSON.
type gcPrinter struct {
	p     Process
	json  bool
	act   bool
	opt   gc.Options
	plan  gc.Plan
	store s3sink.Store

	outcomes map[string]gc.Outcome // by path, of uploads by their id
	deleted  gc.Sum
	aborted  int
	failed   int
	stopped  error // why it ended before its end
	broken   error // why results can't be printed
}

// begin prints what is known before anything is done.
func (g *gcPrinter) begin() {
	g.outcomes = map[string]gc.Outcome{}
	if g.json || g.act {
		return
	}
	for i := range g.plan.Objects {
		g.line("would delete", &g.plan.Objects[i], g.plan.Objects[i].Why)
	}
	for i := range g.plan.Uploads {
		g.uploadLine("would give up", &g.plan.Uploads[i])
	}
}

func (g *gcPrinter) line(what string, c *gc.Candidate, why string) {
	g.say("%s %s (%s, %s old): %s", what, word(c.Object.Info.Key), words.Size(c.Object.Info.Size), ago(c.Age), why)
}

func (g *gcPrinter) uploadLine(what string, u *gc.Upload) {
	g.say("%s the unfinished upload of %s (%s old)", what, word(u.Key), ago(u.Age))
}

func (g *gcPrinter) say(format string, args ...any) {
	if _, err := fmt.Fprintf(g.p.Stdout, format+"\n", args...); err != nil && g.broken == nil {
		g.broken = err
	}
}

// outcome takes what came of one object or upload.
func (g *gcPrinter) outcome(o gc.Outcome) {
	if o.Upload != nil {
		g.upload(o)
		return
	}
	g.outcomes[o.Object.Object.Info.Key] = o
	switch o.Result {
	case gc.Deleted:
		g.deleted.Objects++
		g.deleted.Bytes += o.Object.Object.Info.Size
	case gc.Failed:
		g.failed++
		g.p.complain(fmt.Sprintf("delete %s: %v", o.Object.Object.Info.Key, o.Err))
	}
	switch {
	case g.json:
	case o.Result == gc.Deleted:
		g.line("deleted", o.Object, o.Object.Why)
	case o.Result == gc.Skipped:
		g.line("left", o.Object, o.Why)
	}
}

func (g *gcPrinter) upload(o gc.Outcome) {
	g.outcomes[o.Upload.ID] = o
	if o.Result == gc.Failed {
		g.failed++
		g.p.complain(fmt.Sprintf("give up the upload of %s: %v", o.Upload.Key, o.Err))
		return
	}
	g.aborted++
	if !g.json {
		g.uploadLine("gave up", o.Upload)
	}
}

// end prints the rest, and says what comes of it all.
func (g *gcPrinter) end(ctx context.Context) error {
	versioned := g.deletesAddMarkers(ctx)
	if g.json {
		if err := cmdline.WriteJSON(g.p.Stdout, g.view(versioned)); err != nil {
			return err
		}
	} else {
		g.text(versioned)
	}
	for _, p := range g.plan.Protected {
		if p.Odd {
			g.p.complain(fmt.Sprintf("%s: all of its objects stay: %v", p.Partition, p.Err))
		}
	}
	if g.plan.NoUploads != nil {
		g.p.complain(fmt.Sprintf("unfinished uploads are not known: %v (--uploads=false leaves them out)", g.plan.NoUploads))
	}
	wrong := g.failed > 0 || g.plan.NoUploads != nil || slices.ContainsFunc(g.plan.Protected, func(p gc.Protected) bool { return p.Odd })
	switch {
	case g.stopped != nil:
		return fmt.Errorf("%w; %s deleted before that", g.stopped, objectSum(g.deleted))
	case g.broken != nil:
		return fmt.Errorf("print results: %w", g.broken)
	case wrong:
		return cmdline.ErrReported
	}
	return nil
}

// text prints the sums for a person.
func (g *gcPrinter) text(versioned bool) {
	stays := map[gc.Class]*gc.Sum{}
	unsafe := gc.Sum{}
	for i := range g.plan.Left {
		c := &g.plan.Left[i]
		if c.Stays != "" {
			g.line("leave", c, c.Why+"; "+c.Stays)
			add(&unsafe, c)
			continue
		}
		if g.opt.Only != nil {
			g.line("leave", c, c.Why)
		}
		if stays[c.Class] == nil {
			stays[c.Class] = &gc.Sum{}
		}
		add(stays[c.Class], c)
	}
	for _, p := range g.plan.Protected {
		if !p.Odd {
			g.say("%s: all of its objects stay: %v", p.Partition, p.Err)
		}
	}
	g.say("%s", g.total())
	for _, c := range []struct {
		class gc.Class
		text  string
	}{{gc.Gap, "of segments without an entry, though no retention took them (--gaps)"}, {gc.Removed, "of topics that are not registered and have no manifest (--removed-topics)"}} {
		if sum := stays[c.class]; sum != nil {
			g.say("%s %s", objectSum(*sum), c.text)
		}
	}
	g.say("%s", g.others(unsafe))
	if versioned {
		g.say("the bucket keeps versions: a deletion only adds a marker, and the bytes stay and are paid for until a lifecycle rule with NoncurrentVersionExpiration removes them")
	}
}

func add(to *gc.Sum, c *gc.Candidate) {
	to.Objects++
	to.Bytes += c.Object.Info.Size
}

// total says what was done, or would be.
func (g *gcPrinter) total() string {
	if !g.act {
		var all gc.Sum
		for i := range g.plan.Objects {
			add(&all, &g.plan.Objects[i])
		}
		text := fmt.Sprintf("%s to delete, %s to give up", objectSum(all), words.Count(len(g.plan.Uploads), "unfinished upload"))
		if len(g.plan.Objects)+len(g.plan.Uploads) == 0 {
			return "nothing to delete"
		}
		return text + "; nothing was changed, --yes does it"
	}
	return fmt.Sprintf("%s deleted, %s given up", objectSum(g.deleted), words.Count(g.aborted, "unfinished upload"))
}

// others counts what stays.
func (g *gcPrinter) others(unsafe gc.Sum) string {
	parts := []string{objectSum(g.plan.Named) + " in use"}
	for _, one := range []struct {
		sum  gc.Sum
		text string
	}{
		{g.plan.Young, "younger than " + ago(g.opt.OlderThan)},
		{g.plan.Newer, "later than the copy that is in use"},
		{unsafe, "that may be needed"},
		{g.plan.Guarded, "of partitions that are protected"},
		{g.plan.Alien, "of others"},
	} {
		if one.sum.Objects > 0 {
			parts = append(parts, objectSum(one.sum)+" "+one.text)
		}
	}
	return strings.Join(parts, ", ")
}

func objectSum(s gc.Sum) string {
	if s.Objects == 0 {
		return "0 objects"
	}
	return fmt.Sprintf("%s (%s)", words.Count(int(s.Objects), "object"), words.Size(s.Bytes))
}

// deletesAddMarkers says whether what is deleted stays as a version.
func (g *gcPrinter) deletesAddMarkers(ctx context.Context) bool {
	in, ok := g.store.(s3sink.Inspector)
	if !ok || len(g.plan.Objects) == 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	b := in.Inspect(ctx).Bucket
	if b == nil || b.Versioning.Err != nil || b.Versioning.Value == s3sink.VersioningNever {
		return false
	}
	return !slices.ContainsFunc(b.Lifecycle.Value, func(r s3sink.LifecycleRule) bool { return r.NoncurrentDays > 0 && r.Covers(b.Prefix) })
}

func (g *gcPrinter) view(versioned bool) gcView {
	sum := func(s gc.Sum) sumView { return sumView(s) }
	v := gcView{At: g.plan.At.UTC(), DryRun: !g.act, OlderThan: g.opt.OlderThan.Seconds(), Objects: []gcObjectView{}, Uploads: []gcUploadView{}, Left: []gcObjectView{},
		Seen: sum(g.plan.Seen), Named: sum(g.plan.Named), Newer: sum(g.plan.Newer), Young: sum(g.plan.Young), Alien: sum(g.plan.Alien),
		Guarded: sum(g.plan.Guarded), Protected: []gcProtectedView{}, Deleted: sum(g.deleted), Versioned: versioned}
	for i := range g.plan.Objects {
		v.Objects = append(v.Objects, g.objectView(&g.plan.Objects[i]))
	}
	for i := range g.plan.Left {
		one := newGCObject(&g.plan.Left[i])
		one.Result = "left"
		if stays := g.plan.Left[i].Stays; stays != "" {
			one.Why += "; " + stays
		}
		v.Left = append(v.Left, one)
	}
	for _, u := range g.plan.Uploads {
		one := gcUploadView{Path: u.Key, ID: u.ID, Begun: u.Begun.UTC()}
		one.Result, one.Error = g.result(u.ID)
		v.Uploads = append(v.Uploads, one)
	}
	for _, p := range g.plan.Protected {
		v.Protected = append(v.Protected, gcProtectedView{p.Partition.Topic, p.Partition.Number, p.Partition.Plain, p.Err.Error(), p.Odd})
	}
	return v
}

func newGCObject(c *gc.Candidate) gcObjectView {
	return gcObjectView{Topic: c.Partition.Topic, Partition: c.Partition.Number, Plain: c.Partition.Plain, Segment: c.Object.Segment.String(),
		Path: c.Object.Info.Key, Bytes: c.Object.Info.Size, Modified: c.Object.Info.ModTime.UTC(), Class: c.Class, Why: c.Why}
}

func (g *gcPrinter) objectView(c *gc.Candidate) gcObjectView {
	one := newGCObject(c)
	one.Result, one.Error = g.result(c.Object.Info.Key)
	if o := g.outcomes[c.Object.Info.Key]; o.Result == gc.Skipped {
		one.Why = o.Why
	}
	return one
}

// result is what came of one object or upload.
func (g *gcPrinter) result(key string) (result, fault string) {
	o, done := g.outcomes[key]
	switch {
	case !done && g.act:
		return "left", "" // it ended before that
	case !done:
		return "would_delete", ""
	case o.Err != nil:
		return string(o.Result), o.Err.Error()
	}
	return string(o.Result), ""
}
