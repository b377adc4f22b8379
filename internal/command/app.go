package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
)

const description = `A partition of a Korvet topic is a row of segments, each a Redis Stream. This
program copies sealed segments to an object store, one Parquet file each, and
marks them REMOTE in the partition's manifest once the file has been verified.

See it work, with nothing installed:    korvet-offload demo
Try it on your Redis, changing nothing: korvet-offload run --once --dry-run --redis-uri redis://host:6379 --remote-path s3://bucket/prefix
Run it:                                 korvet-offload run --config settings.yml

Settings come from flags, environment variables, a folder of secrets, a YAML
file (the broker's application.yml will do) and defaults, in this order.
"korvet-offload config check" shows which is in effect and where it came from.
Secrets are taken from anywhere but flags. All of them are in docs/settings.md.

Exit codes: 0 all well; 1 something could not be done, each on stderr with its
cause; 2 wrong usage or settings.`

// app is the command line.
func (p Process) app() *cli.App {
	return &cli.App{
		Name:                 program,
		Usage:                "move sealed segments of Redis Streams to an object store",
		Description:          description,
		UsageText:            "korvet-offload COMMAND [options]",
		Version:              version().String(),
		Writer:               p.Stdout,
		ErrWriter:            p.Stderr,
		EnableBashCompletion: true,
		Suggest:              true,
		ExitErrHandler:       func(*cli.Context, error) {}, // cmdline.Run decides
		OnUsageError:         wrongUsage,
		Action:               p.noCommand,
		Commands: p.withUsage([]*cli.Command{
			p.runCommand(), p.demoCommand(), p.catCommand(), p.restoreCommand(), p.serveCommand(), p.statusCommand(), p.configCommand(), p.doctorCommand(), p.healthcheckCommand(), p.pauseCommand(), p.resumeCommand(), p.gcCommand(), p.verifyCommand(), p.lsCommand(), p.describeCommand(), p.repairCommand(), p.icebergCommand(), p.versionCommand(), p.completionCommand(), p.manCommand(),
		}),
	}
}

// withUsage makes every command, at any depth, report wrong usage in the same
// way and refuse arguments that it does not take.
func (p Process) withUsage(commands []*cli.Command) []*cli.Command {
	for _, c := range commands {
		c.OnUsageError = wrongUsage
		c.HideHelpCommand = true
		p.withUsage(c.Subcommands)
		if len(c.Subcommands) > 0 {
			if c.Action == nil {
				c.Action = p.noCommand
			}
			continue
		}
		action, takesArgs := c.Action, c.ArgsUsage != ""
		c.Action = func(ctx *cli.Context) error {
			if ctx.Args().Present() && !takesArgs {
				return cmdline.UsageError{Err: fmt.Errorf("%s: unexpected argument %q; see %s --help", c.Name, ctx.Args().First(), ctx.Command.HelpName)}
			}
			return action(ctx)
		}
	}
	return commands
}

func wrongUsage(c *cli.Context, err error, _ bool) error {
	return cmdline.UsageError{Err: fmt.Errorf("%w; see %s --help", err, c.Command.HelpName)}
}

// noCommand is called where a command should stand.
func (p Process) noCommand(c *cli.Context) error {
	if !c.Args().Present() {
		return cli.ShowSubcommandHelp(c)
	}
	var names []string
	for _, sub := range c.Command.Subcommands {
		if sub.Name != "help" {
			names = append(names, sub.Name)
		}
	}
	slices.Sort(names)
	return cmdline.UsageError{Err: fmt.Errorf("there is no command %q; there are %s", c.Args().First(), strings.Join(names, ", "))}
}

// outputFlag chooses between a table and JSON.
func outputFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: outputTable, Usage: "print results as `FORMAT`: table or json",
		Action: func(_ *cli.Context, format string) error {
			if format != outputTable && format != outputJSON {
				return cmdline.UsageError{Err: fmt.Errorf("--output %s: want %s or %s", format, outputTable, outputJSON)}
			}
			return nil
		}}
}

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// settings reads the settings of a command.
func (p Process) settings(c *cli.Context, needStore bool) (*config.Loaded, error) {
	in := config.FromFlags(c, p.Environ)
	if in.File == "" && c.IsSet("config") {
		return nil, cmdline.UsageError{Err: errors.New("--config: name a file")}
	}
	in.NeedStore = needStore
	return config.Load(in)
}
