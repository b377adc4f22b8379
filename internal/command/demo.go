package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// What the demo plays with.
const (
	demoSealed     = 3      // segments of each partition at least, and one open
	demoLargest    = 10_000 // messages of a segment; the embedded Redis is slow with more
	demoValueBytes = 100
	demoSealedFor  = time.Minute
)

func (p Process) demoCommand() *cli.Command {
	return &cli.Command{
		Name:  "demo",
		Usage: "see the whole job on this machine, with nothing installed",
		Description: `Starts an embedded Redis, plays the broker (two topics, four partitions, three
sealed segments and an open one in each), runs one pass against a folder, reads
every file back and compares each message with what went in.

With --redis-uri it uses that Redis instead, in a namespace of its own that it
removes afterwards.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "redis-uri", Usage: "use this Redis instead of the embedded one"},
			&cli.IntFlag{Name: "messages", Value: 100_000, Usage: "how many `MESSAGES` to write in all"},
			&cli.StringFlag{Name: "dir", Usage: "make the folder for the files in `FOLDER` (default: the temporary folder)", TakesFile: true},
			outputFlag(),
		},
		Action: p.demo,
	}
}

// demo is the state of one demonstration.
type demo struct {
	cfg      config.Config
	broker   *broker.Broker
	session  *session
	segments []broker.Segment
	rows     []demoRow
}

// demoRow is one sealed segment.
type demoRow struct {
	Partition    string `json:"partition"`
	Segment      string `json:"segment"`
	Messages     int64  `json:"messages"`
	RedisBytes   int64  `json:"bytes_in_redis"`
	ParquetBytes int64  `json:"bytes_in_parquet"`
	Rate         int64  `json:"messages_per_second"`
	Verified     int64  `json:"verified"` // messages that were compared and are the same
	File         string `json:"file"`
}

func (p Process) demo(c *cli.Context) (err error) {
	messages := c.Int("messages")
	if least := demoPartitions * (demoSealed + 1); messages < least || messages > 100_000_000 {
		return cmdline.UsageError{Err: fmt.Errorf("--messages %d: want %d to 100000000", messages, least)}
	}
	uri, stop, err := demoRedis(c.String("redis-uri"))
	if err != nil {
		return err
	}
	defer stop()
	d := &demo{cfg: demoConfig(uri)}
	dir, err := demoFolder(c.String("dir"), d.cfg.Redis.Layout.Namespace)
	if err != nil {
		return err
	}
	d.cfg.Store.URL = "file://" + filepath.ToSlash(dir)
	d.plan(messages)
	bar := startProgress(p.Stderr)
	err = d.play(c.Context, bar)
	bar.end()
	if err != nil {
		return err
	}
	return p.printDemo(c.String("output"), d, dir)
}

// demoRedis is the Redis to use, and how to end it.
func demoRedis(uri string) (string, func(), error) {
	if uri != "" {
		return uri, func() {}, nil
	}
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		return "", nil, fmt.Errorf("start the embedded redis: %w", err)
	}
	return "redis://" + m.Addr(), m.Close, nil
}

// demoFolder makes a folder of the demo's name.
func demoFolder(in, name string) (string, error) {
	if in == "" {
		in = os.TempDir()
	}
	dir, err := filepath.Abs(filepath.Join(in, name))
	if err == nil {
		err = os.MkdirAll(dir, 0o750)
	}
	if err != nil {
		return "", fmt.Errorf("make a folder for the files: %w", err)
	}
	return dir, nil
}

// demoConfig has a namespace of its own, so that a Redis that is in use loses
// nothing.
func demoConfig(uri string) config.Config {
	cfg := config.DefaultConfig()
	cfg.Redis.URI = uri
	cfg.Redis.Layout.Namespace = fmt.Sprintf("korvet-demo-%d", time.Now().UnixMilli())
	cfg.Lease.Key, cfg.Lease.Members = cfg.Redis.Layout.LeaseKey(), cfg.Redis.Layout.MembersKey()
	cfg.Worker.Roll = false // the broker seals
	return cfg
}

// demoPartitions is the number of partitions of all topics.
const demoPartitions = 4

// demoTopics are the topics and how many partitions each has.
func demoTopics() []demoTopic { return []demoTopic{{"orders", 3}, {"payments", 1}} }

type demoTopic struct {
	name       string
	partitions int
}

// plan spreads the messages evenly over the segments.
func (d *demo) plan(messages int) {
	sealed := max(demoSealed, messages/demoPartitions/demoLargest)
	total := demoPartitions * (sealed + 1)
	for _, topic := range demoTopics() {
		for n := range topic.partitions {
			for s := range sealed + 1 {
				i := len(d.segments)
				d.segments = append(d.segments, broker.Segment{
					Partition: segment.Partition{Topic: topic.name, Number: n}, Number: segment.Number(s), Open: s == sealed,
					Seed: uint64(i) + 1, Count: messages*(i+1)/total - messages*i/total, ValueBytes: demoValueBytes,
				})
			}
		}
	}
}

// play writes, moves and verifies.
func (d *demo) play(ctx context.Context, o offload.Observer) (err error) {
	if d.session, err = connect(ctx, d.cfg, o, nil); err != nil {
		return err
	}
	defer d.session.close()
	d.broker = broker.New(d.session.redis.Client(), d.cfg.Redis.Layout)
	defer func() { err = errors.Join(err, d.tidy(context.WithoutCancel(ctx))) }()
	if err := d.write(ctx); err != nil {
		return err
	}
	report, _, err := d.session.runLed(ctx, zap.NewNop())
	if err != nil {
		return err
	}
	if len(report.Problems) > 0 {
		return report.Problems[0]
	}
	return d.verify(ctx, report)
}

// write plays the broker.
func (d *demo) write(ctx context.Context) error {
	for _, topic := range demoTopics() {
		if err := d.broker.CreateTopic(ctx, topic.name, topic.partitions); err != nil {
			return err
		}
	}
	now, err := d.session.redis.Now(ctx)
	if err != nil {
		return err
	}
	for _, s := range d.segments {
		s.SealedAt = now.Add(-demoSealedFor)
		if err := d.broker.Write(ctx, s, nil); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes what the demo wrote to Redis.
func (d *demo) tidy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Redis.Timeout)
	defer cancel()
	var errs []error
	for _, topic := range demoTopics() {
		errs = append(errs, d.broker.Remove(ctx, topic.name, d.segments))
	}
	return errors.Join(append(errs, d.broker.Forget(ctx))...)
}
