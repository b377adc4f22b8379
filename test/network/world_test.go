package network

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/checker/loader"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// servers are a Redis and a store that several worlds share, each with a
// namespace and a prefix of its own.
type servers struct {
	redis  *redisserver.Server
	s3     *s3server.Server
	broker *broker.Broker // of no layout in particular
	worlds atomic.Int64
}

func newServers(t *testing.T) *servers {
	t.Helper()
	return &servers{redis: redisserver.Start(t), s3: s3server.Start(t, s3server.Options{})}
}

// The topics of a world, by what there is to do with their segments.
const (
	copies  = "copies"  // copied from Redis to the store
	drops   = "drops"   // removed from Redis
	expires = "expires" // deleted from the store
)

// world is a namespace with three topics, one for each kind of work, and a
// ledger of what was written to them.
type world struct {
	*servers
	t      *testing.T
	name   string
	layout segment.Layout
	broker *broker.Broker
	parts  []segment.Partition
	acks   []checker.Ack
	values int // bytes of a message's value
	count  int // messages of a segment
	env    []string
}

// size is how much there is in a world.
type size struct{ partitions, segments, messages, valueBytes int }

func usual() size { return size{partitions: 3, segments: 2, messages: 500, valueBytes: 400} }

// newWorld makes a world in which there is something to do of each kind, as
// soon as begin says so. Its instances have the settings env, too.
func newWorld(t *testing.T, s *servers, z size, env ...string) *world {
	t.Helper()
	w := &world{servers: s, t: t, env: env, name: fmt.Sprintf("w%d", s.worlds.Add(1)), layout: segment.DefaultLayout(), values: z.valueBytes, count: z.messages}
	w.layout.Namespace = w.name
	var err error
	if w.broker, err = broker.Connect(s.redis.Addr, w.layout); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.broker.Close)
	w.topic(drops, 1, 2)
	w.topic(expires, 1, 2)
	w.set(expires, "local.retention.ms", "1")
	w.once() // both are copied
	w.once() // and one of them is dropped
	w.topic(copies, z.partitions, z.segments)
	w.redis.Exec("SREM", w.layout.TopicsKey(), copies) // not yet
	return w
}

// topic writes a topic of that many partitions, each with so many sealed
// segments and an open one.
func (w *world) topic(name string, partitions, segments int) {
	w.t.Helper()
	if err := w.broker.CreateTopic(w.t.Context(), name, partitions); err != nil {
		w.t.Fatal(err)
	}
	for p := range partitions {
		part := segment.Partition{Topic: name, Number: p}
		w.parts = append(w.parts, part)
		for n := range segments {
			w.write(broker.Segment{Partition: part, Number: segment.Number(n), Seed: uint64(len(w.acks) + 1), Count: w.count,
				ValueBytes: w.values, SealedAt: time.Now().Add(-time.Hour)})
		}
		w.write(broker.Segment{Partition: part, Number: segment.Number(segments), Seed: uint64(len(w.acks) + 1), Count: 1,
			ValueBytes: 10, Open: true, SealedAt: time.Now()})
	}
}

func (w *world) write(s broker.Segment) {
	w.t.Helper()
	if err := w.broker.Write(w.t.Context(), s, nil); err != nil {
		w.t.Fatal(err)
	}
	messages := s.Messages()
	for range s.Count {
		m := messages.Next()
		fields := m.Fields()
		w.acks = append(w.acks, loader.Ack(s.Partition, w.layout.SegmentKey(s.Partition, s.Number), m.ID, broker.SumOf(fields[:]...)))
	}
}

func (w *world) set(topic, setting, value string) {
	w.redis.Exec("HSET", w.layout.TopicKey(topic), setting, value)
}

// begin makes all the work due.
func (w *world) begin() {
	w.set(drops, "local.retention.ms", "1")
	w.set(expires, "retention.ms", "1")
	w.redis.Exec("SADD", w.layout.TopicsKey(), copies)
}

