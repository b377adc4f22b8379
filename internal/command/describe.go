package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const describeDescription = `Shows all that is known of one segment: its manifest entry, its stream in Redis, its
objects on the store, and what the file's footer tells. What does not agree stands
at the end, and gives exit code 1. The pages of the file are not read: verify --deep
does that.

With --from-store Redis is not asked, and the file is the segment's highest copy.`

func (p Process) describeCommand() *cli.Command {
	return &cli.Command{
		Name:        "describe",
		Usage:       "show one segment: entry, stream, objects and footer",
		UsageText:   "korvet-offload describe TOPIC:NUMBER/SEGMENT | --stream KEY SEGMENT [--from-store] [options]",
		ArgsUsage:   "TOPIC:NUMBER/SEGMENT",
		Description: describeDescription,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "stream", Usage: "a segment of the plain stream of this `KEY`"},
			&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "show what lies in the bucket, without Redis"},
			outputFlag(),
		}, config.Flags()...),
		Action: p.describe,
	}
}

// segmentOf is the segment that is asked for.
func segmentOf(args []string, stream string, plain bool) (p segment.Partition, n segment.Number, err error) {
	if len(args) != 1 {
		return p, n, usageError{errors.New("want one segment: TOPIC:NUMBER/SEGMENT, or --stream KEY SEGMENT")}
	}
	name, number := stream, args[0]
	if !plain {
		at := strings.LastIndexByte(args[0], '/')
		if at < 0 {
			return p, n, usageError{fmt.Errorf("%q: want TOPIC:NUMBER/SEGMENT, as in orders:0/7", args[0])}
		}
		name, number = args[0][:at], args[0][at+1:]
	}
	if p, err = segment.ParsePartition(name, plain); err == nil {
		n, err = segment.ParseNumber(number)
	}
	if err != nil {
		return p, n, usageError{err}
	}
	return p, n, nil
}

func (p Process) describe(c *cli.Context) error {
	part, n, err := segmentOf(c.Args().Slice(), c.String("stream"), c.IsSet("stream"))
	if err != nil {
		return err
	}
	bare := c.Bool("from-store")
	cfg, err := p.settings(c, bare)
	if err != nil {
		return err
	}
	d := &describing{listing: listing{process: p, layout: cfg.Redis.Layout}, partition: part, number: n}
	d.view.Partition, d.view.Plain, d.view.Segment = part.String(), part.Plain, n
	if bare {
		store, err := openStore(cfg.Config, s3sink.Options{})
		if err != nil {
			return usageError{err}
		}
		defer store.Close()
		d.store = store
		return d.show(c.Context, c.String("output"))
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	d.redis, d.streams, d.store = redisStore{s.redis}, redisStore{s.redis}, s.store
	return d.show(c.Context, c.String("output"))
}

// streams is what is needed of Redis to describe a stream.
type streams interface {
	StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error)
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

func (d *describing) show(ctx context.Context, format string) error {
	d.view.Objects, d.view.Differs = []objectView{}, []string{}
	for _, look := range []func(context.Context) error{d.lookAtEntry, d.lookAtStream, d.lookAtObjects} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if d.stored == nil && len(d.view.Objects) == 0 {
		return fmt.Errorf("segment %s/%s: there is neither an entry nor an object of it", d.partition, d.number)
	}
	if format == outputJSON {
		if err := writeJSON(d.process.Stdout, d.view); err != nil {
			return err
		}
	} else if err := d.process.writeLines(d.lines()); err != nil {
		return err
	}
	if len(d.view.Differs) > 0 {
		return errReported
	}
	return nil
}
