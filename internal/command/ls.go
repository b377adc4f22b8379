package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const lsDescription = `Without an argument the topics and plain streams, with a topic its partitions,
with a partition, or --stream, its segments: where they are, from which id to
which, how many messages, how large, and where the object lies.

That is read from the manifests, which know what readers are given. With
--from-store it is read from the bucket alone, and Redis is not asked at all: then
all that is known are the objects, by their paths, and with --footers what their
footers tell. With --compare both are laid side by side: what is in the manifest
alone, on the store alone, or of another size there. What differs is looked at once
more, so that a worker at work makes no difference.

Exit code 1 if something can't be read, or with --compare if something differs
that should not. Nothing is changed.`

func (p Process) lsCommand() *cli.Command {
	return &cli.Command{
		Name:        "ls",
		Usage:       "list topics, partitions or segments, of the manifests or of the bucket",
		UsageText:   "korvet-offload ls [TOPIC | TOPIC:NUMBER | --stream KEY] [--from-store [--footers] | --compare] [options]",
		ArgsUsage:   "[TOPIC | TOPIC:NUMBER]",
		Description: lsDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "stream", Usage: "the segments of the plain stream of this `KEY`"},
			&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "list what lies in the bucket, without Redis"},
			&cli.BoolFlag{Name: "footers", DisableDefaultText: true, Usage: "with --from-store and a partition: read what the files' footers tell"},
			&cli.BoolFlag{Name: "compare", DisableDefaultText: true, Usage: "compare manifests and bucket"},
			rowsFlag(),
		}, config.Flags()...),
		Action: p.ls,
	}
}

// target is what a person asks for: everything, a topic, or a partition.
type target struct {
	topic     string             // "" = every one
	partition *segment.Partition // nil = all of them
}

// targetOf is what the argument and --stream say.
func targetOf(args []string, stream string, isStream bool) (target, error) {
	switch {
	case len(args) > 1:
		return target{}, usageError{fmt.Errorf("unexpected argument %q: want one topic, or one partition", args[1])}
	case isStream && len(args) > 0:
		return target{}, usageError{fmt.Errorf("--stream and %q: want one of them", args[0])}
	case isStream:
		p, err := segment.ParsePartition(stream, true)
		if err != nil {
			return target{}, usageError{fmt.Errorf("--stream: %w", err)}
		}
		return target{partition: &p}, nil
	case len(args) == 0:
		return target{}, nil
	case !strings.Contains(args[0], ":"):
		if err := segment.ValidateTopic(args[0]); err != nil {
			return target{}, usageError{err}
		}
		return target{topic: args[0]}, nil
	}
	p, err := segment.ParsePartition(args[0], false)
	if err != nil {
		return target{}, usageError{err}
	}
	return target{partition: &p}, nil
}

// has says whether a partition is meant.
func (t target) has(p segment.Partition) bool {
	switch {
	case t.partition != nil:
		return p == *t.partition
	case t.topic != "":
		return p.Topic == t.topic && !p.Plain
	}
	return true
}

func (p Process) ls(c *cli.Context) error {
	what, err := targetOf(c.Args().Slice(), c.String("stream"), c.IsSet("stream"))
	if err != nil {
		return err
	}
	bare, compare, footers := c.Bool("from-store"), c.Bool("compare"), c.Bool("footers")
	switch {
	case bare && compare:
		return usageError{errors.New("--from-store and --compare: want one of them")}
	case footers && (!bare || what.partition == nil):
		return usageError{errors.New("--footers goes with --from-store and a partition")}
	}
	cfg, err := p.settings(c, bare || compare)
	if err != nil {
		return err
	}
	l := &listing{process: p, format: c.String("output"), layout: cfg.Redis.Layout, what: what}
	if bare {
		store, err := openStore(cfg.Config, s3sink.Options{})
		if err != nil {
			return usageError{err}
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
	l.redis, l.store = redisStore{s.redis}, s.store
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
	what    target
	redis   manifests    // nil = the bucket alone is read
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

// fault says that something could not be read, or is not as it should be.
func (l *listing) fault(format string, args ...any) {
	l.faults++
	l.process.complain(fmt.Sprintf(format, args...))
}

func (l *listing) ended(err error) error {
	if err == nil && l.faults > 0 {
		return errReported
	}
	return err
}
