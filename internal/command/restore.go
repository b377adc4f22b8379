package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/restore"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const restoreDescription = `Brings segments of the object store back into Redis, with the ids, fields, order
and bytes that they had. It says what it would do; with --yes it does it.

  korvet-offload restore orders:0 --yes               into a stream of its own
  korvet-offload restore orders:0 --original --yes    each segment into its own stream again

What is in the stream already must be the beginning of what is restored; then it
goes on behind it, so an interrupted call is simply made again. Nothing is removed
or overwritten. Refused are a stream with newer messages, a server that may evict
keys or has too little memory, and a file that is not what its entry says.

After Redis has lost all its data:

  korvet-offload restore --manifests --yes            the manifests, from the files alone

Then readers find the segments on the object store again, and single ones can be
brought back as above. A manifest that is in use is left alone. Stop the brokers
meanwhile. --registry registers the topics too, to be kept for ever, where the
registry has none of them. --claim alone lets this Redis take over a root that
belonged to another.

Exit code 1 if something could not be restored, or would not be.`

func (p Process) restoreCommand() *cli.Command {
	return &cli.Command{
		Name:        "restore",
		Usage:       "bring segments, or all manifests, back into Redis from the object store",
		UsageText:   "korvet-offload restore (TOPIC:NUMBER | --stream KEY | --manifests | --claim) [--yes] [options]",
		ArgsUsage:   "TOPIC:NUMBER",
		Description: restoreDescription,
		Flags:       append(restoreFlags(), append([]cli.Flag{outputFlag()}, config.Flags()...)...),
		Action:      p.restore,
	}
}

func restoreFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "stream", Usage: "the plain stream of this `KEY`"},
		&cli.StringFlag{Name: "segment", Usage: "only these segments: `A` or A-B"},
		&cli.StringFlag{Name: "from", Usage: "only messages from this `TIME` or id on"},
		&cli.StringFlag{Name: "to", Usage: "only messages before this `TIME`, or up to this id"},
		&cli.StringFlag{Name: "to-key", Usage: "the stream that gets them is `KEY` (default: restored: and the stream key)"},
		&cli.BoolFlag{Name: "original", DisableDefaultText: true, Usage: "each segment gets its own stream back, and its entry says so"},
		&cli.StringFlag{Name: "rate", Usage: "write so many `BYTES` per second at most, such as 20MB"},
		&cli.BoolFlag{Name: "manifests", DisableDefaultText: true, Usage: "make the manifests anew, of all that is on the store"},
		&cli.StringFlag{Name: "topic", Usage: "with --manifests: only this `TOPIC`"},
		&cli.BoolFlag{Name: "registry", DisableDefaultText: true, Usage: "with --manifests: register the topics that are in no registry, with retention.ms=-1"},
		&cli.BoolFlag{Name: "deep", DisableDefaultText: true, Usage: "with --manifests: read every file from end to end"},
		&cli.BoolFlag{Name: "allow-disorder", DisableDefaultText: true, Usage: "with --manifests: segments may begin below the segment before"},
		&cli.BoolFlag{Name: "include-expired", DisableDefaultText: true, Usage: "with --manifests: also segments that the topic's retention deletes at the next tick"},
		&cli.BoolFlag{Name: "claim", DisableDefaultText: true, Usage: "let this Redis take over a root that belonged to another"},
		&cli.BoolFlag{Name: "yes", DisableDefaultText: true, Usage: "do it, and not only say what would be done"},
	}
}

// defaultKey is where a partition is restored to.
const defaultKey = "restored:"

func (p Process) restore(c *cli.Context) error {
	if err := checkRestore(c); err != nil {
		return err
	}
	rate, err := rateOf(c)
	if err != nil {
		return err
	}
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	var q restore.Query
	all := c.Bool("manifests") || c.Bool("claim")
	if !all {
		if q, err = restoreQuery(c, cfg.Config); err != nil {
			return err
		}
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	r := restorer{Process: p, session: s, yes: c.Bool("yes"), format: c.String("output"), Restorer: restore.New(restorePorts(s, rate), s.cfg.Redis.Layout)}
	if all {
		return r.afterLoss(c)
	}
	if err := checkOwner(c.Context, s.store); err != nil {
		return err
	}
	return r.segments(c.Context, q)
}

// checkRestore refuses flags that don't go together.
func checkRestore(c *cli.Context) error {
	manifests := c.Bool("manifests") || c.Bool("claim")
	what := 0
	for _, given := range []bool{c.Args().Present(), c.IsSet("stream"), c.Bool("manifests") || c.Bool("claim")} {
		if given {
			what++
		}
	}
	streamOfAll := c.Bool("manifests") && c.IsSet("stream") && !c.Args().Present()
	switch {
	case c.Args().Len() > 1:
		return usageError{fmt.Errorf("restore: unexpected argument %q; see korvet-offload restore --help", c.Args().Get(1))}
	case what != 1 && !streamOfAll:
		return usageError{errors.New("restore: want one of TOPIC:NUMBER, --stream, --manifests and --claim; see korvet-offload restore --help")}
	case c.IsSet("to-key") && c.Bool("original"):
		return usageError{errors.New("--to-key and --original: want one of them")}
	case c.Bool("original") && (c.IsSet("from") || c.IsSet("to")):
		return usageError{errors.New("--original brings whole segments back: choose them by --segment, not by --from and --to")}
	case c.IsSet("to-key") && c.String("to-key") == "":
		return usageError{errors.New("--to-key: want the key of a stream")}
	}
	for _, name := range []string{"segment", "from", "to", "to-key", "original", "rate"} {
		if manifests && c.IsSet(name) {
			return usageError{fmt.Errorf("--%s goes with TOPIC:NUMBER or --stream alone", name)}
		}
	}
	for _, name := range []string{"topic", "registry", "deep", "allow-disorder", "include-expired"} {
		if !c.Bool("manifests") && c.IsSet(name) {
			return usageError{fmt.Errorf("--%s goes with --manifests", name)}
		}
	}
	if c.IsSet("topic") {
		if c.IsSet("stream") {
			return usageError{errors.New("--topic and --stream: want one of them")}
		}
		if err := segment.ValidateTopic(c.String("topic")); err != nil {
			return usageError{fmt.Errorf("--topic: %w", err)}
		}
	}
	return nil
}

func rateOf(c *cli.Context) (int64, error) {
	if !c.IsSet("rate") {
		return 0, nil
	}
	rate, err := config.ParseSize(c.String("rate"))
	if err == nil && rate <= 0 {
		err = errors.New("want more than 0")
	}
	if err != nil {
		return 0, usageError{fmt.Errorf("--rate: %w", err)}
	}
	return rate, nil
}

// restoreQuery reads what is to be restored, and to where.
func restoreQuery(c *cli.Context, cfg config.Config) (restore.Query, error) {
	l := cfg.Redis.Layout
	q := restore.Query{Original: c.Bool("original"), Key: c.String("to-key")}
	name := c.Args().First()
	if c.IsSet("stream") {
		name = c.String("stream")
	}
	var err error
	if q.Partition, err = segment.ParsePartition(name, c.IsSet("stream")); err != nil {
		return q, usageError{err}
	}
	if q.Key == "" && !q.Original {
		q.Key = defaultKey + l.StreamKey(q.Partition)
	}
	if _, offloaded := segment.ResolveStream(q.Key, l, cfg.Streams); offloaded && !q.Original {
		return q, usageError{fmt.Errorf("stream %s is one of korvet.streams[] and would be offloaded itself: choose another key with --to-key", q.Key)}
	}
	if c.IsSet("segment") {
		q.Some = true
		if q.First, q.Last, err = parseSegments(c.String("segment")); err != nil {
			return q, usageError{fmt.Errorf("--segment: %w", err)}
		}
	}
	q.Between, err = parseBetween(c)
	return q, err
}

func parseSegments(text string) (first, last segment.Number, err error) {
	from, to, many := strings.Cut(text, "-")
	if first, err = segment.ParseNumber(from); err != nil || !many {
		return first, first, err
	}
	if last, err = segment.ParseNumber(to); err == nil && last < first {
		err = fmt.Errorf("%q: %s is above %s", text, from, to)
	}
	return first, last, err
}

func parseBetween(c *cli.Context) (b parquetfile.Between, err error) {
	if c.IsSet("from") {
		if b.From, err = tieredlog.ParseFrom(c.String("from")); err != nil {
			return b, usageError{fmt.Errorf("--from: %w", err)}
		}
	}
	if c.IsSet("to") {
		if b.To, err = tieredlog.ParseTo(c.String("to")); err != nil {
			return b, usageError{fmt.Errorf("--to: %w", err)}
		}
		if b.To.Compare(b.From) < 0 {
			return b, usageError{errors.New("--to lies before --from")}
		}
	}
	return b, nil
}

// restorer is a call of restore.
type restorer struct {
	Process
	*session
	*restore.Restorer
	yes    bool
	format string
}

// borrowed does something under the lease.
func (r restorer) borrowed(ctx context.Context, do func(ctx context.Context) error) error {
	r.waits = func(what string) { r.complain("restore: " + what) }
	lead, giveBack, err := r.borrow(ctx, "restore")
	if err != nil {
		return err
	}
	err = do(lead)
	if cause := context.Cause(lead); cause != nil && ctx.Err() == nil && err != nil {
		err = fmt.Errorf("%w: %w", cause, err)
		if again := "the same call goes on with it"; !strings.Contains(err.Error(), again) {
			err = fmt.Errorf("%w; %s", err, again)
		}
	}
	if gerr := giveBack(ctx); gerr != nil {
		r.complain("warning: " + gerr.Error())
	}
	return err
}

// settingsOf are the settings of a partition; nil where nobody knows it.
func settingsOf(topics []segment.Topic, p segment.Partition) *segment.TopicSettings {
	for i := range topics {
		if t := &topics[i]; t.Name == p.Topic && t.Plain == p.Plain && t.Err == nil {
			return &t.Settings
		}
	}
	return nil
}
