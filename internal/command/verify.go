package command

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const verifyDescription = `Compares the manifests with the object store and with Redis, and changes nothing.
Each thing that is wrong is one line: its kind, the segment, the object, and what
was found. docs/verify.md says what each kind means and what to do.

By default nothing is read of the objects but what the store says of them: that
they are there, their size and, on S3, their ETag. With --deep each is read once,
to its last row, and compared with its entry by SHA-256, count, first and last id;
with --compare-local also with the local stream, message by message.

What a worker does meanwhile gives no finding: whatever seems to be wrong is
looked at once more. Notes are what is as it may be, such as copies that were
replaced; --notes prints them.

` + namesHelp + `

Exit code 1 if something is wrong, or could not be read.`

// verifyNames are what verify and repair take.
func verifyNames() grammar {
	return grammar{takes: formTopic | formPartition | formSegments, none: true, many: true, streams: true}
}

func (p Process) verifyCommand() *cli.Command {
	return &cli.Command{
		Name:        "verify",
		Usage:       "compare manifests, object store and Redis, and say what is wrong",
		UsageText:   "korvet-offload verify " + verifyNames().usage() + " [--deep] [--compare-local] [--state FILE [--resume]] [options]",
		ArgsUsage:   verifyNames().usage(),
		Description: verifyDescription,
		Flags: append(append(scopeFlags(),
			&cli.BoolFlag{Name: "deep", DisableDefaultText: true, Usage: "read every object whole"},
			&cli.BoolFlag{Name: "compare-local", DisableDefaultText: true, Usage: "compare with the local streams, message by message, as well; means --deep"},
			&cli.StringFlag{Name: "rate", Usage: "read so many `BYTES` per second at most (64KB, 16MB; 0: no limit)", DefaultText: "verify.rate"},
			&cli.StringFlag{Name: "state", Usage: "write to `FILE` which objects were read and are whole", TakesFile: true},
			&cli.BoolFlag{Name: "resume", DisableDefaultText: true, Usage: "with --state: pass over those that the file has, if the store still has the same"},
			&cli.BoolFlag{Name: "notes", DisableDefaultText: true, Usage: "print notes, too"},
			outputFlag()), settingFlags(bothSettings("page-size", "spool-dir")...)...),
		Action: p.verify,
	}
}

func (p Process) verify(c *cli.Context) (err error) {
	if c.Bool("resume") && c.String("state") == "" {
		return cmdline.UsageError{Err: errors.New("--resume goes with --state")}
	}
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	s, opt, err := scrubbing(c, cfg.Config)
	if err != nil {
		return err
	}
	defer s.close()
	if file := c.String("state"); file != "" {
		state, err := openVerified(file, verifiedHead{V: 1, Root: cfg.Store.URL, Namespace: cfg.Redis.Layout.Namespace}, c.Bool("resume"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, state.close()) }()
		opt.Verified, opt.Done = state.has, state.add
	}
	bar := startScrubProgress(p.Stderr)
	opt.Progress = bar.told
	out := &verifyOutput{Process: p, format: c.String("output"), notes: c.Bool("notes"), bar: bar}
	report, err := s.scrubber(opt).Run(c.Context, out.found)
	bar.end()
	return out.finish(report, err)
}

// scrubbing connects for a look at what the command line names, which must be
// known.
func scrubbing(c *cli.Context, cfg config.Config) (*session, scrub.Options, error) {
	what, err := verifyNames().scoped(c)
	if err != nil {
		return nil, scrub.Options{}, err
	}
	opt, err := verifyOptions(c, cfg, what)
	if err != nil {
		return nil, opt, err
	}
	s, err := connect(c.Context, cfg, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return nil, opt, err
	}
	if err := s.mustKnow(c.Context, what); err != nil {
		s.close()
		return nil, opt, err
	}
	return s, opt, nil
}

