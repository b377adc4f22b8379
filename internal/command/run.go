package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/ops"
	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

const runDescription = `Every tick-interval, if no other instance leads, for all topics with
remote.storage.enable and all plain streams of korvet.streams: seal full
segments; copy each sealed segment that is still LOCAL to
<remote-path>/<stream key>/<segment>.parquet, the oldest of a partition first;
remove local copies past local retention; delete what is past total retention.
An entry becomes REMOTE only after its object has been verified, and a local copy
goes only if its object is still there and the stream is still what was copied.

With --once, one such pass, a table of what was done, and exit 1 if anything
could not be done. With --once --dry-run, what a pass would do, and why, and
nothing is changed.

SIGTERM ends it within 20 seconds: work under way is cancelled, the lease is
given back, and the next run goes on from the manifests. Exit code 0.`

func (p Process) runCommand() *cli.Command {
	return &cli.Command{
		Name:        "run",
		Usage:       "seal, copy, drop and expire segments, at every tick or once",
		UsageText:   "korvet-offload run [--once [--dry-run]] [options]",
		Description: runDescription,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "once", DisableDefaultText: true, Usage: "make one pass and exit"},
			&cli.BoolFlag{Name: "dry-run", DisableDefaultText: true, Usage: "with --once: print the plan and change nothing"},
			&cli.StringFlag{Name: "cpuprofile", Usage: "write a CPU profile to `FILE`", TakesFile: true},
			outputFlag(),
		}, settingFlagsBut("serve-address", "zero-copy", "cache-dir")...),
		Action: p.run,
	}
}

