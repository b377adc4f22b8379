package repair

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// perSegment is how many messages a segment of the rig has.
const perSegment = 5

// rig is a real Redis and a folder as store, a worker between them, and what was
// written.
type rig struct {
	t      *testing.T
	server *redisserver.Server
	dir    string
	redis  *redisstore.Store
	store  s3sink.Store
	worker *offload.Worker
	layout segment.Layout
	part   segment.Partition
	ledger map[segment.Number]map[segment.ID]sum
	ports  Ports
	spool  string
}

func newRig(t *testing.T, server ...*redisserver.Server) *rig {
	t.Helper()
	return newRigOn(t, s3sink.Config{}, segment.Partition{Topic: "orders"}, server...)
}

// newRigOn is a rig with a store, a folder if nothing is said, and the Redis that
// is given, which is emptied.
func newRigOn(t *testing.T, cfg s3sink.Config, p segment.Partition, server ...*redisserver.Server) *rig {
	t.Helper()
	if len(server) == 0 {
		server = append(server, redisserver.Start(t))
	}
	server[0].Exec("FLUSHALL")
	r := &rig{t: t, server: server[0], layout: segment.DefaultLayout(), part: p,
		ledger: map[segment.Number]map[segment.ID]sum{}, spool: t.TempDir()}
	if cfg.URL == "" {
		r.dir = t.TempDir()
		cfg.URL = "file://" + r.dir
	}
	var patterns []segment.StreamPattern
	if p.Plain {
		patterns = []segment.StreamPattern{{Key: p.Topic}}
	}
	r.connect(cfg, patterns)
	return r
}

func (r *rig) connect(cfg s3sink.Config, patterns []segment.StreamPattern) {
	r.t.Helper()
	var err error
	if r.redis, err = redisstore.Open(r.t.Context(), redisstore.Config{URI: r.server.URI(), Layout: r.layout}, nil, patterns); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.redis.Close)
	if r.store, err = s3sink.Open(cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}}); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(r.store.Close)
	r.worker = r.newWorker()
	r.ports = Ports{Manifests: redisPorts{r.redis}, Streams: r.redis, Removals: r.redis, Clock: r.redis, Store: storePorts{r.store}, Copier: r.worker}
	if !r.part.Plain {
		r.server.Exec("SADD", "korvet:topics", r.part.Topic)
		r.server.Exec("HSET", "korvet:topic:"+r.part.Topic, "remote.storage.enable", "true", "retention.ms", "-1", "partitions", "1")
	}
}

func (r *rig) newWorker() *offload.Worker {
	cfg := offload.DefaultConfig()
	cfg.SealGrace, cfg.SpoolDir = 0, r.spool
	return offload.New(cfg, r.layout, offload.Ports{
		Registry: r.redis, Known: r.redis, Manifests: r.redis, Streams: r.redis, Removals: r.redis, Clock: r.redis,
		Encoding: encoding{}, Store: storePorts{r.store},
	}, quiet{})
}

// write makes sealed segments from 0 on, each with its stream, and an OPEN one
// behind them.
func (r *rig) write(sealed int) {
	r.t.Helper()
	var b []byte
	for n := range segment.Number(sealed + 1) {
		key := r.key(n)
		for i := range perSegment {
			b = redisserver.AppendCommand(b, "XADD", key, idOf(n, i).String(), "value", fmt.Sprintf("message %d of %s", i, n), "value", "twice")
		}
		e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: perSegment, FirstID: idOf(n, 0), LastID: idOf(n, perSegment-1), OpenedAt: 1, SealedAt: 1}
		if n == segment.Number(sealed) {
			e = segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: time.Now().UnixMilli()}
		}
		b = redisserver.AppendCommand(b, "HSET", r.manifest(), n.String(), string(e.Encode()))
	}
	r.server.Pipe(b)
	for n := range segment.Number(sealed) {
		r.ledger[n] = r.streamSums(n)
		if len(r.ledger[n]) != perSegment {
			r.t.Fatalf("segment %s has %d messages", n, len(r.ledger[n]))
		}
	}
}

func idOf(n segment.Number, i int) segment.ID {
	return segment.ID{Ms: 1_700_000_000_000 + 10_000*uint64(n) + uint64(i)}
}

func (r *rig) key(n segment.Number) string { return r.layout.SegmentKey(r.part, n) }

func (r *rig) manifest() string { return r.layout.ManifestKey(r.part) }

func (r *rig) path(n segment.Number, copy int64) string {
	return segment.ObjectPath(r.layout.Folder(r.part), n, copy, "")
}

