package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go/table"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/command"
	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// rig is a Redis with the topics orders, of two partitions, and payments, a place
// for the objects, and a catalog. Partitions have two sealed segments and an open one.
type rig struct {
	t         *testing.T
	server    *redisserver.Server
	environ   []string
	objects   string // folder in which the objects are files
	remote    string // remote path
	catalog   string // --catalog
	warehouse string // --warehouse
	written   map[string]broker.Segment
}

const perSegment = 20

// newRig is one of files, with a catalog in a file.
func newRig(t *testing.T) *rig {
	t.Helper()
	dir := t.TempDir()
	r := &rig{t: t, objects: filepath.Join(dir, "objects"), catalog: "sqlite://" + dir + "/catalog.db", warehouse: "file://" + dir + "/warehouse"}
	r.remote = "file://" + r.objects
	if err := os.Mkdir(r.objects, 0o755); err != nil {
		t.Fatal(err)
	}
	r.begin()
	return r
}

// begin starts Redis and fills it.
func (r *rig) begin() {
	r.t.Helper()
	r.server, r.written = redisserver.Start(r.t), map[string]broker.Segment{}
	r.environ = append(r.environ, "KORVET_REDIS_URI="+r.server.URI(), "KORVET_STORAGE_REMOTE_PATH="+r.remote)
	b, closed := r.broker()
	defer closed()
	for topic, partitions := range map[string]int{"orders": 2, "payments": 1} {
		if err := b.CreateTopic(r.t.Context(), topic, partitions); err != nil {
			r.t.Fatal(err)
		}
		for p := range partitions {
			for n := range segment.Number(3) {
				r.write(segment.Partition{Topic: topic, Number: p}, n, n == 2)
			}
		}
	}
}

