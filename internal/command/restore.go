package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/restore"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const restoreDescription = `Brings segments of the object store back into Redis, with the ids, fields, order
and bytes that they had. It says what it would do; with --yes it does it.

  korvet-offload restore orders:0 --yes               into a stream of its own
  korvet-offload restore orders:0/1-3,7 --yes         some of its segments
  korvet-offload restore orders:0 --original --yes    each segment into its own stream again

` + namesHelp + `

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
		Name:  "restore",
		Usage: "bring segments, or all manifests, back into Redis from the object store",
		UsageText: "korvet-offload restore " + restoreNames(false).usage() + " [--yes] [options]\n" +
			"korvet-offload restore --manifests " + restoreNames(true).usage() + " [--registry] [--yes] [options]\n" +
			"korvet-offload restore --claim [--yes] [options]",
		ArgsUsage:   restoreNames(true).usage(),
		Description: restoreDescription,
		Flags:       append(restoreFlags(), append([]cli.Flag{outputFlag()}, settingFlags(bothSettings("lease-duration", "page-size", "spool-dir")...)...)...),
		Action:      p.restore,
	}
}

func restoreFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "stream", Usage: "the plain stream of this `KEY`"},
		&cli.StringFlag{Name: "segment", Usage: "only these `SEGMENTS`, such as 7 or 1-3,7; the same as TOPIC:N/SEGMENTS"},
		&cli.StringFlag{Name: "from", Usage: "only messages from this `TIME` or id on"},
		&cli.StringFlag{Name: "to", Usage: "only messages before this `TIME`, or up to this id"},
		&cli.StringFlag{Name: "to-key", Usage: "the stream that gets them is `KEY` (default: restored: and the stream key)"},
		&cli.BoolFlag{Name: "original", DisableDefaultText: true, Usage: "each segment gets its own stream back, and its entry says so"},
		&cli.StringFlag{Name: "rate", Usage: "write so many `BYTES` per second at most, such as 20MB"},
		&cli.BoolFlag{Name: "manifests", DisableDefaultText: true, Usage: "make the manifests anew, of all that is on the store"},
		&cli.StringFlag{Name: "topic", Usage: "with --manifests: only this `TOPIC`; the same as its name alone"},
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
	what, err := checkRestore(c)
	if err != nil {
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
		if q, err = restoreQuery(c, cfg.Config, what); err != nil {
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
		return r.afterLoss(c, what)
	}
	if err := checkOwner(c.Context, s.store); err != nil {
		return err
	}
	if err := s.mustKnow(c.Context, what); err != nil {
		return err
	}
	return r.segments(c.Context, what, q)
}

// restoreNames are what restore takes, with --manifests or without.
func restoreNames(manifests bool) grammar {
	if manifests {
		return grammar{takes: formTopic | formPartition, none: true, many: true, streams: true}
	}
	return grammar{takes: formTopic | formPartition | formSegments, many: true, streams: true, hint: "or --manifests, or --claim"}
}

// checkRestore refuses flags that don't go together, and says what is named.
func checkRestore(c *cli.Context) (names, error) {
	manifests := c.Bool("manifests")
	all := manifests || c.Bool("claim")
	switch {
	case c.Bool("claim") && !manifests && (c.Args().Present() || c.IsSet("stream")):
		return nil, cmdline.UsageError{Err: errors.New("--claim is of the whole root: no name goes with it, but with --manifests")}
	case c.IsSet("to-key") && c.Bool("original"):
		return nil, cmdline.UsageError{Err: errors.New("--to-key and --original: want one of them")}
	case c.Bool("original") && (c.IsSet("from") || c.IsSet("to")):
		return nil, cmdline.UsageError{Err: errors.New("--original brings whole segments back: choose them by their numbers, not by --from and --to")}
	case c.IsSet("to-key") && c.String("to-key") == "":
		return nil, cmdline.UsageError{Err: errors.New("--to-key: want the key of a stream")}
	}
	for _, name := range []string{"segment", "from", "to", "to-key", "original", "rate"} {
		if all && c.IsSet(name) {
			return nil, cmdline.UsageError{Err: fmt.Errorf("--%s does not go with --manifests and --claim", name)}
		}
	}
	for _, name := range []string{"topic", "registry", "deep", "allow-disorder", "include-expired"} {
		if !manifests && c.IsSet(name) {
			return nil, cmdline.UsageError{Err: fmt.Errorf("--%s goes with --manifests", name)}
		}
	}
	if all {
		return restoreNames(true).scoped(c)
	}
	what, err := restoreNames(false).named(c)
	if err != nil || !c.IsSet("segment") {
		return what, err
	}
	if len(what) != 1 || what[0].form() != formPartition {
		return nil, cmdline.UsageError{Err: errors.New("--segment goes with one TOPIC:N, or --stream KEY")}
	}
	if what[0].segments, err = parseNumbers(c.String("segment")); err != nil {
		return nil, cmdline.UsageError{Err: fmt.Errorf("--segment: %w", err)}
	}
	return what, nil
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
		return 0, cmdline.UsageError{Err: fmt.Errorf("--rate: %w", err)}
	}
	return rate, nil
}

// restoreQuery reads what is to be restored of each partition, and to where.
func restoreQuery(c *cli.Context, cfg config.Config, what names) (restore.Query, error) {
	q := restore.Query{Original: c.Bool("original"), Key: c.String("to-key")}
	if q.Key != "" && (len(what) != 1 || what[0].topic) {
		return q, cmdline.UsageError{Err: errors.New("--to-key goes with one partition: those of several partitions are not one stream")}
	}
	if _, offloaded := segment.ResolveStream(q.Key, cfg.Redis.Layout, cfg.Streams); offloaded && q.Key != "" {
		return q, cmdline.UsageError{Err: fmt.Errorf("stream %s is one of korvet.streams[] and would be offloaded itself: choose another key with --to-key", q.Key)}
	}
	var err error
	q.Between, err = parseBetween(c)
	return q, err
}

// queryOf is the query of one partition.
func (r restorer) queryOf(q restore.Query, what names, p segment.Partition) (restore.Query, error) {
	q.Partition = p
	if what.some(p) {
		q.Segments = func(n segment.Number) bool { return what.has(p, n) }
	}
	if q.Key == "" && !q.Original {
		q.Key = defaultKey + r.cfg.Redis.Layout.StreamKey(p)
	}
	if _, offloaded := segment.ResolveStream(q.Key, r.cfg.Redis.Layout, r.cfg.Streams); offloaded && !q.Original {
		return q, cmdline.UsageError{Err: fmt.Errorf("stream %s is one of korvet.streams[] and would be offloaded itself: choose another key with --to-key", q.Key)}
	}
	return q, nil
}

func parseBetween(c *cli.Context) (b parquetfile.Between, err error) {
	if c.IsSet("from") {
		if b.From, err = segment.ParseFrom(c.String("from")); err != nil {
			return b, cmdline.UsageError{Err: fmt.Errorf("--from: %w", err)}
		}
	}
	if c.IsSet("to") {
		if b.To, err = segment.ParseTo(c.String("to")); err != nil {
			return b, cmdline.UsageError{Err: fmt.Errorf("--to: %w", err)}
		}
		if b.To.Compare(b.From) < 0 {
			return b, cmdline.UsageError{Err: errors.New("--to lies before --from")}
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
