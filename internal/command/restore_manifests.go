package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/restore"
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// lossView is what is done after a loss of Redis, as --output json prints it.
type lossView struct {
	Done       bool             `json:"done"` // false: it is only said what would be done
	Claim      claimView        `json:"claim"`
	Partitions []manifestView   `json:"partitions"`
	Topics     []registeredView `json:"topics"`
	Notes      []string         `json:"notes"`
	Error      string           `json:"error,omitempty"`
}

type claimView struct {
	Was    string `json:"was"`    // the cluster id of Redis; "" = it has none
	Root   string `json:"root"`   // that of the root; "" = its marker names none, or there is none
	Result string `json:"result"` // same, none, would_claim, claimed or refused
}

type manifestView struct {
	Partition string   `json:"partition"`
	Result    string   `json:"result"` // would_restore, restored, there, refused or failed
	Entries   int      `json:"entries"`
	There     int      `json:"there"` // of the entries, those that were there already
	Messages  int64    `json:"messages"`
	Bytes     int64    `json:"bytes"`
	Open      string   `json:"open"` // number of the OPEN entry that is put; "" = none
	Expired   int      `json:"expired"`
	Refused   []string `json:"refused"`
	Faults    []string `json:"faults"`
	Notes     []string `json:"notes"`

	of segment.Partition
}

type registeredView struct {
	Topic      string `json:"topic"`
	Partitions int    `json:"partitions"` // that the store has files of, counted from 0
	Result     string `json:"result"`     // registered, would_register, there, missing or failed
	Why        string `json:"why,omitempty"`
}

// loss is a call of restore --manifests or --claim.
type loss struct {
	restorer
	opt      restore.Options
	deep     bool
	register bool
	claim    bool
	only     func(segment.Partition) bool
	stream   *segment.Partition  // the only one; nil = all
	passed   []segment.Partition // of topics; they have files, and are not meant
	topics   []segment.Topic
	known    map[string]string // records of the topics that were ever offloaded
	paused   segment.Pauses
	view     lossView
}

// afterLoss rebuilds manifests, and takes the root over.
func (r restorer) afterLoss(c *cli.Context, what names) error {
	l := loss{restorer: r, deep: c.Bool("deep"), register: c.Bool("registry"), claim: c.Bool("claim"),
		opt:  restore.Options{Disorder: c.Bool("allow-disorder"), Expired: c.Bool("include-expired")},
		only: what.covers,
		view: lossView{Done: r.yes, Partitions: []manifestView{}, Topics: []registeredView{}, Notes: []string{}}}
	if len(what) == 1 && what[0].partition.Plain {
		l.stream = &what[0].partition
	}
	do := func(ctx context.Context) error { return l.run(ctx, c.Bool("manifests")) }
	var err error
	if r.yes {
		err = r.borrowed(c.Context, do)
	} else {
		err = do(c.Context)
	}
	if usage := (cmdline.UsageError{}); errors.As(err, &usage) || c.Err() != nil {
		return err
	}
	if err != nil {
		l.view.Error = err.Error()
	}
	return l.print()
}

func (l *loss) run(ctx context.Context, manifests bool) error {
	if err := l.takeOver(ctx); err != nil || l.view.Claim.Result == claimRefused || !manifests {
		return err
	}
	var err error
	if l.topics, err = l.redis.Topics(ctx); err != nil {
		return err
	}
	if l.known, err = l.redis.Known(ctx); err != nil {
		return err
	}
	if l.paused, err = l.pauses.Paused(ctx); err != nil {
		return err
	}
	for g, err := range l.groups(ctx) {
		if err != nil {
			return err
		}
		if err := l.partition(ctx, g); err != nil {
			return err
		}
	}
	if len(l.view.Partitions) == 0 {
		return fmt.Errorf("there is no segment's file of it below %s: is it the right place?", l.cfg.Store.URL)
	}
	return l.registry(ctx)
}

// The results of the claim.
const (
	claimSame    = "same"
	claimNone    = "none"
	claimWould   = "would_claim"
	claimDone    = "claimed"
	claimRefused = "refused"
)

// takeOver makes this Redis the one that the root belongs to. One that has an id
// of its own needs a word more: it may have a root of its own.
func (l *loss) takeOver(ctx context.Context) error {
	v := &l.view.Claim
	var err error
	v.Was, v.Root, err = l.claimCluster(ctx, false)
	switch {
	case errors.Is(err, errNoMarker) && l.claim:
		return l.takeEmpty(ctx)
	case errors.Is(err, errNoMarker), errors.Is(err, errNoClusterName):
		v.Result = claimNone
		l.view.Notes = append(l.view.Notes, err.Error())
		return nil
	case err != nil:
		return err
	case v.Was == v.Root:
		v.Result = claimSame
		return nil
	case v.Was != "" && !l.claim:
		v.Result = claimRefused
		return fmt.Errorf("the root belongs to cluster %q, and this Redis is cluster %q: if it is to go on with the root, and has none of its own, give --claim too", v.Root, v.Was)
	case !l.yes:
		v.Result = claimWould
		return nil
	}
	v.Result = claimDone
	_, _, err = l.claimCluster(ctx, true)
	return err
}