func (r *rig) broker() (*broker.Broker, func()) {
	r.t.Helper()
	s, err := redisstore.Open(r.t.Context(), redisstore.Config{URI: r.server.URI()}, nil, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return broker.New(s.Client(), segment.DefaultLayout()), s.Close
}

// write writes a segment.
func (r *rig) write(p segment.Partition, n segment.Number, open bool) {
	r.t.Helper()
	b, closed := r.broker()
	defer closed()
	s := broker.Segment{Partition: p, Number: n, Seed: uint64(p.Number)*100 + uint64(n), Count: perSegment, ValueBytes: 50, Open: open, SealedAt: time.Now().Add(-time.Hour)}
	if err := b.Write(r.t.Context(), s, nil); err != nil {
		r.t.Fatal(err)
	}
	r.written[fmt.Sprintf("%s/%s", p, n)] = s
}

// pass copies what is sealed.
func (r *rig) pass() {
	r.t.Helper()
	var out bytes.Buffer
	code := command.Main(r.t.Context(), command.Process{Args: []string{"korvet-offload", "run", "--once"}, Environ: r.environ, Stdout: &out, Stderr: &out})
	if code != 0 {
		r.t.Fatalf("run --once: exit %d\n%s", code, out.String())
	}
}

// answer is what a run of the program left behind.
type answer struct {
	code           int
	stdout, stderr string
	jsonResult
}

// register runs the program.
func (r *rig) register(args ...string) answer {
	r.t.Helper()
	return r.call(append([]string{"register", "--catalog", r.catalog, "--warehouse", r.warehouse, "--output", "json"}, args...)...)
}

func (r *rig) call(args ...string) (a answer) {
	r.t.Helper()
	var stdout, stderr bytes.Buffer
	a.code = cmdline.Run(r.t.Context(), process{environ: r.environ, stdout: &stdout, stderr: &stderr}.app(), append([]string{program}, args...))
	a.stdout, a.stderr = stdout.String(), stderr.String()
	if strings.HasPrefix(a.stdout, "{") {
		if err := json.Unmarshal(stdout.Bytes(), &a.jsonResult); err != nil {
			r.t.Fatalf("%v in %s", err, a.stdout)
		}
	}
	return a
}

// want checks how many files were added, taken out, and left.
func (r *rig) want(a answer, code, added, removed, same int) {
	r.t.Helper()
	if a.code != code || len(a.Added) != added || len(a.Removed) != removed || a.Same != same {
		r.t.Errorf("exit %d, want %d; %d added, want %d; %d removed, want %d; %d unchanged, want %d\n%s%s",
			a.code, code, len(a.Added), added, len(a.Removed), removed, a.Same, same, a.stderr, a.stdout)
	}
}

// registration is one with the rig's settings, and the context for its table's files.
func (r *rig) registration(topic string) (context.Context, *registration) {
	r.t.Helper()
	cfg, err := config.Load(config.Input{Environ: r.environ, NeedStore: true})
	if err != nil {
		r.t.Fatal(err)
	}
	o := options{topic: topic, named: true, table: table.Identifier{"korvet", topic}, name: "korvet", warehouse: r.warehouse, token: variable(r.environ, tokenVariable)}
	if o.catalog, err = catalogURI(r.catalog); err != nil {
		r.t.Fatal(err)
	}
	ctx, err := withKeys(r.t.Context(), cfg.Store)
	if err != nil {
		r.t.Fatal(err)
	}
	is, closed, err := connect(ctx, o, cfg.Config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(closed)
	is.wait = func(ctx context.Context, _ int) error { return ctx.Err() }
	return ctx, is
}

// table loads the table of a topic as any reader does.
func (r *rig) table(topic string) (context.Context, *table.Table) {
	r.t.Helper()
	ctx, is := r.registration(topic)
	t, err := is.catalog.LoadTable(ctx, is.table)
	if err != nil {
		r.t.Fatal(err)
	}
	return ctx, t
}

// change changes the table as another program may.
func (r *rig) change(topic string, do func(ctx context.Context, tx *table.Transaction) error) {
	r.t.Helper()
	ctx, t := r.table(topic)
	tx := t.NewTransaction()
	if err := do(ctx, tx); err != nil {
		r.t.Fatal(err)
	}
	if _, err := tx.Commit(ctx); err != nil {
		r.t.Fatal(err)
	}
}

// rows are the messages that a reader of the table finds, sorted.
func (r *rig) rows(topic string) []string {
	r.t.Helper()
	ctx, t := r.table(topic)
	_, records, err := t.Scan().ToArrowRecords(ctx)
	if err != nil {
		r.t.Fatal(err)
	}
	rows := []string{}
	for record, err := range records {
		if err != nil {
			r.t.Fatal(err)
		}
		rows = append(rows, rowsOf(r.t, record)...)
		record.Release()
	}
	slices.Sort(rows)
	return rows
}

func rowsOf(t *testing.T, record arrow.RecordBatch) (rows []string) {
	t.Helper()
	ids, ok := record.Column(0).(*array.String)
	fields, isMap := record.Column(1).(*array.Map)
	if !ok || !isMap {
		t.Fatalf("columns are %T, %T", record.Column(0), record.Column(1))
	}
	keys, values := fields.Keys().(*array.String), fields.Items().(*array.Binary)
	for i := range int(record.NumRows()) {
		row := ids.Value(i)
		from, to := fields.ValueOffsets(i)
		for j := from; j < to; j++ {
			row += fmt.Sprintf(" %s=%q", keys.Value(int(j)), values.Value(int(j)))
		}
		rows = append(rows, row)
	}
	return rows
}

// messages are what was written to segments, as rows.
func (r *rig) messages(segments ...string) []string {
	r.t.Helper()
	rows := []string{}
	for _, name := range segments {
		s, ok := r.written[name]
		if !ok {
			r.t.Fatalf("segment %s was not written", name)
		}
		all := s.Messages()
		for range s.Count {
			m := all.Next()
			row, f := m.ID.String(), m.Fields()
			for i := 0; i < len(f); i += 2 {
				row += fmt.Sprintf(" %s=%q", f[i], f[i+1])
			}
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}

// wantRows checks that a table of orders holds these segments and nothing else.
func (r *rig) wantRows(segments ...string) {
	r.t.Helper()
	if got, want := r.rows("orders"), r.messages(segments...); !slices.Equal(got, want) {
		r.t.Errorf("%d rows, want the %d of %q; the first are\n%.200q\n%.200q", len(got), len(want), segments, got, want)
	}
}

// digests are those of everything below the remote path.
func (r *rig) digests() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(r.objects, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x", sha256.Sum256(text))
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return all
}

// untouched checks that everything below the remote path is as it was.
func (r *rig) untouched(before map[string]string) {
	r.t.Helper()
	if now := r.digests(); !maps.Equal(before, now) {
		r.t.Errorf("below the remote path there were\n%q, and now\n%q", slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(now)))
	}
}

const manifestOfOrders = "korvet:storage:manifest:orders:"

// edit replaces a part of a manifest entry.
func (r *rig) edit(partition, number int, pairs ...string) {
	r.t.Helper()
	key, field := fmt.Sprint(manifestOfOrders, partition), fmt.Sprint(number)
	was := r.server.Exec("HGET", key, field)
	is := strings.NewReplacer(pairs...).Replace(was)
	if is == was {
		r.t.Fatalf("%q is not in %s", pairs, was)
	}
	r.server.Exec("HSET", key, field, is)
}

// copyAgain gives a segment another copy, as a worker that copies it again does.
func (r *rig) copyAgain(partition, number int) {
	r.t.Helper()
	folder := fmt.Sprintf("korvet:storage:local:orders:%d", partition)
	old, next := fmt.Sprintf("%s/%d.parquet", folder, number), fmt.Sprintf("%s/%d-1.parquet", folder, number)
	text, err := os.ReadFile(filepath.Join(r.objects, old))
	if err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.objects, next), text, 0o600); err != nil {
		r.t.Fatal(err)
	}
	r.edit(partition, number, old, next)
}

// snapshots is how many the table has.
func (r *rig) snapshots(topic string) int {
	r.t.Helper()
	_, t := r.table(topic)
	return len(t.Metadata().Snapshots())
}
