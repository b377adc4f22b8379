package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
	"korvet-offload/internal/message"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/segment"
)

// catSource is what is to be read: one of these.
type catSource struct {
	partition segment.Partition
	segments  numbers // nil = all
	file      string  // of this machine
	object    string  // below the root
}

// parse reads the command line.
func (t *catting) parse(c *cli.Context) (err error) {
	if t.what, err = catSourceOf(c); err != nil {
		return err
	}
	if err := t.parseQuery(c); err != nil {
		return err
	}
	if err := t.parseFormat(c); err != nil {
		return err
	}
	one := t.what.file != "" || t.what.object != ""
	for _, name := range []string{"tier", "from-store", "skip-missing"} {
		if one && c.IsSet(name) {
			return fmt.Errorf("--%s goes with a partition, and not with one file", name)
		}
	}
	if t.bare && t.query.Tier == tieredlog.Local {
		return errors.New("--from-store and --tier local: want one of them")
	}
	if t.codec.name != "" {
		if _, err := message.ParseCodec(t.codec.name); err != nil {
			return fmt.Errorf("--decompress: %w", err)
		}
	}
	if !t.codec.set || t.codec.name != "" {
		return nil
	}
	if one || t.bare || t.what.partition.Plain {
		return errors.New("--decompress: only a topic's registry entry tells the codec; name it: --decompress=zstd")
	}
	return nil
}

// catNames are what cat takes beside files and objects.
func catNames() grammar {
	return grammar{takes: formPartition | formSegments, streams: true, hint: "or FILE.parquet, or --object PATH"}
}

// catSourceOf says what is to be read. What ends as files do is a file.
func catSourceOf(c *cli.Context) (s catSource, err error) {
	name := c.Args().First()
	switch {
	case c.IsSet("object") && (c.IsSet("stream") || c.Args().Present()):
		return s, catNames().refuse("--object and another name")
	case c.IsSet("object"):
		if s.object = c.String("object"); s.object == "" {
			err = errors.New("--object: want the path of an object")
		}
		return s, err
	case !c.IsSet("stream") && c.Args().Len() == 1 && strings.HasSuffix(name, ".parquet"):
		return catSource{file: name}, nil
	}
	what, err := catNames().named(c)
	switch {
	case err != nil && c.Args().Len() == 1 && !c.IsSet("stream") && isFile(name):
		return catSource{file: name}, nil
	case err != nil:
		return s, err
	}
	s.partition, s.segments = what[0].partition, what[0].segments
	return s, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

func (t *catting) parseQuery(c *cli.Context) (err error) {
	q := tieredlog.Query{Skip: c.Int64("offset"), Limit: c.Int64("limit"), Reverse: c.Bool("reverse"), Tier: tieredlog.Tier(c.String("tier"))}
	switch {
	case q.Skip < 0:
		return fmt.Errorf("--offset %d: want 0 or more", q.Skip)
	case q.Limit < 0:
		return fmt.Errorf("--limit %d: want 0 (all) or more", q.Limit)
	case c.IsSet("since") && c.IsSet("from"):
		return errors.New("--since and --from: want one of them")
	}
	if err := q.Validate(); err != nil {
		return fmt.Errorf("--tier: %w", err)
	}
	if c.IsSet("from") {
		if q.From, err = segment.ParseFrom(c.String("from")); err != nil {
			return fmt.Errorf("--from: %w", err)
		}
	}
	if c.IsSet("to") {
		if q.To, err = segment.ParseTo(c.String("to")); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	if !q.To.IsZero() && q.From.Compare(q.To) > 0 {
		return fmt.Errorf("--from %s --to %s: the end lies before the beginning", c.String("from"), c.String("to"))
	}
	if c.IsSet("since") {
		if t.since, err = config.ParseDuration(c.String("since")); err == nil && t.since < time.Millisecond {
			err = errors.New("want 1ms or more")
		}
		if err != nil {
			if _, notTime := segment.ParseFrom(c.String("since")); notTime == nil {
				err = fmt.Errorf("%w; a time, or an id, goes with --from", err)
			}
			return fmt.Errorf("--since %q: %w", c.String("since"), err)
		}
	}
	t.query = q
	return nil
}

func (t *catting) parseFormat(c *cli.Context) (err error) {
	t.format = message.Options{Format: message.Format(c.String("format")), Envelope: c.Bool("envelope"), Key: c.String("to-key")}
	for name, format := range map[string]message.Format{"separator": message.Values, "to-key": message.XADD, "envelope": message.NDJSON} {
		if c.IsSet(name) && t.format.Format != format {
			return fmt.Errorf("--%s goes with --format %s", name, format)
		}
	}
	if t.format.Separator, err = separatorOf(c.String("separator")); err != nil {
		return err
	}
	if t.format.Limit, err = config.ParseSize(c.String("decompress-limit")); err == nil && t.format.Limit == 0 {
		err = errors.New("want 1 byte or more")
	}
	switch {
	case err != nil:
		return fmt.Errorf("--decompress-limit %q: %w", c.String("decompress-limit"), err)
	case t.format.Format == message.XADD && t.format.Key == "":
		return errors.New("--format xadd: say with --to-key which key the messages are to be put into")
	case t.format.Format == message.XADD && t.codec.set:
		return errors.New("--format xadd and --decompress: the messages would not be the same any more; want one of them")
	}
	encoder, err := message.NewEncoder(t.format)
	if err != nil {
		return fmt.Errorf("--format: %w", err)
	}
	return encoder.Close()
}

// separatorOf reads a text in which a few characters are written with a backslash.
func separatorOf(text string) ([]byte, error) {
	out := []byte{}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			out = append(out, text[i])
			continue
		}
		i++
		at := -1
		if i < len(text) {
			at = strings.IndexByte(`nt0\`, text[i])
		}
		if at < 0 {
			return nil, fmt.Errorf(`--separator %q: behind a \ want n, t, 0 or \`, text)
		}
		out = append(out, "\n\t\x00\\"[at])
	}
	return out, nil
}
