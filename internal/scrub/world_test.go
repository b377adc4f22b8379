package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a real Redis with a real worker and a real store.
type world struct {
	t      *testing.T
	server *redisserver.Server
	redis  *redisstore.Store
	store  storeAdapter
	dir    string           // where the objects are files
	s3     *s3server.Server // nil = the store is a folder
	worker *offload.Worker
	next   int64 // of the ids
}

// storeAdapter lets worker and scrubber use a store of s3sink, as the command
// line does.
type storeAdapter struct{ s3sink.Store }

func adapt(err error) error {
	switch {
	case s3sink.ClassOf(err) == s3sink.ClassExists:
		return fmt.Errorf("%w: %w", offload.ErrObjectExists, err)
	case s3sink.ClassOf(err) == s3sink.ClassMissing:
		return fmt.Errorf("%w: %w", offload.ErrObjectMissing, err)
	}
	return err
}

func info(i s3sink.Info) offload.ObjectInfo {
	return offload.ObjectInfo{Size: i.Size, ETag: i.ETag, SHA256: i.SHA256, Meta: i.Meta}
}

func (s storeAdapter) Put(ctx context.Context, u offload.Upload) (offload.ObjectInfo, error) {
	i, err := s.Store.Put(ctx, s3sink.Upload{Key: u.Path, Body: u.Body, Size: u.Size, SHA256: u.SHA256, Meta: u.Meta})
	return info(i), adapt(err)
}

func (s storeAdapter) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	i, err := s.Store.Stat(ctx, path)
	return info(i), adapt(err)
}

func (s storeAdapter) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := s.Store.Open(ctx, path)
	return body, adapt(err)
}

func (s storeAdapter) Owner(ctx context.Context) error {
	switch err := s.CheckOwner(ctx); {
	case s3sink.ClassOf(err) == s3sink.ClassInvalid:
		return fmt.Errorf("%w: %w", ErrForeign, err)
	case err != nil:
		return err
	}
	if _, err := s.Store.Open(ctx, s3sink.MarkerKey); s3sink.ClassOf(err) == s3sink.ClassMissing {
		return ErrNoOwner
	}
	return nil
}

type encoding struct{}

func (encoding) NewEncoder(w io.Writer, of offload.FileOf) offload.Encoder {
	return parquetfile.NewWriter(w, parquetfile.FileID(of))
}

func (encoding) Check(r io.ReaderAt, size int64, of offload.FileOf) (segment.Contents, error) {
	return parquetfile.Check(r, size, parquetfile.FileID(of))
}

type quiet struct{}

func (quiet) Planned(offload.Plan)     {}
func (quiet) Advanced(int, int)        {}
func (quiet) Finished(offload.Outcome) {}
func (quiet) Failed(offload.Problem)   {}

// workerConfig rolls and deletes at once.
func workerConfig(t *testing.T) offload.Config {
	cfg := offload.DefaultConfig()
	cfg.SealGrace, cfg.DeleteGrace, cfg.SpoolDir, cfg.Concurrency = 0, 0, t.TempDir(), 2
	return cfg
}

