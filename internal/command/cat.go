package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/message"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const catDescription = `Prints the messages of a partition in order, from Redis and from the object store
as one log, also while segments are being moved; or those of one file, for which
neither is needed.

  korvet-offload cat orders:0 --since 2h
  korvet-offload cat orders:0 --from 2026-01-31T08:00Z --to 2026-02-01 --format value
  korvet-offload cat orders:0 --reverse --limit 10 --envelope
  korvet-offload cat orders:0 --format xadd --to-key copy | redis-cli --pipe
  korvet-offload cat orders:0/7 --limit 1
  korvet-offload cat 7.parquet

` + namesHelp + `

A time or an id says where to begin and end: 2026-01-31, 2026-01-31T08:00Z,
1769846400000, 1769846400000-0. --to does not include a time, and includes an id.
--offset counts messages from where the reading begins: manifests know no
offsets of Kafka.

ndjson is {"id":"...","fields":[["name","value"],...]}, one line each; what is not
UTF-8 is {"base64":"..."}. With --envelope it is {"id":...,"timestamp":...,
"key":...,"value":...,"headers":...}, null where the field is absent. value is the
bytes of the field value alone, xadd what redis-cli --pipe takes.

Exit code 1 if a segment is missing, short or damaged. The reading ends there;
with --skip-missing it goes on behind it.`

func (p Process) catCommand() *cli.Command {
	return &cli.Command{
		Name:        "cat",
		Usage:       "print messages, from both tiers as one log, or of one file",
		UsageText:   "korvet-offload cat (" + catNames().forms() + " | FILE.parquet | --object PATH) [options]",
		ArgsUsage:   "(" + catNames().forms() + " | FILE.parquet)",
		Description: catDescription,
		Flags:       append(catFlags(), settingFlags(bothSettings("page-size")...)...),
		Action:      p.cat,
	}
}

func catFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "stream", Usage: "the plain stream of this `KEY`"},
		&cli.StringFlag{Name: "object", Usage: "one file on the object store, by its `PATH` below the remote path"},
		&cli.StringFlag{Name: "from", Usage: "only messages from this `TIME` or id on"},
		&cli.StringFlag{Name: "to", Usage: "only messages before this `TIME`, or up to this id"},
		&cli.StringFlag{Name: "since", Usage: "only messages of the last `DURATION`, by the Redis server's clock, or without Redis by this host's"},
		&cli.Int64Flag{Name: "offset", Usage: "leave out the first `NUMBER` messages"},
		&cli.Int64Flag{Name: "limit", Usage: "print so many messages (`NUMBER`) at most; 0: all", Aliases: []string{"n"}},
		&cli.BoolFlag{Name: "reverse", Aliases: []string{"r"}, DisableDefaultText: true, Usage: "the last message first"},
		&cli.StringFlag{Name: "tier", Value: string(tieredlog.Both), Usage: "which `TIER`: both, local (what is in Redis) or remote (what is on the store)"},
		&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "ask the store alone which segments there are; Redis is not needed"},
		&cli.BoolFlag{Name: "skip-missing", DisableDefaultText: true, Usage: "go on behind a segment that can't be read; the exit code is 1 all the same"},
		&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: string(message.NDJSON), Usage: "print as `FORMAT`: ndjson, value or xadd"},
		&cli.BoolFlag{Name: "envelope", DisableDefaultText: true, Usage: "with ndjson: timestamp, key, value and headers by name"},
		&cli.StringFlag{Name: "separator", Value: `\n`, Usage: "with value: the `TEXT` behind each value; \\n, \\t, \\0 and \\\\ are known"},
		&cli.StringFlag{Name: "to-key", Usage: "with xadd: the `KEY` that the messages are to be put into"},
		&cli.GenericFlag{Name: "decompress", Value: new(codecFlag),
			Usage: "decompress the field value, as the topic's storage.compression.type says; --decompress=`CODEC`: as gzip, snappy, lz4 or zstd"},
		&cli.StringFlag{Name: "decompress-limit", Value: "1GB", Usage: "refuse a value that becomes larger than `SIZE`"},
		&cli.BoolFlag{Name: "stats", DisableDefaultText: true, Usage: "say at the end, on stderr, what was read"},
	}
}

// codecFlag is a flag that may have a value.
type codecFlag struct {
	set  bool
	name string // "" = as the topic says
}

// Set takes the value; "true" stands for none.
func (f *codecFlag) Set(text string) error {
	f.set = text != "false"
	if f.name = text; text == "true" || text == "false" {
		f.name = ""
	}
	return nil // what is no codec is said later: the library would call it no boolean
}

func (f *codecFlag) String() string    { return f.name }
func (*codecFlag) IsBoolFlag() bool    { return true }
func codecOf(c *cli.Context) codecFlag { return *c.Generic("decompress").(*codecFlag) }

// catting is one call of cat.
type catting struct {
	Process
	what   catSource
	query  tieredlog.Query
	since  time.Duration // 0 = not asked for
	codec  codecFlag
	format message.Options
	skip   bool
	stats  bool
	bare   bool // --from-store

	counted counted
	skipped bool
}

// cat prints messages.
func (p Process) cat(c *cli.Context) error {
	t := &catting{Process: p, codec: codecOf(c), skip: c.Bool("skip-missing"), stats: c.Bool("stats"), bare: c.Bool("from-store")}
	if err := t.parse(c); err != nil {
		return cmdline.UsageError{Err: err}
	}
	begun := time.Now()
	if t.what.file != "" {
		return t.ended(t.readFile(c.Context), begun)
	}
	cfg, err := p.settings(c, t.what.object != "" || t.bare || t.query.Tier == tieredlog.Remote)
	if err != nil {
		return err
	}
	var store s3sink.Store
	if cfg.Store.URL != "" {
		if store, err = openStore(cfg.Config, s3sink.Options{}); err != nil {
			return cmdline.UsageError{Err: err}
		}
		defer store.Close()
	}
	if t.what.object != "" {
		return t.ended(t.readObject(c.Context, store), begun)
	}
	return t.ended(t.readPartition(c.Context, cfg.Config, store), begun)
}

// ended says what was read, and what was not.
func (t *catting) ended(err error, begun time.Time) error {
	if t.stats {
		t.complain(t.counted.line(time.Since(begun)))
	}
	if err == nil && t.skipped {
		return cmdline.ErrReported
	}
	if errors.Is(err, tieredlog.ErrNoPartition) {
		return fmt.Errorf("%w of it; is the name right? korvet-offload ls lists what there is", err)
	}
	return err
}

// readPartition reads both tiers.
func (t *catting) readPartition(ctx context.Context, cfg config.Config, store s3sink.Store) error {
	ports := tieredlog.Ports{}
	if store != nil {
		ports.Objects = tieredlog.FromRanges(t.ranges(store))
	}
	if t.bare {
		ports.Manifests = storeManifests(store, cfg.Redis.Layout)
		if err := t.settle(nowHere, nil); err != nil {
			return err
		}
		return t.read(ctx, cfg.Redis.Layout, ports)
	}
	redis, err := redisstore.Open(ctx, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		return err
	}
	defer redis.Close()
	ports.Manifests, ports.Streams = redis, redis
	err = t.settle(func() (time.Time, error) { return redis.Now(ctx) }, func() (string, error) { return t.topicCodec(ctx, redis) })
	if err != nil {
		return err
	}
	return t.read(ctx, cfg.Redis.Layout, ports)
}

func nowHere() (time.Time, error) { return time.Now(), nil }

// settle finds out what the command line leaves open: what time it is, and how the
// topic keeps its values (nil = nobody can say).
func (t *catting) settle(now func() (time.Time, error), codec func() (string, error)) error {
	if t.since > 0 {
		at, err := now()
		if err != nil {
			return err
		}
		t.query.From = segment.ID{Ms: uint64(max(0, at.Add(-t.since).UnixMilli()))}
	}
	if !t.codec.set {
		return nil
	}
	name := t.codec.name
	if name == "" {
		if codec == nil {
			return cmdline.UsageError{Err: errors.New("--decompress: only the topic's registry entry tells the codec, and it is not asked here; name it: --decompress=zstd")}
		}
		var err error
		if name, err = codec(); err != nil {
			return err
		}
	}
	parsed, err := message.ParseCodec(name)
	t.format.Codec = parsed
	return err
}

// topicCodec is what the registry says of the topic.
func (t *catting) topicCodec(ctx context.Context, redis *redisstore.Store) (string, error) {
	topics, err := redis.Topics(ctx)
	if err != nil {
		return "", err
	}
	for _, topic := range topics {
		if topic.Name == t.what.partition.Topic && topic.Plain == t.what.partition.Plain && topic.Codec != "" {
			return topic.Codec, nil
		}
	}
	return "", cmdline.UsageError{Err: fmt.Errorf("--decompress: the registry has no storage.compression.type of %s; name the codec: --decompress=zstd", t.what.partition)}
}

// read prints what the log gives.
func (t *catting) read(ctx context.Context, l segment.Layout, ports tieredlog.Ports) error {
	if t.skip {
		t.query.Unreadable = func(err *tieredlog.SegmentError) error {
			t.skipped = true
			t.complain("warning: skipped: " + err.Error())
			return nil
		}
	}
	log := tieredlog.New(l, ports)
	if err := t.narrow(ctx, log); err != nil {
		return err
	}
	return t.print(func(fn func(*segment.Page, int) error) error { return log.Read(ctx, t.what.partition, t.query, fn) })
}

// narrow bounds the query by the segments that are named, if some are: of each range
// there has to be one.
func (t *catting) narrow(ctx context.Context, log *tieredlog.Log) error {
	left := t.what.segments
	if left == nil {
		return nil
	}
	t.query.Segments = left.has
	all, err := log.Segments(ctx, t.what.partition)
	if err != nil {
		return err
	}
	for _, s := range all {
		left = left.without(s.Number)
	}
	if len(left) > 0 {
		return fmt.Errorf("segment %s/%s: there is none; korvet-offload ls lists those that there are", t.what.partition, left)
	}
	return nil
}