// takeEmpty claims a root that has no marker, whether or not the objects are in
// it that the manifests tell of.
func (l *loss) takeEmpty(ctx context.Context) error {
	v := &l.view.Claim
	if v.Result = claimWould; !l.yes {
		return nil
	}
	v.Result = claimDone
	l.owner.empty.Store(true)
	_, err := l.store.CreateOnly(ctx)
	return err
}

// groups are the folders of the partitions that are meant.
func (l *loss) groups(ctx context.Context) iter.Seq2[catalog.Group, error] {
	return func(yield func(catalog.Group, error) bool) {
		if l.stream != nil {
			g, err := catalog.List(ctx, l.store, l.cfg.Redis.Layout, *l.stream)
			if err != nil || len(g.Objects) > 0 {
				yield(g, err)
			}
			return
		}
		for g, err := range catalog.All(ctx, l.store, l.cfg.Redis.Layout) {
			switch {
			case err != nil:
				yield(g, err)
				return
			case !g.Known:
				l.view.Notes = append(l.view.Notes, fmt.Sprintf("folder %s: of no partition of this layout; it is left alone", strconv.Quote(g.Folder)))
			case len(g.Objects) > 0 && !l.only(g.Partition):
				if !g.Partition.Plain {
					l.passed = append(l.passed, g.Partition)
				}
			case len(g.Objects) > 0 && !yield(g, nil):
				return
			}
		}
	}
}

// partition rebuilds one manifest, or says what would be done. An error is one that
// the other partitions would meet as well.
func (l *loss) partition(ctx context.Context, g catalog.Group) error {
	s, err := l.Survey(ctx, g, l.deep)
	if err != nil {
		if ctx.Err() != nil || storeDown(s3sink.ClassOf(err)) {
			return err
		}
		l.view.Partitions = append(l.view.Partitions, viewOf(s, restore.Rebuild{Partition: g.Partition}, err, l.yes))
		return nil
	}
	settings := settingsOf(l.topics, g.Partition)
	plan, err := l.PlanManifest(ctx, s, settings, l.opt)
	if err != nil && (ctx.Err() != nil || redisstore.ClassOf(err) == redisstore.Unavailable) {
		return err
	}
	if l.removed(g.Partition) {
		plan.Refused = append(plan.Refused, fmt.Errorf("%s: Redis still remembers topic %s as offloaded, and the registry does not have it, so it counts as removed: "+
			"what gets a manifest now may be deleted with it; have the broker create the topic first", g.Partition, g.Partition.Topic))
	}
	if why := whyPaused(l.paused, g.Partition); why != nil {
		plan.Refused = append(plan.Refused, why)
	}
	if err == nil && l.yes && plan.Does() {
		err = l.RunManifest(ctx, plan)
	}
	v := viewOf(s, plan, err, l.yes)
	if g.Partition.Plain && settings == nil {
		v.Notes = append(v.Notes, plan.Partition.String()+": no pattern of korvet.streams[] has it: nothing is done with it until one has")
	}
	l.view.Partitions = append(l.view.Partitions, v)
	return ctx.Err()
}

// removed says whether the worker takes the topic of a partition for one that was
// removed from the registry.
func (l *loss) removed(p segment.Partition) bool {
	_, known := l.known[p.Topic]
	return known && !p.Plain && !slices.ContainsFunc(l.topics, func(t segment.Topic) bool { return !t.Plain && t.Name == p.Topic })
}

func viewOf(s restore.Survey, b restore.Rebuild, err error, yes bool) manifestView {
	v := manifestView{Partition: b.Partition.String(), of: b.Partition, Entries: len(b.Add) + b.There, There: b.There, Expired: b.Expired,
		Refused: []string{}, Faults: []string{}, Notes: append([]string{}, b.Notes...)}
	for _, f := range s.Segments {
		if f.Object != nil {
			v.Messages += f.Contents.Count
			v.Bytes += f.Object.Bytes
		}
	}
	for _, why := range b.Refused {
		v.Refused = append(v.Refused, why.Error())
	}
	for _, f := range b.Faults {
		v.Faults = append(v.Faults, f.Error())
	}
	if b.OpenEntry.State != "" {
		v.Open = b.Open.String()
	}
	switch {
	case err != nil:
		v.Result, v.Faults = restoreFailed, append(v.Faults, fmt.Sprintf("manifest of %s: %v", b.Partition, err))
	case len(b.Refused) > 0:
		v.Result = "refused"
	case !b.Does():
		v.Result = "there"
	case yes:
		v.Result = restored
	default:
		v.Result = wouldRestore
	}
	return v
}

