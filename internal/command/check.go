package command

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

func (p Process) configCommand() *cli.Command {
	return &cli.Command{
		Name:  "config",
		Usage: "look at the settings",
		Subcommands: []*cli.Command{{
			Name:  "check",
			Usage: "print the settings in effect and where each came from; with --connect try them",
			Description: `Everything that is wrong is printed at once, each with the nearest right name.
With --connect, Redis and the object store are tried too, without writing
anything: what is missing is said exactly (a permission, the region, the bucket,
path style). Secrets are never printed.`,
			Flags: append([]cli.Flag{
				&cli.BoolFlag{Name: "connect", DisableDefaultText: true, Usage: "try Redis and the object store; nothing is written"},
				outputFlag(),
			}, config.Flags()...),
			Action: p.configCheck,
		}},
	}
}

// checkView is the result of config check as --output json prints it.
type checkView struct {
	Settings []config.Setting `json:"settings"`
	Warnings []string         `json:"warnings"`
	Findings []finding        `json:"findings,omitempty"` // with --connect
}

// finding is one thing that was tried.
type finding struct {
	Tried  string `json:"tried"`
	OK     bool   `json:"ok"`
	Note   bool   `json:"note,omitempty"` // it is no fault, and worth knowing
	Detail string `json:"detail,omitempty"`
	Advice string `json:"advice,omitempty"`
}

func (p Process) configCheck(c *cli.Context) error {
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	view := checkView{Settings: cfg.Report(), Warnings: append([]string{}, cfg.Warnings...)}
	if c.Bool("connect") {
		view.Findings = tryAll(c.Context, cfg.Config)
	}
	if err := p.printCheck(c.String("output"), view); err != nil {
		return err
	}
	for _, f := range view.Findings {
		if !f.OK {
			return cmdline.ErrReported
		}
	}
	return nil
}

// tryAll tries Redis, the store and the spool.
func tryAll(ctx context.Context, cfg config.Config) []finding {
	return slices.Concat(tryRedis(ctx, cfg), tryStore(ctx, cfg), trySpool(cfg))
}

func trySpool(cfg config.Config) []finding {
	if err := cfg.Worker.CheckSpool(); err != nil {
		return []finding{{Tried: "spool folder", Detail: err.Error()}}
	}
	return []finding{{Tried: "spool folder", OK: true, Detail: cfg.Worker.SpoolDir + " can be written"}}
}

// tryTopics says which registry there is and what is in it: a wrong namespace
// looks like an empty one.
func tryTopics(ctx context.Context, s *redisstore.Store) finding {
	f := finding{Tried: "redis: topics"}
	topics, err := s.Topics(ctx)
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	c := offload.CountTopics(topics)
	f.OK, f.Note = true, c.Topics == 0
	f.Detail = fmt.Sprintf("registry: %s; %s to be offloaded", s.RegistryKind(), topicCount(c))
	if f.Note {
		f.Advice = noTopics
	}
	return f
}

func tryRedis(ctx context.Context, cfg config.Config) []finding {
	s, err := redisstore.Open(ctx, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		return []finding{{Tried: "redis", Detail: err.Error()}}
	}
	defer s.Close()
	var all []finding
	for _, f := range s.Check(ctx) {
		all = append(all, finding{Tried: "redis: " + f.Name, OK: f.OK, Detail: f.Detail, Advice: f.Advice})
	}
	return append(all, tryTopics(ctx, s))
}

func tryStore(ctx context.Context, cfg config.Config) []finding {
	s, err := openStore(cfg, s3sink.Options{})
	if err != nil {
		return []finding{{Tried: "object store", Detail: err.Error()}}
	}
	defer s.Close()
	var all []finding
	faults := 0
	for _, f := range s.Check(ctx) {
		if !f.Warning {
			faults++
		}
		all = append(all, finding{Tried: "object store: " + f.Tried, OK: f.Warning, Note: f.Warning, Detail: f.Err.Error()})
	}
	if faults == 0 {
		all = slices.Insert(all, 0, finding{Tried: "object store", OK: true, Detail: cfg.Store.URL + ": it answers, and nothing is wrong with what could be tried without writing"})
	}
	return all
}

func (p Process) printCheck(format string, v checkView) error {
	if format == outputJSON {
		return cmdline.WriteJSON(p.Stdout, v)
	}
	t := newTable("SETTING", "VALUE", "FROM")
	for _, s := range v.Settings {
		from := s.Source
		if s.From != "" {
			from = s.From
		}
		t.add(s.Name, s.Value, from)
	}
	if err := t.write(p.Stdout); err != nil {
		return err
	}
	for _, w := range v.Warnings {
		p.complain("warning: " + w)
	}
	return p.printFindings(v.Findings)
}

func (p Process) printFindings(findings []finding) error {
	if len(findings) == 0 {
		return nil
	}
	t := newTable("TRIED", "RESULT", "DETAIL")
	for _, f := range findings {
		result, detail := "ok", f.Detail
		switch {
		case !f.OK:
			result = "FAULT"
		case f.Note:
			result = "note"
		}
		if f.Advice != "" {
			detail += "; " + f.Advice
		}
		t.add(f.Tried, result, detail)
	}
	if _, err := fmt.Fprintln(p.Stdout); err != nil {
		return err
	}
	return t.write(p.Stdout)
}