// move has the worker make a pass.
func (r *rig) move() offload.Report {
	r.t.Helper()
	report, err := r.worker.RunOnce(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

// moved is a rig of so many segments that are REMOTE; gone: without their
// streams.
func moved(t *testing.T, sealed int, gone bool, server ...*redisserver.Server) *rig {
	t.Helper()
	r := newRig(t, server...)
	r.write(sealed)
	r.move()
	if gone {
		r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "1")
		r.move()
		r.server.Exec("HDEL", "korvet:topic:orders", "local.retention.ms")
	}
	for n := range segment.Number(sealed) {
		want := segment.Present
		if gone {
			want = segment.Gone
		}
		if e := r.entry(n); e.Tier != segment.Remote || e.Local != want {
			t.Fatalf("segment %s is %s", n, e.Encode())
		}
	}
	return r
}

func (r *rig) raw(n segment.Number) string { return r.server.Exec("HGET", r.manifest(), n.String()) }

func (r *rig) entry(n segment.Number) segment.Entry {
	r.t.Helper()
	e, err := segment.ParseEntry([]byte(r.raw(n)))
	if err != nil {
		r.t.Fatalf("entry %s: %v", n, err)
	}
	return e
}

// set writes an entry as somebody else would.
func (r *rig) set(n segment.Number, change func(*segment.Entry)) {
	r.t.Helper()
	e := r.entry(n)
	change(&e)
	r.server.Exec("HSET", r.manifest(), n.String(), string(e.Encode()))
}

// streamSums reads a stream as it is.
func (r *rig) streamSums(n segment.Number) map[segment.ID]sum {
	r.t.Helper()
	h, err := hold(context.WithoutCancel(r.t.Context()), r.redis, r.key(n), segment.Entry{})
	if err != nil {
		r.t.Fatal(err)
	}
	return h.sums
}

// objectSums reads an object; nil if it is no whole file of the segment.
func (r *rig) objectSums(n segment.Number, path string) map[segment.ID]sum {
	r.t.Helper()
	ctx := context.WithoutCancel(r.t.Context())
	body, err := r.store.Open(ctx, path)
	if errors.Is(err, s3sink.ErrMissing) {
		return nil
	}
	if err != nil {
		r.t.Fatal(err)
	}
	defer body.Close()
	all, err := io.ReadAll(body)
	if err != nil {
		r.t.Fatal(err)
	}
	sums := map[segment.ID]sum{}
	file, err := parquetfile.Open(strings.NewReader(string(all)), int64(len(all)))
	if err != nil || file.Meta().Segment != n || file.Meta().StreamKey != r.layout.StreamKey(r.part) {
		return nil
	}
	err = file.Read(ctx, func(p *segment.Page) error {
		for i := range p.Len() {
			sums[p.ID(i)] = sumOf(p, i)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return sums
}

// readable is what a reader finds of a segment, where its entry says that it is.
func (r *rig) readable(n segment.Number) map[segment.ID]sum {
	r.t.Helper()
	e := r.entry(n)
	switch {
	case e.State == segment.Deleting:
		return nil
	case e.Tier == segment.Local:
		return r.streamSums(n)
	}
	return r.objectSums(n, e.Object.Path)
}

// wantReadable fails unless readers find all that was written of the segments.
func (r *rig) wantReadable(numbers ...segment.Number) {
	r.t.Helper()
	for _, n := range numbers {
		if !maps.Equal(r.readable(n), r.ledger[n]) {
			r.t.Errorf("segment %s: readers do not find what was written; it is %s", n, r.raw(n))
		}
	}
}

// files are all objects with their bytes.
func (r *rig) files() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		body, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, r.dir+"/")] = string(body)
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// wantKept fails if an object has gone or has other bytes.
func (r *rig) wantKept(before map[string]string) {
	r.t.Helper()
	now := r.files()
	for path, body := range before {
		if is, there := now[path]; !there || is != body {
			r.t.Errorf("object %s was deleted or overwritten", path)
		}
	}
}

// damage rewrites an object.
func (r *rig) damage(path string, how func([]byte) []byte) {
	r.t.Helper()
	file := filepath.Join(r.dir, path)
	body, err := os.ReadFile(file)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, how(body), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) lose(path string) {
	r.t.Helper()
	if err := os.Remove(filepath.Join(r.dir, path)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) copyObject(from, to string) {
	r.t.Helper()
	body, err := os.ReadFile(filepath.Join(r.dir, from))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, to), body, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// flipped has one bit turned in the middle.
func flipped(b []byte) []byte {
	b[len(b)/3] ^= 1
	return b
}

func halved(b []byte) []byte { return b[:len(b)/2] }

// finding is one by hand.
func (r *rig) finding(n segment.Number, kind scrub.Kind) scrub.Finding {
	return scrub.Finding{Kind: kind, Partition: r.part, Segment: n, HasSegment: true, Detail: "made by hand"}
}

// repair repairs what was found, and returns the steps.
func (r *rig) repair(o Options, findings ...scrub.Finding) []Step {
	r.t.Helper()
	steps, err := r.try(r.ports, o, findings...)
	if err != nil {
		r.t.Fatal(err)
	}
	return steps
}

func (r *rig) try(ports Ports, o Options, findings ...scrub.Finding) (steps []Step, err error) {
	o.SpoolDir = r.spool
	_, err = New(ports, r.layout, o).Run(r.t.Context(), findings, func(s Step) { steps = append(steps, s) })
	return steps, err
}

// want fails unless the one step is that.
func (r *rig) want(steps []Step, d Deed, result Result) Step {
	r.t.Helper()
	if len(steps) != 1 || steps[0].Deed != d || steps[0].Result != result {
		r.t.Fatalf("want %s %s, got %s", d, result, say(steps))
	}
	return steps[0]
}

func say(steps []Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s/%s %s %s (%s; %v)", s.Partition, s.Segment, s.Deed, s.Result, s.Why, s.Err))
	}
	return strings.Join(all, "\n")
}

// wantUntouched fails if Redis has changed since before was read.
func (r *rig) wantUntouched(before string) {
	r.t.Helper()
	if now := r.dump(); now != before {
		r.t.Errorf("redis was changed from\n%s\nto\n%s", before, now)
	}
}

// dump is all that Redis holds of manifests and streams.
func (r *rig) dump() string {
	r.t.Helper()
	return r.server.Exec("EVAL", `local keys, all = redis.call('KEYS', 'korvet:storage:*'), ''
table.sort(keys)
for _, k in ipairs(keys) do all = all .. k .. ' ' .. redis.sha1hex(redis.call('DUMP', k)) .. '\n' end
return all`, "0")
}
