package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const describeDescription = `Shows all that is known of segments: of each its manifest entry, its stream in Redis, its
objects on the store, and what the file's footer tells. What does not agree stands
at the end, and gives exit code 1. The pages of the file are not read: verify --deep
does that.

` + namesHelp + `

With --from-store Redis is not asked, and the file is the segment's highest copy.`

func (p Process) describeCommand() *cli.Command {
	return &cli.Command{
		Name:        "describe",
		Usage:       "show one segment: entry, stream, objects and footer",
		UsageText:   "korvet-offload describe " + describeNames().usage() + " [--from-store] [options]",
		ArgsUsage:   describeNames().usage(),
		Description: describeDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "stream", Usage: "a segment of the plain stream of this `KEY`"},
			&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "show what lies in the bucket, without Redis"},
			outputFlag(),
		}, settingFlags(bothSettings()...)...),
		Action: p.describe,
	}
}

// describeNames are what describe takes.
func describeNames() grammar {
	return grammar{takes: formSegments, many: true, streams: true, hint: "korvet-offload ls lists segments"}
}

// describedMost is how many segments can be described at once.
const describedMost = 1000

// describedSegment is one segment that is named.
type describedSegment struct {
	partition segment.Partition
	number    segment.Number
}

// describedOf are the segments of names, one by one.
func describedOf(what names) (all []describedSegment, err error) {
	for _, n := range what {
		for _, s := range n.segments {
			if s.last-s.first >= describedMost || len(all)+int(s.last-s.first) >= describedMost { //nolint:gosec // it is small
				return nil, cmdline.UsageError{Err: fmt.Errorf("describe: that is more than %d segments; korvet-offload ls lists them", describedMost)}
			}
			for number := s.first; number <= s.last; number++ {
				all = append(all, describedSegment{n.partition, number})
			}
		}
	}
	return all, nil
}

func (p Process) describe(c *cli.Context) error {
	what, err := describeNames().named(c)
	if err != nil {
		return err
	}
	all, err := describedOf(what)
	if err != nil {
		return err
	}
	bare := c.Bool("from-store")
	cfg, err := p.settings(c, bare)
	if err != nil {
		return err
	}
	d := describing{listing: listing{process: p, format: c.String("output"), layout: cfg.Redis.Layout}}
	if bare {
		store, err := openStore(cfg.Config, s3sink.Options{})
		if err != nil {
			return cmdline.UsageError{Err: err}
		}
		defer store.Close()
		d.store = store
		return d.showAll(c.Context, all)
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	d.redis, d.streams, d.store = redisStore{s.redis}, redisStore{s.redis}, s.store
	return d.showAll(c.Context, all)
}

// showAll shows segments one after the other; in JSON several are a list. One that
// there is nothing of is told of, and keeps no other from being shown.
func (d describing) showAll(ctx context.Context, all []describedSegment) error {
	views, fault := []describeView{}, false
	for i, s := range all {
		one := d
		one.partition, one.number = s.partition, s.number
		one.view = describeView{Partition: s.partition.String(), Plain: s.partition.Plain, Segment: s.number, Objects: []objectView{}, Differs: []string{}}
		switch err := one.look(ctx); {
		case errors.Is(err, errNoSegment):
			fault = true
			d.process.complain(err.Error())
			continue
		case err != nil:
			return err
		}
		fault = fault || len(one.view.Differs) > 0
		if views = append(views, one.view); d.format == outputJSON {
			continue
		}
		lines := one.lines()
		if i > 0 {
			lines = append([]string{""}, lines...)
		}
		if err := d.process.writeLines(lines); err != nil {
			return err
		}
	}
	if d.format == outputJSON && (len(all) > 1 || len(views) > 0) {
		if err := cmdline.WriteJSON(d.process.Stdout, describedJSON(views, len(all) > 1)); err != nil {
			return err
		}
	}
	if fault {
		return cmdline.ErrReported
	}
	return nil
}

// describedJSON is what --output json prints: a segment, or the list of several.
func describedJSON(views []describeView, several bool) any {
	if !several {
		return views[0]
	}
	return struct {
		Segments []describeView `json:"segments"`
	}{views}
}

// streams is what is needed of Redis to describe a stream.
type streams interface {
	streamInfos
	Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error)
}

// describing is one call of describe.
type describing struct {
	listing
	streams   streams // nil = Redis is not asked
	partition segment.Partition
	number    segment.Number
	stored    *segment.Stored // nil = there is none
	view      describeView
}

// describeView is a segment as --output json prints it. What was not asked for,
// or is not there, is null.
type describeView struct {
	Partition string         `json:"partition"`
	Plain     bool           `json:"plain"`
	Segment   segment.Number `json:"segment"`
	Where     string         `json:"where"` // as ls has it; "" without an entry
	Entry     *entryView     `json:"entry"`
	Stream    *streamView    `json:"stream"`
	Objects   []objectView   `json:"objects"`
	File      *fileView      `json:"file"`
	Differs   []string       `json:"differs"`
}

type entryView struct {
	Manifest string `json:"manifest"` // the key
	Raw      string `json:"raw"`      // as it is in Redis
	Problem  string `json:"problem"`  // why it is none; "" = it is
}

type streamView struct {
	Key          string `json:"key"`
	Exists       bool   `json:"exists"`
	Shared       bool   `json:"shared"` // other segments lie in it as well
	Length       int64  `json:"length"`
	FirstID      string `json:"first_id"`
	LastID       string `json:"last_generated_id"`
	EntriesAdded *int64 `json:"entries_added"` // null: the server does not say
	MaxDeletedID string `json:"max_deleted_id"`
	Memory       *int64 `json:"memory"` // bytes in Redis, by the server's estimate
}

type objectView struct {
	Path    string    `json:"path"`
	Copy    int64     `json:"copy"`
	Named   bool      `json:"named"` // the entry names it
	Bytes   int64     `json:"bytes"`
	Put     time.Time `json:"put"` // by the store's clock
	ETag    string    `json:"etag"`
	SHA256  string    `json:"sha256"` // as it was put; "" = the store does not say
	Verdict string    `json:"verdict"`
}

type fileView struct {
	Path      string         `json:"path"`
	Version   int            `json:"schema_version"`
	StreamKey string         `json:"stream_key"`
	Segment   segment.Number `json:"segment"`
	Messages  int64          `json:"messages"`
	FirstID   string         `json:"first_id"`
	LastID    string         `json:"last_id"`
	Problem   string         `json:"problem"` // why the rest is not known; "" = it is
}

func (d *describing) differs(format string, args ...any) {
	d.view.Differs = append(d.view.Differs, fmt.Sprintf(format, args...))
}

// errNoSegment says that there is nothing of a segment.
var errNoSegment = errors.New("there is neither an entry nor an object of it")

// look gathers what is known of the segment.
func (d *describing) look(ctx context.Context) error {
	for _, look := range []func(context.Context) error{d.lookAtEntry, d.lookAtStream, d.lookAtObjects} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if d.stored == nil && len(d.view.Objects) == 0 {
		return fmt.Errorf("segment %s/%s: %w", d.partition, d.number, errNoSegment)
	}
	return nil
}