func (p Process) run(c *cli.Context) (err error) {
	if c.Bool("dry-run") && !c.Bool("once") {
		return cmdline.UsageError{Err: errors.New("--dry-run goes with --once")}
	}
	asked, stop := p.hangups(c)
	defer stop()
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	log, level, err := ops.NewLogger(cfg.Ops, p.Stderr, terminal(p.Stderr))
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	keepHeapSmall()
	if cfg.Ops.Yield {
		if err := yieldToOthers(); err != nil {
			log.Debug("running at the usual priority", zap.Error(err))
		}
	}
	if file := c.String("cpuprofile"); file != "" {
		stop, err := startProfile(file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	switch {
	case c.Bool("dry-run"):
		return p.dryRun(c, cfg.Config)
	case c.Bool("once"):
		return p.once(c, cfg.Config, log)
	}
	return p.daemon(c.Context, log, &reloading{log: log, level: level, asked: asked, now: cfg,
		load: func() (*config.Loaded, error) { return p.settingsAgain(c) }})
}

// hangups asks for the signals that make a daemon read its settings again. All
// other commands end by them.
func (p Process) hangups(c *cli.Context) (asked <-chan os.Signal, stop func()) {
	if p.Hangups == nil || c.Bool("once") {
		return nil, func() {}
	}
	return p.Hangups()
}

// daemon runs until ctx ends.
func (p Process) daemon(ctx context.Context, log *zap.Logger, settings *reloading) error {
	cfg := settings.now.Config
	log.Info("starting", zap.Stringer("version", version()), zap.String("namespace", cfg.Redis.Layout.Namespace),
		zap.String("remote_path", cfg.Store.URL), zap.Duration("tick_interval", cfg.Worker.TickInterval))
	d := &daemon{cfg: cfg, log: log, settings: settings, eviction: newEvictionWatch(log), manager: newManager(log)}
	d.journal = newJournal(log, ops.NewHealth(d.alive))
	d.metrics = newMetrics(cfg, d.up)
	d.journal.waits = d.manager.waits
	d.board = newBoard(cfg, settings.now.Report(), d)
	settings.tell, settings.begin = d.retold, d.manager.reloads
	var err error
	if d.site, err = newSite(cfg, d); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	mounts := ops.Mounts{Metrics: d.metrics.Handler(), Site: d.site, Login: d.site.Login}
	events := ops.Events{Listening: func(a net.Addr) {
		d.journal.listening(a)
		warnIfOpen(log, a, cfg.Ops.Token)
	}, BadCertificate: d.journal.badCertificate}
	g.Go(func() error { return ops.Serve(ctx, cfg.Ops, d.journal.health, mounts, events) })
	g.Go(func() error { return d.work(ctx) })
	g.Go(func() error { return d.manager.stopsWith(ctx) })
	g.Go(func() error { settings.follow(ctx); return nil })
	err = g.Wait()
	log.Info("stopped")
	return err
}

// checkOwner refuses a place that belongs to another namespace or cluster.
func checkOwner(ctx context.Context, s s3sink.Store) error {
	ctx, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	err := s.CheckOwner(ctx)
	if s3sink.ClassOf(err) == s3sink.ClassInvalid {
		return cmdline.UsageError{Err: err}
	}
	return err
}

// ownerTime is how long a store may take to say whom it belongs to.
const ownerTime = 10 * time.Second

// once makes one pass.
func (p Process) once(c *cli.Context, cfg config.Config, log *zap.Logger) error {
	if !cfg.Worker.Enabled {
		return p.nothingDone(c, "offload is switched off by korvet.storage.offload.enabled; nothing done")
	}
	bar := startProgress(p.Stderr)
	report, led, err := lead(c.Context, cfg, bar, log)
	bar.end()
	if !led {
		if to := lentTo(err); to != "" {
			return p.nothingDone(c, fmt.Sprintf("the lease is lent to %s; nothing done", to))
		}
		if errors.Is(err, offload.ErrFollower) && cfg.Lease.Shards > 1 {
			return p.nothingDone(c, fmt.Sprintf("other instances hold all %d shards; nothing done", cfg.Lease.Shards))
		}
		if errors.Is(err, offload.ErrFollower) {
			return p.nothingDone(c, "another instance leads; nothing done")
		}
		return err
	}
	if perr := p.printReport(c.String("output"), report, cfg); perr != nil {
		return perr
	}
	for _, o := range report.Outcomes {
		if o.Result == offload.Reopened && o.Cause != nil {
			p.complain(fmt.Sprintf("segment %s/%s is copied again: %v", o.Partition, o.Segment, o.Cause))
		}
	}
	return p.complainAbout(report, err)
}

// lead makes one pass under the lease; led is false when there was none.
func lead(ctx context.Context, cfg config.Config, o offload.Observer, log *zap.Logger) (r offload.Report, led bool, err error) {
	s, err := connect(ctx, cfg, o, func(s3sink.Event) {})
	if err != nil {
		return r, false, err
	}
	defer s.close()
	if err := checkOwner(ctx, s.store); err != nil {
		return r, false, err
	}
	if err := s.checkRoot(ctx); err != nil {
		return r, false, err
	}
	if err := newEvictionWatch(log).begin(ctx, s.redis, cfg.Redis.StrictEviction); err != nil {
		return r, false, err
	}
	sayLacks(ctx, s.redis, log)
	askForgotten(ctx, s, log)(ctx)
	preflightOnce(ctx, cfg, s.redis, log)
	defer s.pauses.following(ctx)()
	return s.runLed(ctx, log)
}

// complainAbout prints what could not be done.
func (p Process) complainAbout(r offload.Report, err error) error {
	for _, problem := range r.Problems {
		p.complain(problemLine(problem))
	}
	if err != nil {
		p.complain(fmt.Sprintf("the pass was given up with %s left: %v", words.Count(r.Left, "segment"), err))
	}
	if err != nil || len(r.Problems) > 0 {
		return cmdline.ErrReported
	}
	return nil
}

// problemLine is a problem as stderr has it: what it is about, the word of
// docs/reasons.md, and the cause, which may begin with what it is about, too.
func problemLine(p offload.Problem) string {
	cause := p.Err.Error()
	cause = strings.TrimPrefix(cause, p.Where()+": ")
	if p.Topic != "" {
		cause = strings.TrimPrefix(cause, "topic "+p.Topic+": ")
	}
	return fmt.Sprintf("%s: [%s] %s", p.Where(), p.Reason, cause)
}

// dryRun prints what a pass would do. It needs neither the lease nor the store.
func (p Process) dryRun(c *cli.Context, cfg config.Config) error {
	s, err := connect(c.Context, cfg, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	plan, err := s.worker.Plan(c.Context)
	if err != nil {
		return err
	}
	if err := p.printPlan(c.String("output"), plan, cfg); err != nil {
		return err
	}
	return p.complainAbout(offload.Report{Problems: plan.Problems}, nil)
}

// nothingDone ends a run that did not lead.
func (p Process) nothingDone(c *cli.Context, why string) error {
	if _, err := fmt.Fprintln(p.Stderr, why); err != nil {
		return err
	}
	if c.String("output") == outputJSON {
		return p.reportJSON(offload.Report{}, false)
	}
	return nil
}

// quiet observes nothing.
type quiet struct{}

func (quiet) Planned(offload.Plan)     {}
func (quiet) Advanced(int, int)        {}
func (quiet) Finished(offload.Outcome) {}
func (quiet) Failed(offload.Problem)   {}
