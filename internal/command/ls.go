package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const lsDescription = `Without an argument the topics and plain streams, with a topic its partitions,
with a partition, or --stream, its segments: where they are, from which id to
which, how many messages, how large, and where the object lies. Of an open segment
it says what is in its stream now.

That is read from the manifests, which know what readers are given. With
--from-store it is read from the bucket alone, and Redis is not asked at all: then
all that is known are the objects, by their paths, and with --footers what their
footers tell. With --compare both are laid side by side: what is in the manifest
alone, on the store alone, or of another size there. What differs is looked at once
more, so that a worker at work makes no difference.

` + namesHelp + `

Exit code 1 if something can't be read, or with --compare if something differs
that should not. Nothing is changed.`

func (p Process) lsCommand() *cli.Command {
	return &cli.Command{
		Name:        "ls",
		Usage:       "list topics, partitions or segments, of the manifests or of the bucket",
		UsageText:   "korvet-offload ls " + lsNames().usage() + " [--from-store [--footers] | --compare] [options]",
		ArgsUsage:   lsNames().usage(),
		Description: lsDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "stream", Usage: "the segments of the plain stream of this `KEY`"},
			&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "list what lies in the bucket, without Redis"},
			&cli.BoolFlag{Name: "footers", DisableDefaultText: true, Usage: "with --from-store and a partition: read what the files' footers tell"},
			&cli.BoolFlag{Name: "compare", DisableDefaultText: true, Usage: "compare manifests and bucket"},
			rowsFlag(),
		}, settingFlags(bothSettings()...)...),
		Action: p.ls,
	}
}

// lsNames are what ls takes.
func lsNames() grammar {
	return grammar{takes: formTopic | formPartition | formSegments, none: true, many: true, streams: true}
}

// lsTarget is what ls is asked for: nothing, topics, or partitions.
func lsTarget(c *cli.Context) (names, error) {
	what, err := lsNames().named(c)
	if err == nil && what.anyTopic() && len(what.partitions()) > 0 {
		err = cmdline.UsageError{Err: errors.New("topics and partitions are listed differently: want either topics, or partitions (TOPIC:N, TOPIC:N/SEGMENTS)")}
	}
	return what, err
}

func (p Process) ls(c *cli.Context) error {
	what, err := lsTarget(c)
	if err != nil {
		return err
	}
	bare, compare, footers := c.Bool("from-store"), c.Bool("compare"), c.Bool("footers")
	switch {
	case bare && compare:
		return cmdline.UsageError{Err: errors.New("--from-store and --compare: want one of them")}
	case footers && (!bare || len(what.partitions()) == 0):
		return cmdline.UsageError{Err: errors.New("--footers goes with --from-store and a partition")}
	}
	cfg, err := p.settings(c, bare || compare)
	if err != nil {
		return err
	}
	l := &listing{process: p, format: c.String("output"), layout: cfg.Redis.Layout, plain: cfg.Streams, what: what}
	if bare {
		store, err := openStore(cfg.Config, s3sink.Options{})
		if err != nil {
			return cmdline.UsageError{Err: err}
		}
		defer store.Close()
		l.store = store
		return l.ended(l.ofStore(c.Context, footers))
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	l.redis, l.streams, l.store = redisStore{s.redis}, redisStore{s.redis}, s.store
	if compare {
		return l.ended(l.compare(c.Context))
	}
	return l.ended(l.ofManifests(c.Context))
}

// listing is one call of ls.
type listing struct {
	process Process
	format  string
	layout  segment.Layout
	plain   []segment.StreamPattern
	what    names
	redis   manifests    // nil = the bucket alone is read
	streams streamInfos  // of open segments; nil = they are not looked at
	store   s3sink.Store // nil = there is none
	faults  int          // what could not be read, or differs
}

// manifests is what is needed of Redis to list.
type manifests interface {
	Topics(ctx context.Context) ([]segment.Topic, error)
	Known(ctx context.Context) (map[string]string, error)
	Each(ctx context.Context, p segment.Partition, take func(field, value string)) (fields int64, err error)
	Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error)
}

// streamInfos describes streams.
type streamInfos interface {
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
}

// partitionRows prints rows of the partitions that are named, which say of which
// they are where there are several.
func (l *listing) partitionRows(name string, columns []column, each func(segment.Partition, func(...cell) error) error) error {
	parts := l.what.partitions()
	if len(parts) > 1 {
		columns = append([]column{{"PARTITION", "partition"}}, columns...)
	}
	out := newRows(l.process.Stdout, l.format, name, columns)
	for _, p := range parts {
		err := each(p, func(cells ...cell) error {
			if len(parts) > 1 {
				cells = append([]cell{textCell(p.String())}, cells...)
			}
			return out.add(cells...)
		})
		if err != nil {
			return errors.Join(err, out.end())
		}
	}
	return out.end()
}

// fault says that something could not be read, or is not as it should be.
func (l *listing) fault(format string, args ...any) {
	l.faults++
	l.process.complain(fmt.Sprintf(format, args...))
}

func (l *listing) ended(err error) error {
	if err == nil && l.faults > 0 {
		return cmdline.ErrReported
	}
	return err
}