// verifyOptions are those of the command line.
func verifyOptions(c *cli.Context, cfg config.Config, what names) (scrub.Options, error) {
	o := scrub.Options{Deep: c.Bool("deep"), CompareLocal: c.Bool("compare-local"), Rate: cfg.Scrub.Rate}
	var err error
	if c.IsSet("rate") {
		if o.Rate, err = config.ParseSize(c.String("rate")); err != nil {
			return o, cmdline.UsageError{Err: fmt.Errorf("--rate %q: %w", c.String("rate"), err)}
		}
	}
	if errs := (scrub.Config{Rate: o.Rate}).Validate(); len(errs) > 0 {
		return o, cmdline.UsageError{Err: fmt.Errorf("--rate: %w", errs[0])}
	}
	o.DeleteGrace, o.SpoolDir = cfg.Worker.DeleteGrace, cfg.Worker.SpoolDir
	o.Partitions = what.partitions()
	if what.anyTopic() {
		o.Only = what.covers
	}
	if what.anySome() {
		o.Segments, o.Whole = what.has, func(p segment.Partition) bool { return !what.some(p) }
	}
	return o, nil
}

// scrubber compares what a session is connected to.
func (s *session) scrubber(o scrub.Options) *scrub.Scrubber {
	r := redisStore{s.redis}
	return scrub.New(scrub.Ports{Registry: r, Known: r, Manifests: r, Streams: r, Clock: s.redis,
		Store: scrubStore{objectStore{s.store}, s.redis, s.cfg.Redis.Layout.Namespace}}, s.cfg.Redis.Layout, o)
}

// scrubStore lets a scrubber read the store. It writes nothing, not even an owner
// marker.
type scrubStore struct {
	objectStore
	redis     clusterReader
	namespace string
}

// List implements scrub.Store. What doctor puts there for a moment is passed over.
func (s scrubStore) List(ctx context.Context, prefix string) iter.Seq2[s3sink.Info, error] {
	return func(yield func(s3sink.Info, error) bool) {
		for info, err := range s.Store.List(ctx, prefix) {
			if err == nil && strings.HasPrefix(info.Key, s3sink.ProbeFolder) {
				continue
			}
			if !yield(info, storeError(err)) {
				return
			}
		}
	}
}

// clusterReader says which cluster this Redis is.
type clusterReader interface {
	ClusterID(ctx context.Context) (string, error)
}

// Owner implements scrub.Store.
func (s scrubStore) Owner(ctx context.Context) error {
	m, err := s3sink.ReadMarker(ctx, s.Store)
	switch class := s3sink.ClassOf(err); {
	case class == s3sink.ClassInvalid:
		return fmt.Errorf("%w: %w", scrub.ErrForeign, err)
	case class == s3sink.ClassDenied:
		return nil // to one who may not list it may just be missing
	case err != nil:
		return storeError(err)
	case m.Namespace == "":
		return fmt.Errorf("%w: nothing was ever copied to it, or it is another place than it was (is it mounted? is remote-path right?)", scrub.ErrNoOwner)
	case m.Namespace != s.namespace:
		return fmt.Errorf("%w: to namespace %q, and this is namespace %q", scrub.ErrForeign, m.Namespace, s.namespace)
	case m.Cluster == "":
		return nil
	}
	id, err := s.redis.ClusterID(ctx)
	if err == nil && id != "" && id != m.Cluster {
		return fmt.Errorf("%w: to cluster %q, and this redis is %q", scrub.ErrForeign, m.Cluster, id)
	}
	return nil // a user who may not read it goes by the namespace alone
}

// findingPlace is what a finding is about, for people.
func findingPlace(f scrub.Finding) string {
	switch {
	case f.HasSegment:
		return fmt.Sprintf("%s/%s", f.Partition, f.Segment)
	case f.Partition.Topic != "":
		return f.Partition.String()
	}
	return "the root"
}

// findingLine is a finding as people read it.
func findingLine(f scrub.Finding) string {
	kind := string(f.Kind)
	if f.Note {
		kind = "note: " + kind
	}
	line := kind + "  " + findingPlace(f)
	if f.Path != "" {
		line += "  " + word(f.Path)
	}
	return line + "  " + f.Detail
}

// verifySummary says what was looked at.
func verifySummary(r scrub.Report) string {
	text := fmt.Sprintf("%s, %s, %s", words.Count(r.Partitions, "partition"), words.Count(r.Segments, "segment"), words.Count(r.Objects, "object"))
	if r.Read > 0 || r.Passed > 0 {
		text += fmt.Sprintf("; read %s (%s)", words.Count(r.Read, "object"), words.Size(r.Bytes))
	}
	if r.Passed > 0 {
		text += fmt.Sprintf(", passed over %d", r.Passed)
	}
	return text
}
