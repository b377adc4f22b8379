package cmdline

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// completionArgument is what shells put at the end to ask what could follow.
const completionArgument = "--generate-bash-completion"

// OptionsFirst puts what a command is to work on behind its options, wherever
// they were typed: the library takes no option behind the first argument. All that
// follows "--" is left as it is.
func OptionsFirst(app *cli.App, args []string) []string {
	if len(args) == 0 || args[len(args)-1] == completionArgument {
		return args
	}
	at, command := 1, (*cli.Command)(nil)
	for commands := app.Commands; at < len(args); at++ {
		i := slices.IndexFunc(commands, func(c *cli.Command) bool { return c.HasName(args[at]) })
		if i < 0 {
			break
		}
		command = commands[i]
		commands = command.Subcommands
	}
	if command == nil || command.ArgsUsage == "" || command.SkipFlagParsing {
		return args
	}
	valued := valuedOptions(command.Flags)
	options, others := slices.Clone(args[:at]), []string(nil)
	for ; at < len(args); at++ {
		arg := args[at]
		switch name := strings.TrimLeft(arg, "-"); {
		case arg == "--":
			return slices.Concat(options, []string{"--"}, others, args[at+1:])
		case arg == "-" || name == arg:
			others = append(others, arg)
		case valued[name] && at+1 < len(args):
			options = append(options, arg, args[at+1])
			at++
		default:
			options = append(options, arg)
		}
	}
	return append(options, others...)
}

// valuedOptions are the names of the flags behind which a value stands.
func valuedOptions(flags []cli.Flag) map[string]bool {
	names := map[string]bool{}
	for _, f := range flags {
		if g, ok := f.(*cli.GenericFlag); ok {
			if b, ok := g.Value.(interface{ IsBoolFlag() bool }); ok && b.IsBoolFlag() {
				continue
			}
		}
		if taking, ok := f.(cli.DocGenerationFlag); ok && taking.TakesValue() {
			for _, name := range f.Names() {
				names[name] = true
			}
		}
	}
	return names
}