func newWorld(t *testing.T, s3 bool) *world {
	t.Helper()
	w := &world{t: t, server: redisserver.Start(t), dir: t.TempDir(), next: time.Now().Add(-time.Hour).UnixMilli()}
	cfg := s3sink.Config{URL: "file://" + w.dir}
	if s3 {
		srv := s3server.Start(t, s3server.Options{})
		w.dir, w.s3 = srv.Dir, srv
		cfg = s3sink.Config{URL: "s3://" + srv.Bucket, Endpoint: srv.Endpoint, Region: srv.Region, PathStyle: new(true), AccessKeyID: srv.Access, SecretAccessKey: srv.Secret}
	}
	store, err := s3sink.Open(cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	w.store = storeAdapter{store}
	w.redis, err = redisstore.Open(t.Context(), redisstore.Config{URI: w.server.URI(), Layout: segment.DefaultLayout(), Timeout: 10 * time.Second},
		nil, []segment.StreamPattern{{Key: "events", Settings: map[string]string{"segment-entries": "5"}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.redis.Close)
	w.worker = offload.New(workerConfig(t), segment.DefaultLayout(), offload.Ports{Registry: w.redis, Known: w.redis, Manifests: w.redis, Streams: w.redis,
		Removals: w.redis, Clock: w.redis, Encoding: encoding{}, Store: w.store}, quiet{})
	return w
}

// topic registers a topic of one partition.
func (w *world) topic(name string, settings ...string) segment.Partition {
	w.server.Exec(append([]string{"HSET", "korvet:topic:" + name, "remote.storage.enable", "true", "retention.ms", "-1", "segment.ms", "1"}, settings...)...)
	w.server.Exec("SADD", "korvet:topics", name)
	return segment.Partition{Topic: name}
}

func key(p segment.Partition, n int) string {
	return segment.DefaultLayout().SegmentKey(p, segment.Number(n)) //nolint:gosec // small
}

func path(p segment.Partition, n int) string {
	return segment.ObjectPath(segment.DefaultLayout().Folder(p), segment.Number(n), 0, "") //nolint:gosec // small
}

func manifestKey(p segment.Partition) string { return segment.DefaultLayout().ManifestKey(p) }

// add appends messages to a stream, with ids that only ever grow.
func (w *world) add(stream string, messages int) {
	var all []byte
	for range messages {
		w.next++
		all = redisserver.AppendCommand(all, "XADD", stream, fmt.Sprintf("%d-0", w.next), "value", fmt.Sprintf("message %d", w.next), "key", "k")
	}
	w.server.Pipe(all)
}

// fill writes segments of ten messages each, and opens the one behind them.
func (w *world) fill(p segment.Partition, segments int) {
	for range segments {
		w.pass() // opens the next
		open := 0
		for n, e := range w.entries(p) {
			if e.State == segment.Open {
				open = n
			}
		}
		w.add(key(p, open), 10)
		w.next += 1000
	}
	w.pass()
	w.pass()
	w.pass()
}

func (w *world) pass() {
	w.t.Helper()
	if _, err := w.worker.RunOnce(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) entries(p segment.Partition) map[int]segment.Entry {
	w.t.Helper()
	all := map[int]segment.Entry{}
	if _, err := w.redis.Each(w.t.Context(), p, func(field, value string) {
		var n int
		_, _ = fmt.Sscan(field, &n)
		all[n], _ = segment.ParseEntry([]byte(value))
	}); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// change rewrites an entry.
func (w *world) change(p segment.Partition, n int, change func(*segment.Entry)) {
	w.t.Helper()
	e := w.entries(p)[n]
	change(&e)
	w.server.Exec("HSET", manifestKey(p), fmt.Sprint(n), string(e.Encode()))
}

func (w *world) file(path string) string { return filepath.Join(w.dir, filepath.FromSlash(path)) }

func (w *world) read(path string) []byte {
	w.t.Helper()
	b, err := os.ReadFile(w.file(path))
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

func (w *world) write(path string, b []byte) {
	w.t.Helper()
	if w.s3 != nil {
		w.s3.Put(w.t, path, b)
		return
	}
	if err := os.MkdirAll(filepath.Dir(w.file(path)), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(w.file(path), b, 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(path string) {
	w.t.Helper()
	if err := os.Remove(w.file(path)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) ports() Ports {
	return Ports{Registry: w.redis, Known: w.redis, Manifests: w.redis, Streams: w.redis, Clock: w.redis, Store: w.store}
}

// said is what a scrub found, one line each: kind, place, path.
type said struct{ findings, notes []string }

func line(f Finding) string {
	place := f.Partition.String()
	if f.HasSegment {
		place += "/" + f.Segment.String()
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Kind, place, f.Path))
}

func (w *world) scrub(o Options) (said, Report) {
	w.t.Helper()
	s, r, err := w.tryScrub(w.ports(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	return s, r
}

func (w *world) tryScrub(ports Ports, o Options) (s said, r Report, err error) {
	w.t.Helper()
	o.SpoolDir = w.t.TempDir()
	if o.Again == 0 {
		o.Again = -1
	}
	var all []Finding
	r, err = New(ports, segment.DefaultLayout(), o).Run(w.t.Context(), func(f Finding) { all = append(all, f) })
	for _, f := range all {
		if f.Note {
			s.notes = append(s.notes, line(f))
		} else {
			s.findings = append(s.findings, line(f))
		}
		if f.Detail == "" || strings.Contains(f.Detail, "\n") {
			w.t.Errorf("detail of %s: %q", line(f), f.Detail)
		}
	}
	slices.Sort(s.findings)
	slices.Sort(s.notes)
	if files, _ := os.ReadDir(o.SpoolDir); len(files) > 0 {
		w.t.Errorf("spool files are left: %v", files)
	}
	return s, r, err
}

func (w *world) want(what string, got []string, want ...string) {
	w.t.Helper()
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.t.Errorf("%s:\n  %s\nwant\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

var errInjected = errors.New("injected")
