package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/repair"
	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

const repairDescription = `Verifies, and says for each finding what would heal it: copying the segment again
from a stream that is whole, taking another object that has the same content,
making a forgotten flip again, giving an object whose entry is lost an entry, and
ending deletions that were begun. Nothing is changed without --yes.

Whatever an action relies on is read whole first, the object to its last row, the
stream to its last entry, and looked at once more right before the one change that
is made, a compare-and-set of the entry. No object is ever deleted or overwritten.
What can't be healed for certain is left, and its line says what a person can do.

A damaged object whose size is right is found with --deep only. --report repairs
what "verify --output json" has found before, and reads nothing else anew.

` + namesHelp + `

With --yes it works under the lease, which a running instance hands over for that
long. Exit code 1 if something is left that was not healed.`

func (p Process) repairCommand() *cli.Command {
	return &cli.Command{
		Name:        "repair",
		Usage:       "heal what verify finds, where that is certain",
		UsageText:   "korvet-offload repair " + verifyNames().usage() + " [--yes] [--deep] [--report FILE] [options]",
		ArgsUsage:   verifyNames().usage(),
		Description: repairDescription,
		Flags: append(append(scopeFlags(),
			&cli.BoolFlag{Name: "yes", DisableDefaultText: true, Usage: "act; without it nothing is changed"},
			&cli.BoolFlag{Name: "deep", DisableDefaultText: true, Usage: "read every object whole to find what is wrong"},
			&cli.StringFlag{Name: "rate", Usage: "read so many `BYTES` per second at most to find what is wrong (64KB, 16MB; 0: no limit)", DefaultText: "verify.rate"},
			&cli.StringFlag{Name: "report", Usage: "repair what this `FILE` of verify --output json has (-: stdin)", TakesFile: true},
			&cli.BoolFlag{Name: "include-expired", DisableDefaultText: true, Usage: "give objects an entry that lie before the first one of their manifest, too"},
			outputFlag()), settingFlags(bothSettings("lease-duration", "page-size", "spool-dir", "spool-memory")...)...),
		Action: p.repair,
	}
}

func (p Process) repair(c *cli.Context) error {
	if c.IsSet("report") && c.Bool("deep") {
		return cmdline.UsageError{Err: errors.New("--report and --deep: want one of them")}
	}
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	s, look, err := scrubbing(c, cfg.Config)
	if err != nil {
		return err
	}
	defer s.close()
	if err := checkOwner(c.Context, s.store); err != nil {
		return err
	}
	out := &repairOutput{Process: p, json: c.String("output") == outputJSON, act: c.Bool("yes")}
	findings, err := p.findings(c, s, look)
	if findings == nil && err != nil {
		return err
	}
	out.incomplete = err
	opt := repair.Options{Yes: out.act, IncludeExpired: c.Bool("include-expired"), SpoolDir: cfg.Worker.SpoolDir}
	s.waits = p.complain
	report, err := s.repairLed(c.Context, opt, findings, out.did)
	return out.finish(report, err)
}

// findings are those of a report, or of a look at everything now. Those that were
// found before an error are returned with it.
func (p Process) findings(c *cli.Context, s *session, look scrub.Options) ([]scrub.Finding, error) {
	if file := c.String("report"); file != "" {
		return readFindings(file, look)
	}
	found := []scrub.Finding{}
	bar := startScrubProgress(p.Stderr)
	look.Progress = bar.told
	_, err := s.scrubber(look).Run(c.Context, func(f scrub.Finding) { found = append(found, f) })
	bar.end()
	if cause := context.Cause(c.Context); cause != nil {
		return nil, cause
	}
	return found, err
}

// readFindings reads what verify has printed, as far as it is to be looked at.
func readFindings(file string, look scrub.Options) ([]scrub.Finding, error) {
	in := io.ReadCloser(os.Stdin)
	if file != "-" {
		var err error
		if in, err = os.Open(file); err != nil {
			return nil, cmdline.UsageError{Err: fmt.Errorf("--report: %w", err)}
		}
	}
	defer in.Close()
	var view struct {
		Findings *[]findingView `json:"findings"`
	}
	if err := json.NewDecoder(in).Decode(&view); err != nil || view.Findings == nil {
		return nil, cmdline.UsageError{Err: fmt.Errorf("--report %s: it is not what verify --output json prints: %w", file, errors.Join(err, errNoFindings(view.Findings)))}
	}
	found := []scrub.Finding{}
	for _, v := range *view.Findings {
		f, err := v.finding()
		if err != nil {
			return nil, cmdline.UsageError{Err: fmt.Errorf("--report %s: %w", file, err)}
		}
		if look.Wants(f) {
			found = append(found, f)
		}
	}
	return found, nil
}

func errNoFindings(found *[]findingView) error {
	if found != nil {
		return nil
	}
	return errors.New("it has no findings")
}

// finding is what makeFinding has made a view of.
func (v findingView) finding() (scrub.Finding, error) {
	f := scrub.Finding{Kind: v.Kind, Partition: segment.Partition{Topic: v.Topic, Number: v.Partition, Plain: v.Plain}, Path: v.Path, Detail: v.Detail}
	if !slices.Contains(scrub.Kinds(), v.Kind) {
		return f, fmt.Errorf("finding of unknown kind %.60q", v.Kind)
	}
	if v.Segment != nil {
		f.Segment, f.HasSegment = segment.Number(*v.Segment), true
	}
	if v.Topic == "" && !f.HasSegment {
		return f, nil // of the root
	}
	_, err := segment.ParsePartition(f.Partition.String(), false)
	if v.Plain {
		_, err = segment.ParsePartition(v.Topic, true)
	}
	return f, err
}

// repairLed repairs; to act, under the lease, which is borrowed for it.
func (s *session) repairLed(ctx context.Context, opt repair.Options, found []scrub.Finding, told func(repair.Step)) (repair.Report, error) {
	r := repair.New(s.repairPorts(), s.cfg.Redis.Layout, opt)
	if _, err := s.pauses.Paused(ctx); err != nil {
		return repair.Report{}, fmt.Errorf("read what is paused: %w", err)
	}
	if !opt.Yes || len(found) == 0 {
		return r.Run(ctx, found, told)
	}
	lead, giveBack, err := s.borrow(ctx, "repair")
	if err != nil {
		return repair.Report{}, err
	}
	unfollow := s.pauses.following(lead)
	report, err := r.Run(lead, found, told)
	unfollow()
	return report, errors.Join(err, giveBack(ctx))
}

// repairPorts are what a repair uses.
func (s *session) repairPorts() repair.Ports {
	r := redisStore{s.redis}
	return repair.Ports{Manifests: r, Streams: r, Removals: r, Clock: s.redis, Copier: copier{s}, Gate: s.pauses,
		Store: scrubStore{objectStore{s.store}, s.redis, s.cfg.Redis.Layout.Namespace}}
}

// copier copies single segments with the session's worker.
type copier struct{ *session }

// CopyNow implements repair.Copier.
func (c copier) CopyNow(ctx context.Context, p segment.Partition, n segment.Number) (offload.Outcome, error) {
	defer c.dog.rest()
	return c.worker.CopyNow(ctx, p, n)
}
