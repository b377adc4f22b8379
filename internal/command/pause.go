package command

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
	"korvet-offload/segment"
)

const pauseDescription = `Pauses a topic, a plain stream, or everything, for every instance, until it is
resumed. What is paused is still read, counted and shown, and nothing of it is
changed: no segment is sealed, copied, dropped, hidden or deleted. An instance
hears of it within 10 seconds, finishes the segments that it is at, and begins no
others. What was not copied stays in Redis, which therefore fills up.

Pausing what is paused already changes nothing, unless another --reason is
given. Everything and a topic are paused apart: each is resumed by itself.`

const resumeDescription = `Ends a pause. Without --topic and --stream it ends that of everything; topics and
streams that were paused by themselves stay paused, and are printed.

Work goes on with the next tick.`

func (p Process) pauseCommand() *cli.Command {
	return &cli.Command{
		Name:        "pause",
		Usage:       "let every instance leave a topic, a stream or everything as it is",
		UsageText:   "korvet-offload pause " + pauseNames().usage() + " [--reason TEXT] [options]",
		ArgsUsage:   pauseNames().usage(),
		Description: pauseDescription,
		Flags: append(append(scopeFlags(), &cli.StringFlag{Name: "reason", Usage: "`TEXT` that is shown wherever the pause is"},
			outputFlag()), settingFlags(redisSettings()...)...),
		Action: func(c *cli.Context) error {
			return p.control(c, func(ctx context.Context, s *redisstore.Store, scope segment.Scope) error {
				_, err := s.Pause(ctx, scope, caller(), c.String("reason"))
				return err
			})
		},
	}
}

func (p Process) resumeCommand() *cli.Command {
	return &cli.Command{
		Name:        resumeVerb,
		Usage:       "end a pause",
		UsageText:   "korvet-offload resume " + pauseNames().usage() + " [options]",
		ArgsUsage:   pauseNames().usage(),
		Description: resumeDescription,
		Flags:       append(append(scopeFlags(), outputFlag()), settingFlags(redisSettings()...)...),
		Action: func(c *cli.Context) error {
			return p.control(c, func(ctx context.Context, s *redisstore.Store, scope segment.Scope) error { return s.Resume(ctx, scope) })
		},
	}
}

func scopeFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "topic", Usage: "only this `TOPIC`"},
		&cli.StringFlag{Name: "stream", Usage: "only the plain stream of this `KEY`"},
	}
}

// pauseNames are what pause and resume take: no part of a topic is paused.
func pauseNames() grammar { return grammar{takes: formTopic, none: true, streams: true} }

// control changes what is paused, and prints what is paused then.
func (p Process) control(c *cli.Context, change func(context.Context, *redisstore.Store, segment.Scope) error) error {
	what, err := pauseNames().scoped(c)
	if err != nil {
		return err
	}
	scope := what.scope()
	cfg, err := p.settings(c, false)
	if err != nil {
		return err
	}
	s, err := redisstore.Open(c.Context, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		return err
	}
	defer s.Close()
	before, err := s.Paused(c.Context)
	if err != nil {
		return err
	}
	if err := change(c.Context, s, scope); err != nil {
		return fmt.Errorf("%s %s: %w", c.Command.Name, scope, err)
	}
	p.warnOfUnknown(c.Context, s, scope)
	all, err := s.Paused(c.Context)
	if err != nil {
		return err
	}
	if c.Command.Name == resumeVerb && c.String("output") != outputJSON {
		if err := p.writeLines([]string{resumedLine(scope, before, all)}); err != nil {
			return err
		}
	}
	return p.printPaused(c.String("output"), all)
}

const resumeVerb = "resume"

// resumedLine says what happens next when a pause has ended.
func resumedLine(scope segment.Scope, before, now segment.Pauses) string {
	_, was := before.Of(scope)
	_, all := now.Of(segment.Scope{})
	switch {
	case !was:
		return scope.String() + " was not paused"
	case all:
		return fmt.Sprintf("resumed: %s; nothing of it goes on while everything is paused", scope)
	}
	return fmt.Sprintf("resumed: %s; instances hear of it within %s and go on at their next tick; korvet-offload status shows what waits", scope, watchInterval)
}

// warnOfUnknown says that a scope names nothing that there is: a name that is
// misspelt pauses nothing.
func (p Process) warnOfUnknown(ctx context.Context, s *redisstore.Store, scope segment.Scope) {
	if scope.All() {
		return
	}
	topics, err := s.Topics(ctx)
	if err == nil && slices.ContainsFunc(topics, func(t segment.Topic) bool { return scope.Covers(t.Partition(0)) }) {
		return
	}
	var known map[string]string
	if err == nil {
		known, err = s.Known(ctx)
	}
	if _, was := known[scope.Topic]; was && scope.Topic != "" {
		return
	}
	if err != nil {
		p.complain(fmt.Sprintf("warning: it can't be told whether there is a %s: %v", scope, err))
		return
	}
	p.complain(fmt.Sprintf("warning: there is no %s, neither in the registry nor in the settings; is the name right?", scope))
}

// caller is who calls this program, as far as the system knows.
func caller() string {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return name + "@" + host
}

// printPaused prints what is paused. What of it can't be read is a fault.
func (p Process) printPaused(format string, all segment.Pauses) error {
	if format == outputJSON {
		if err := cmdline.WriteJSON(p.Stdout, struct {
			Paused []pauseView `json:"paused"`
		}{pauseViews(all)}); err != nil {
			return err
		}
	} else if err := p.writeLines(append(pauseLines(all), nothingPaused(all)...)); err != nil {
		return err
	}
	for _, err := range all.Errs {
		p.complain(err.Error())
	}
	if len(all.Errs) > 0 {
		return cmdline.ErrReported
	}
	return nil
}

func nothingPaused(all segment.Pauses) []string {
	if len(all.List) > 0 {
		return nil
	}
	return []string{"nothing is paused"}
}

// writeLines writes results for a person.
func (p Process) writeLines(lines []string) error {
	for _, l := range lines {
		if _, err := fmt.Fprintln(p.Stdout, l); err != nil {
			return err
		}
	}
	return nil
}

// word is a text that somebody else has written, in quotes unless it is a plain
// word.
func word(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || !strconv.IsPrint(r) || r == '"' }) {
		return strconv.Quote(text)
	}
	return text
}
