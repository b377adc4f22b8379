package command

import (
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// settingsCategory is that of the flags which every command with settings has.
const settingsCategory = "Settings:"

func (p Process) manCommand() *cli.Command {
	return &cli.Command{
		Name:  "man",
		Usage: "print the manual page",
		Description: `Made of the same texts as --help:

    korvet-offload man | man -l -
    korvet-offload man > /usr/local/share/man/man1/korvet-offload.1`,
		Action: func(c *cli.Context) error {
			_, err := io.WriteString(p.Stdout, manual(c.App))
			return err
		},
	}
}

// manual is the manual page of a command line, in the man macros of roff.
func manual(app *cli.App) string {
	m := &manPage{}
	m.macro("TH", strings.ToUpper(app.Name), "1", "", app.Name, "User Commands")
	m.text(".nh\n.ad l")
	m.macro("SH", "NAME")
	m.text(app.Name + ` \- ` + roff(app.Usage))
	m.macro("SH", "SYNOPSIS")
	m.text(`\fB` + roff(app.Name) + `\fR \fICOMMAND\fR [\fIoptions\fR]`)
	m.macro("SH", "DESCRIPTION")
	m.paragraphs(app.Description)
	m.macro("SH", "COMMANDS")
	m.commands("", app.Commands)
	m.macro("SH", "SETTINGS")
	m.text(roff("Every command that reads settings takes these; all others are set by --set, the environment or the file."))
	m.flags(app.Command("run").Flags, func(category string) bool { return category == settingsCategory })
	m.macro("SH", "EXIT STATUS")
	m.text(roff("0: all well. 1: something could not be done, each on stderr with its cause. 2: wrong usage or settings."))
	return m.String()
}

// manPage is a page in the making.
type manPage struct{ strings.Builder }

// macro writes a request with its arguments.
func (m *manPage) macro(name string, args ...string) {
	m.WriteString("." + name)
	for _, a := range args {
		m.WriteString(` "` + strings.ReplaceAll(roff(a), `"`, `\(dq`) + `"`)
	}
	m.WriteByte('\n')
}

// text writes a line that is roff already.
func (m *manPage) text(line string) { m.WriteString(line + "\n") }

// paragraphs writes plain text: what is indented stays as it is.
func (m *manPage) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			m.macro("PP")
		}
		verbatim := strings.Contains("\n"+paragraph, "\n    ") || strings.Contains(paragraph, ":    ")
		if verbatim {
			m.macro("nf")
		}
		for line := range strings.Lines(paragraph) {
			m.text(roff(strings.TrimRight(line, "\n")))
		}
		if verbatim {
			m.macro("fi")
		}
	}
}

// commands writes a section for each command that does something.
func (m *manPage) commands(above string, commands []*cli.Command) {
	for _, c := range commands {
		name := strings.TrimSpace(above + " " + c.Name)
		if c.Hidden || c.Name == "help" {
			continue
		}
		if len(c.Subcommands) > 0 {
			m.commands(name, c.Subcommands)
			continue
		}
		m.macro("SS", name)
		m.text(roff(c.Usage))
		if c.Description != "" {
			m.macro("PP")
			m.paragraphs(c.Description)
		}
		m.flags(c.Flags, func(category string) bool { return category != settingsCategory })
	}
}

// flags writes those of a category that is asked for.
func (m *manPage) flags(flags []cli.Flag, in func(category string) bool) {
	for _, f := range flags {
		doc, ok := f.(cli.DocGenerationFlag)
		categorised, has := f.(cli.CategorizableFlag)
		if !ok || has && !in(categorised.GetCategory()) || f.Names()[0] == "help" {
			continue
		}
		m.macro("TP")
		m.text(flagLine(f.Names(), doc))
		m.text(roff(flagHelp(doc)))
	}
}

// flagLine is the names of a flag and what it takes.
func flagLine(names []string, doc cli.DocGenerationFlag) string {
	var parts []string
	for _, n := range names {
		dashes := "--"
		if len(n) == 1 {
			dashes = "-"
		}
		parts = append(parts, `\fB`+roff(dashes+n)+`\fR`)
	}
	line := strings.Join(parts, ", ")
	if doc.TakesValue() {
		line += ` \fI` + roff(placeholder(doc.GetUsage())) + `\fR`
	}
	return line
}

// placeholder is the word in back quotes, as in the help.
func placeholder(usage string) string {
	if _, rest, found := strings.Cut(usage, "`"); found {
		word, _, _ := strings.Cut(rest, "`")
		return word
	}
	return "value"
}

func flagHelp(doc cli.DocGenerationFlag) string {
	text := strings.ReplaceAll(doc.GetUsage(), "`", "")
	if preset := strings.Trim(doc.GetDefaultText(), `"`); doc.TakesValue() && preset != "" {
		text += " (default: " + preset + ")"
	}
	return text
}

// roff makes plain text of a line that roff would read otherwise.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