// environ are the settings of an instance that reaches its servers there.
func (w *world) environ(redis, s3 string) []string {
	return append([]string{
		"KORVET_NAMESPACE=" + w.name,
		"KORVET_REDIS_URI=redis://" + redis,
		"KORVET_REDIS_TIMEOUT=" + timeout.String(),
		"KORVET_STORAGE_REMOTE_PATH=s3://" + w.s3.Bucket + "/" + w.name,
		"KORVET_STORAGE_S3_ENDPOINT=http://" + strings.TrimPrefix(s3, "http://"),
		"KORVET_STORAGE_S3_REGION=" + w.s3.Region,
		"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + w.s3.Access,
		"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + w.s3.Secret,
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=" + tick.String(),
		"KORVET_STORAGE_OFFLOAD_LEASE_DURATION=" + leaseTime.String(),
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=100ms",
		// The machine may be busy, and leases here are short.
		"KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false",
	}, w.env...)
}

const (
	timeout   = 1500 * time.Millisecond
	tick      = 200 * time.Millisecond
	leaseTime = 3 * time.Second
)

// start runs an instance that reaches its servers there, and waits until it
// leads.
func (w *world) start(redis, s3 string) *process {
	w.t.Helper()
	p := launch(w.t, w.environ(redis, s3), "run")
	await(w.t, "the instance leads", 30*time.Second, p.said("this instance leads"))
	await(w.t, "it is ready", 30*time.Second, p.ready(true))
	return p
}

// once makes one pass, past all proxies, with the patience of the defaults.
func (w *world) once() {
	w.t.Helper()
	cmd := exec.Command(program, "run", "--once")
	cmd.Env = append(append(os.Environ(), w.environ(w.redis.Addr, w.s3.Endpoint)...),
		"KORVET_REDIS_TIMEOUT=10s", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=2m")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("run --once: %v\n%s", err, out)
	}
}

// done says whether all the work is done.
func (w *world) done() bool { return w.left() == 0 }

// left is how many segments there is work to do on.
func (w *world) left() (n int) {
	for _, p := range w.parts {
		entries, err := w.broker.Entries(context.Background(), p)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, s := range entries {
			if s.Entry.State != segment.Open && !w.isDone(p.Topic, s.Entry) {
				n++
			}
		}
	}
	return n
}

func (w *world) isDone(topic string, e segment.Entry) bool {
	switch topic {
	case copies:
		return e.Tier == segment.Remote
	case drops:
		return e.Local == segment.Gone
	}
	return false
}

// objects are how many segment files there are.
func (w *world) objects() int {
	files, err := filepath.Glob(filepath.Join(w.root(), "*", "*.parquet"))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(files)
}

func (w *world) root() string { return filepath.Join(w.s3.Dir, w.name) }

// mustSettle waits until all is done, ends the instance, and lets the checker
// judge: nothing is lost, nothing is twice, nothing is left over.
func (w *world) mustSettle(within time.Duration, instances ...*process) {
	w.t.Helper()
	begun := time.Now()
	await(w.t, "all is moved, dropped and deleted after the fault", within, w.done)
	w.t.Logf("settled after %s", time.Since(begun).Round(10*time.Millisecond))
	for _, p := range instances {
		await(w.t, "ready again", 15*time.Second, p.ready(true))
		p.mustLive("afterwards")
		p.mustStop()
	}
	w.judge(true)
}

// judge lets the checker look.
func (w *world) judge(settled bool) {
	w.t.Helper()
	place := loader.Place{Redis: w.redis, Layout: w.layout, Parts: w.parts, Root: w.root()}
	found, err := place.Load(w.t.Context(), w.acks)
	if err != nil {
		w.t.Fatal(err)
	}
	rules := checker.Rules{Settled: settled, Owner: s3sink.MarkerKey, May: func(a checker.Ack) string {
		if strings.HasPrefix(a.Partition, expires+":") {
			return "expired"
		}
		return ""
	}}
	for _, f := range checker.Check(found, w.acks, rules) {
		w.t.Error(f)
	}
}

// mustStop ends an instance as an orchestrator does.
func (p *process) mustStop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code, took := p.wait(20 * time.Second); code != 0 {
		p.t.Errorf("exit %d after %s", code, took)
	}
}
