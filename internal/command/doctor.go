package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/doctor"
	"korvet-offload/internal/words"
)

const doctorDescription = `Looks at Redis, the object store and the settings, and says of each thing
whether it is right: OK, WARN (it works, and may cost something later), FAIL, or
SKIP (it could not be asked, with the right that is missing), and what to do.
It goes as far as it can when Redis or the store is away.

Redis is only read. To the store it puts a few objects of 64 bytes below
_korvet_offload_doctor/ in the prefix, and removes them, on Ctrl-C too; it says
so if it could not. Every check is in docs/doctor.md.

Exit codes: 0 nothing failed; 1 something did, or there was no time for all of
it; 2 wrong usage or settings.`

func (p Process) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "look whether Redis, the object store and the settings are fit for this program",
		Description: doctorDescription,
		Flags:       append([]cli.Flag{outputFlag()}, config.Flags()...),
		Action:      p.doctor,
	}
}

// doctorTime is how long all checks together may take; what has not answered
// until then is passed over.
const doctorTime = time.Minute

// doctorView is the result as --output json prints it.
type doctorView struct {
	Findings []doctor.Finding `json:"findings"`
	Count    doctor.Count     `json:"count"`
	Complete bool             `json:"complete"` // false: there was no time for all of it
}

func (p Process) doctor(c *cli.Context) error {
	cfg, err := p.settings(c, false)
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		p.complain("warning: " + w)
	}
	ctx, cancel := context.WithTimeout(c.Context, doctorTime)
	defer cancel()
	all := examine(ctx, cfg.Config, depth{})
	view := doctorView{all, doctor.Tally(all), ctx.Err() == nil}
	if err := p.printDoctor(c.String("output"), view); err != nil {
		return err
	}
	switch {
	case c.Err() != nil:
		return errors.New("interrupted: what is missing above was not looked at")
	case !view.Complete:
		return fmt.Errorf("not all was looked at within %s", doctorTime)
	case view.Count.Fail > 0:
		return cmdline.ErrReported
	}
	return nil
}

func (p Process) printDoctor(format string, v doctorView) error {
	if format == outputJSON {
		return cmdline.WriteJSON(p.Stdout, v)
	}
	_, err := io.WriteString(p.Stdout, doctorText(v.Findings)+"\n"+tallyText(v.Count)+"\n")
	if err != nil {
		return fmt.Errorf("print findings: %w", err)
	}
	return nil
}

// doctorText is a line for each finding, with what to do indented below it.
func doctorText(all []doctor.Finding) string {
	longest := 0
	for _, f := range all {
		longest = max(longest, len(f.ID))
	}
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%-4s  %-*s  %s\n", strings.ToUpper(string(f.Verdict)), longest, f.ID, f.Seen)
		if f.Do != "" {
			fmt.Fprintf(&b, "        do: %s\n", f.Do)
		}
	}
	return b.String()
}

func tallyText(c doctor.Count) string {
	return fmt.Sprintf("%d ok, %s, %d failed, %d skipped", c.OK, words.Count(c.Warn, "warning"), c.Fail, c.Skips)
}