// registry says what the registry lacks, and fills it where that is asked for.
func (l *loss) registry(ctx context.Context) error {
	need, without := map[string]int{}, map[string]string{}
	for _, p := range l.view.Partitions {
		if !p.of.Plain {
			need[p.of.Topic] = max(need[p.of.Topic], p.of.Number+1)
		}
		if !p.of.Plain && (len(p.Refused) > 0 || p.Result == restoreFailed) {
			without[p.of.Topic] = p.Partition
		}
	}
	if err := l.passedOver(ctx, need, without); err != nil {
		return err
	}
	for _, topic := range slices.Sorted(maps.Keys(need)) {
		v := registeredView{Topic: topic, Partitions: need[topic]}
		at := slices.IndexFunc(l.topics, func(t segment.Topic) bool { return !t.Plain && t.Name == topic })
		switch {
		case at >= 0 && l.topics[at].Err != nil:
			v.Result, v.Why = restoreFailed, l.topics[at].Err.Error()
		case at >= 0 && l.topics[at].Settings.Partitions < v.Partitions:
			v.Result, v.Why = restoreFailed, fmt.Sprintf("it is registered with %s, and the store has files of %d: let the broker have as many", words.Count(l.topics[at].Settings.Partitions, "partition"), v.Partitions)
		case at >= 0:
			v.Result = "there"
		case !l.register:
			v.Result = "missing"
			v.Why = fmt.Sprintf("it is in no registry: have the broker create it with %s, remote.storage.enable=true and the retention.ms that it had, or give --registry; until then nothing is done with it, and nothing of it deleted", words.Count(v.Partitions, "partition"))
		case without[topic] != "":
			v.Result, v.Why = restoreFailed, fmt.Sprintf("it is not registered while %s has no manifest: a worker would begin one, and producers with it, at segment 0", without[topic])
		case !l.yes:
			v.Result = "would_register"
		default:
			v.Result = "registered"
			if err := l.redis.RegisterTopic(ctx, topic, map[string]string{
				"partitions": strconv.Itoa(v.Partitions), "remote.storage.enable": "true", "retention.ms": "-1",
			}); err != nil {
				v.Result, v.Why = restoreFailed, err.Error()
			}
		}
		l.view.Topics = append(l.view.Topics, v)
	}
	return ctx.Err()
}

// passedOver adds the partitions of topics that are registered which have files, and
// are not among those that are named.
func (l *loss) passedOver(ctx context.Context, need map[string]int, without map[string]string) error {
	for _, p := range l.passed {
		if need[p.Topic] == 0 {
			continue
		}
		need[p.Topic] = max(need[p.Topic], p.Number+1)
		fields, err := l.redis.Each(ctx, p, func(string, string) {})
		if err != nil {
			return err
		}
		if fields == 0 {
			without[p.Topic] = p.String()
			l.view.Notes = append(l.view.Notes, fmt.Sprintf("%s is not named, has files, and no manifest: before a worker or a producer begins, call restore --manifests %s", p, p.Topic))
		}
	}
	return nil
}

// print prints what was done, or would be.
func (l *loss) print() error {
	v := l.view
	var err error
	if l.format == outputJSON {
		err = cmdline.WriteJSON(l.Stdout, v)
	} else {
		err = l.table(v)
	}
	if err != nil {
		return err
	}
	fault := v.Error != ""
	for _, p := range v.Partitions {
		for _, text := range append(slices.Clone(p.Refused), p.Faults...) {
			fault = true
			l.complain(text)
		}
	}
	for _, t := range v.Topics {
		if t.Result == restoreFailed {
			fault = true
			l.complain(fmt.Sprintf("topic %s: %s", t.Topic, t.Why))
		}
	}
	if v.Error != "" {
		l.complain(v.Error)
	}
	if fault {
		return cmdline.ErrReported
	}
	return nil
}

func (l *loss) table(v lossView) error {
	t := newTable("PARTITION", "RESULT", ">ENTRIES", ">THERE", ">MESSAGES", ">BYTES", ">OPEN")
	n := 0
	for _, p := range v.Partitions {
		t.add(p.Partition, p.Result, p.Entries, p.There, p.Messages, p.Bytes, dash(p.Open))
		if p.Result == restored || p.Result == wouldRestore {
			n++
		}
	}
	if len(t.rows) > 0 {
		if err := t.write(l.Stdout); err != nil {
			return err
		}
	}
	return l.writeLines(lossLines(v, n))
}
