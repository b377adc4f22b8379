package command

import (
	"errors"
	"fmt"

	"korvet-offload/internal/cmdline"

	"github.com/urfave/cli/v2"
)

const bashCompletion = `_korvet_offload() {
  local cur="${COMP_WORDS[COMP_CWORD]}"
  local words=("${COMP_WORDS[@]:0:$COMP_CWORD}")
  if [[ "$cur" == -* ]]; then words+=("$cur"); fi
  COMPREPLY=($(compgen -W "$("${words[@]}" --generate-bash-completion 2>/dev/null)" -- "$cur"))
}
complete -o default -F _korvet_offload korvet-offload
`

const zshCompletion = `#compdef korvet-offload
_korvet_offload() {
  local -a opts
  local -a called=("${words[@]:0:$((CURRENT - 1))}")
  if [[ "${words[CURRENT]}" == -* ]]; then called+=("${words[CURRENT]}"); fi
  opts=("${(@f)$(_CLI_ZSH_AUTOCOMPLETE_HACK=1 "${called[@]}" --generate-bash-completion 2>/dev/null)}")
  if [[ -n "${opts[1]}" ]]; then _describe 'values' opts; else _files; fi
}
compdef _korvet_offload korvet-offload
`

func (p Process) completionCommand() *cli.Command {
	script := func(shell, text, how string) *cli.Command {
		return &cli.Command{Name: shell, Usage: how, Action: func(*cli.Context) error {
			_, err := fmt.Fprint(p.Stdout, text)
			return err
		}}
	}
	return &cli.Command{
		Name:  "completion",
		Usage: "print a script that completes commands and flags in a shell",
		// Whatever goes to stdout here, a shell takes for commands.
		Action: func(c *cli.Context) error {
			if !c.Args().Present() {
				return cmdline.UsageError{Err: errors.New("completion: name a shell: bash, zsh or fish; see korvet-offload completion --help")}
			}
			return p.noCommand(c)
		},
		Subcommands: []*cli.Command{
			script("bash", bashCompletion, "source <(korvet-offload completion bash)"),
			script("zsh", zshCompletion, "source <(korvet-offload completion zsh)"),
			{Name: "fish", Usage: "korvet-offload completion fish | source", Action: func(c *cli.Context) error {
				text, err := c.App.ToFishCompletion()
				if err != nil {
					return fmt.Errorf("make the fish completion: %w", err)
				}
				_, err = fmt.Fprint(p.Stdout, text)
				return err
			}},
		},
	}
}
