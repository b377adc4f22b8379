package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/gc"
	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const gcDescription = `Looks for objects that no manifest entry names, and for unfinished uploads, and
prints them. Nothing is changed without --yes.

By default two kinds of objects go: older copies of a segment whose entry names a
later one, and objects of segments before the first entry of a manifest, which
retention took. --gaps adds objects of other segments without an entry, and
--removed-topics those of partitions without a manifest whose topic is no longer
registered: look at them first, they may be the only copy of something.

What is younger than --older-than stays, and so does everything of a partition
whose manifest can't be read to the last entry, or that is paused. Without the
owner marker, or with an empty Redis, nothing is done at all. With --yes it works
under the lease, which a running instance hands over for that long, and looks at
everything once more right before each deletion.

` + namesHelp + `

Exit code 1 if something could not be removed or looked at.`

func gcNames() grammar {
	return grammar{takes: formTopic | formPartition | formSegments, none: true, many: true, streams: true}
}

func (p Process) gcCommand() *cli.Command {
	return &cli.Command{
		Name:        "gc",
		Usage:       "remove objects that no manifest names, and unfinished uploads",
		UsageText:   "korvet-offload gc " + gcNames().usage() + " [--yes] [options]",
		ArgsUsage:   gcNames().usage(),
		Description: gcDescription,
		Flags: append(append(scopeFlags(),
			&cli.BoolFlag{Name: "yes", DisableDefaultText: true, Usage: "delete; without it nothing is changed"},
			&cli.StringFlag{Name: "older-than", Value: "7d", Usage: "leave what is younger than this `DURATION` (36h, 14d), 24h at least"},
			&cli.BoolFlag{Name: "gaps", DisableDefaultText: true, Usage: "also objects of segments that have no entry, though no retention took them"},
			&cli.BoolFlag{Name: "removed-topics", DisableDefaultText: true, Usage: "also objects of partitions without a manifest, of topics that are not registered"},
			&cli.BoolFlag{Name: "uploads", Value: true, Usage: "also unfinished uploads"},
			outputFlag()), settingFlags(bothSettings("lease-duration")...)...),
		Action: p.gc,
	}
}

func (p Process) gc(c *cli.Context) error {
	what, err := gcNames().scoped(c)
	if err != nil {
		return err
	}
	older, err := config.ParseDuration(c.String("older-than"))
	if err != nil {
		return cmdline.UsageError{Err: fmt.Errorf("--older-than %q: %w", c.String("older-than"), err)}
	}
	opt := gc.Options{OlderThan: older, Gaps: c.Bool("gaps"), Removed: c.Bool("removed-topics"), Uploads: c.Bool("uploads"), Scope: what.scope()}
	if len(what) > 0 {
		opt.Only, opt.Segments = what.covers, what.has
	}
	if err := opt.Validate(); err != nil {
		return cmdline.UsageError{Err: fmt.Errorf("--older-than: %w", err)}
	}
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	if err := checkOwner(c.Context, s.store); err != nil {
		return err
	}
	if err := s.mustKnow(c.Context, what); err != nil {
		return err
	}
	if lacks := s.lacksCluster(c.Context); lacks != "" {
		p.complain("warning: " + lacks)
	}
	collector := gc.New(s.gcPorts(), cfg.Redis.Layout, opt)
	plan, err := collector.Look(c.Context)
	if err != nil {
		return fmt.Errorf("gc: %w", err)
	}
	out := &gcPrinter{p: p, json: c.String("output") == outputJSON, act: c.Bool("yes"), opt: opt, plan: plan, store: s.store}
	out.begin()
	if out.act && len(plan.Objects)+len(plan.Uploads) > 0 {
		s.waits = p.complain
		out.stopped = s.removeLed(c.Context, collector, plan, out.outcome)
	}
	return out.end(c.Context)
}

// removeLed carries a plan out under the lease, which is borrowed for it.
func (s *session) removeLed(ctx context.Context, c *gc.Collector, plan gc.Plan, told func(gc.Outcome)) error {
	lead, giveBack, err := s.borrow(ctx, "gc")
	if err != nil {
		return fmt.Errorf("gc: %w", err)
	}
	err = c.Remove(lead, plan, told)
	if err != nil {
		err = fmt.Errorf("gc: %w", err)
	}
	return errors.Join(err, giveBack(ctx))
}

// gcPorts are what the collector uses.
func (s *session) gcPorts() gc.Ports {
	r := gcRedis{redisStore{s.redis}}
	sweep, _ := s.store.(s3sink.Sweeper) // every store that Open makes is one
	return gc.Ports{
		Registry: r, Manifests: r, Store: s.store, Uploads: sweep,
		Now:   func(ctx context.Context) (time.Time, error) { return earlier(ctx, s.redis.Now, sweep.Now) },
		Owned: s.owned,
		Earlier: func(ctx context.Context, p segment.Partition, o catalog.Object, named segment.Object) error {
			return earlierCopy(ctx, s.store, parquetfile.FileID{StreamKey: s.cfg.Redis.Layout.StreamKey(p), Segment: o.Segment}, o, named)
		},
		File: func(ctx context.Context, p segment.Partition, o catalog.Object) (segment.Contents, error) {
			r := objectfile.New(ctx, s.store, o.Info.Key, o.Info.Size)
			holds, err := parquetfile.Check(r, o.Info.Size, parquetfile.FileID{StreamKey: s.cfg.Redis.Layout.StreamKey(p), Segment: o.Segment})
			return holds, errors.Join(err, r.Close())
		},
	}
}

// owned refuses a root without an owner marker, too.
func (s *session) owned(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	m, err := s3sink.ReadMarker(limited, s.store)
	switch {
	case err != nil:
		return err
	case m.Namespace == "":
		return fmt.Errorf("%s has no owner marker (%s): nothing is deleted where nobody has claimed the place; is it the right remote-path?", s.cfg.Store.URL, s3sink.MarkerKey)
	}
	return checkOwner(ctx, s.store)
}

// earlier is the time of the clock that is behind.
func earlier(ctx context.Context, clocks ...func(context.Context) (time.Time, error)) (time.Time, error) {
	var first time.Time
	for _, clock := range clocks {
		at, err := clock(ctx)
		if err != nil {
			return time.Time{}, err
		}
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, nil
}

// gcRedis tells the collector which errors concern everything.
type gcRedis struct{ redisStore }

func (r gcRedis) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	n, err := r.redisStore.Each(ctx, p, take)
	return n, gcError(err)
}

func (r gcRedis) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := r.redisStore.Peek(ctx, q)
	for i := range a {
		a[i].Err = gcError(a[i].Err)
	}
	return a, gcError(err)
}

func gcError(err error) error {
	if errors.Is(err, offload.ErrRedisDown) {
		return fmt.Errorf("%w: %w", gc.ErrOutage, err)
	}
	return err
}
