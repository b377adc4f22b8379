package loader

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// scene is a world in real parts: a topic with a segment in each tier, and a
// plain stream whose first range has been trimmed.
type scene struct {
	Place
	t    *testing.T
	acks []checker.Ack
}

const (
	ordersKey = "korvet:storage:local:orders:0"
	inRedis   = 2500 // messages of an open segment: more than two pages
)

func newScene(t *testing.T, options ...redisserver.Option) *scene {
	s := &scene{t: t, Place: Place{Redis: redisserver.Start(t, options...), Layout: segment.DefaultLayout(), Root: t.TempDir()}}
	orders, events := segment.Partition{Topic: "orders"}, segment.Partition{Topic: "a/b", Plain: true}
	s.Parts = []segment.Partition{orders, events}
	s.entry(orders, "0", `"state":"SEALED","tier":"REMOTE","local":"GONE",`+s.put(orders, 0, ordersKey+":0", 1, 300))
	s.append(orders, ordersKey+":1", 1, inRedis)
	s.entry(orders, "1", `"state":"OPEN","tier":"LOCAL"`)
	s.entry(events, "0", `"state":"SEALED","tier":"REMOTE","local":"GONE","key":"a/b","from":"0-1","to":"5-0",`+s.put(events, 0, "a/b", 5, 1))
	s.append(events, "a/b", 6, 3)
	s.entry(events, "1", `"state":"OPEN","tier":"LOCAL","key":"a/b","from":"5-1"`)
	s.write("_korvet_offload.json", []byte("{}"))
	s.write(".hidden/7.parquet", []byte("being written"))
	return s
}

func (s *scene) entry(p segment.Partition, n, text string) {
	s.Redis.Exec("HSET", s.Layout.ManifestKey(p), n, `{"v":1,"rev":3,`+text+"}")
}

// entries are messages with ids from <ms>-0 on, with a field twice and with
// bytes that are no text, which are acknowledged.
func (s *scene) entries(p segment.Partition, key string, ms uint64, count int) (all []dataset.Entry) {
	for i := range count {
		number := []byte(strconv.Itoa(i))
		e := dataset.Entry{ID: segment.ID{Ms: ms, Seq: uint64(i)}, Fields: []dataset.Field{
			{Name: []byte("k"), Value: number}, {Name: []byte("k"), Value: []byte("\x00\xff\r\n$3\r\n")}}}
		all = append(all, e)
		s.acks = append(s.acks, Ack(p, key, e.ID, broker.SumOf("k", string(number), "k", "\x00\xff\r\n$3\r\n")))
	}
	return all
}

// append puts messages into a stream.
func (s *scene) append(p segment.Partition, key string, ms uint64, count int) {
	s.t.Helper()
	var cmds []byte
	for _, e := range s.entries(p, key, ms, count) {
		args := []string{"XADD", key, e.ID.String()}
		for _, f := range e.Fields {
			args = append(args, string(f.Name), string(f.Value))
		}
		cmds = redisserver.AppendCommand(cmds, args...)
	}
	s.Redis.Pipe(cmds)
}

// put makes a segment file and returns what an entry says of it.
func (s *scene) put(p segment.Partition, n segment.Number, key string, ms uint64, count int) string {
	s.t.Helper()
	var file bytes.Buffer
	w := parquetfile.NewWriter(&file, parquetfile.FileID{StreamKey: s.Layout.StreamKey(p), Segment: n})
	err := w.Write(dataset.Page(s.entries(p, key, ms, count)...))
	held, err2 := w.Close()
	if err := errors.Join(err, err2); err != nil {
		s.t.Fatal(err)
	}
	path := segment.ObjectPath(s.Layout.Folder(p), n, 0, "")
	s.write(path, file.Bytes())
	return fmt.Sprintf(`"firstId":"%s","lastId":"%s","count":%d,"object":{"path":%q,"bytes":%d,"etag":"","sha256":"%x"}`,
		held.FirstID, held.LastID, held.Count, path, file.Len(), sha256.Sum256(file.Bytes()))
}

// write writes a file below the root.
func (s *scene) write(path string, body []byte) {
	s.t.Helper()
	file := filepath.Join(s.Root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(file, body, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// findings loads the world and has it checked.
func (s *scene) findings() (checker.World, []checker.Finding) {
	s.t.Helper()
	w, err := s.Load(context.Background(), s.acks)
	if err != nil {
		s.t.Fatal(err)
	}
	return w, checker.Check(w, s.acks, checker.Rules{Settled: true, Owner: "_korvet_offload.json"})
}

func TestLoad(t *testing.T) {
	for name, options := range map[string][]redisserver.Option{
		"plain":         nil,
		"password":      {redisserver.Password("s3cret")},
		"cluster":       {redisserver.Cluster(true)},
		"a slow server": {redisserver.Args("--hz", "1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, options...)
			w, found := s.findings()
			if len(found) > 0 {
				t.Errorf("found %v", found)
			}
			if age := time.Since(time.UnixMilli(w.Now)); age < 0 || age > time.Minute {
				t.Errorf("the world is of %s ago", age)
			}
			if len(w.Streams) != 2 || len(w.Streams[ordersKey+":1"]) != inRedis || len(w.Objects) != 3 || len(w.Partitions[0].Manifest) != 2 {
				t.Errorf("%d streams, %d objects, %v", len(w.Streams), len(w.Objects), w.Partitions)
			}
			if o := w.Objects[ordersKey+"/0.parquet"]; len(o.Messages) != 300 || o.Bad != "" || o.Age < 0 || o.Age > time.Minute {
				t.Errorf("an object has %d messages, is %s old, and is bad: %s", len(o.Messages), o.Age, o.Bad)
			}
			parts, err := s.Manifests(context.Background())
			if err != nil || len(parts.Partitions) != 2 || parts.Partitions[1].Manifest["1"] != w.Partitions[1].Manifest["1"] {
				t.Errorf("the manifests alone are %v, %v", parts, err)
			}
		})
	}
}

// Keys that live on another node of a cluster are found there.
func TestLoadFromTwoNodes(t *testing.T) {
	a, b := redisserver.Start(t, redisserver.Cluster(false)), redisserver.Start(t, redisserver.Cluster(false))
	a.Exec("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	b.Exec("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	a.Exec("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(b.Port), strconv.Itoa(b.BusPort))
	a.AwaitCluster()
	b.AwaitCluster()
	nodes := map[bool]*redisserver.Server{false: a, true: b}
	var acks []checker.Ack
	p := segment.Partition{Topic: "orders"}
	for i := range 8 {
		key := fmt.Sprintf("%s:%d", ordersKey, i)
		slot, err := strconv.Atoi(a.Exec("CLUSTER", "KEYSLOT", key))
		if err != nil {
			t.Fatal(err)
		}
		nodes[slot >= 8192].Exec("XADD", key, "5-5", "k", "v")
		acks = append(acks, Ack(p, key, segment.ID{Ms: 5, Seq: 5}, broker.SumOf("k", "v")))
	}
	w, err := Place{Redis: a, Layout: segment.DefaultLayout(), Parts: []segment.Partition{p}}.Load(context.Background(), acks)
	if err != nil || len(w.Streams) != 8 {
		t.Errorf("%d streams, %v", len(w.Streams), err)
	}
	found := checker.Check(w, acks, checker.Rules{})
	for _, f := range found {
		if f.Kind != checker.Stray {
			t.Errorf("found %s", f)
		}
	}
	if len(found) != 8 {
		t.Errorf("%d findings", len(found))
	}
}

// What is broken in real parts is found.
func TestLoadShowsWhatIsBroken(t *testing.T) {
	object := ordersKey + "/0.parquet"
	for name, c := range map[string]struct {
		damage func(*scene)
		want   []checker.Kind
	}{
		"object removed":      {func(s *scene) { s.remove(object) }, []checker.Kind{checker.Lost, checker.Missing}},
		"object cut":          {func(s *scene) { s.write(object, s.body(object)[:900]) }, []checker.Kind{checker.Lost, checker.Wrong}},
		"a bit of it":         {func(s *scene) { b := s.body(object); b[700] ^= 1; s.write(object, b) }, []checker.Kind{checker.Lost, checker.Wrong}},
		"another's object":    {func(s *scene) { s.write(object, s.body("a%2Fb/0.parquet")) }, []checker.Kind{checker.Lost, checker.Wrong}},
		"an object too much":  {func(s *scene) { s.write(ordersKey+"/1-1.parquet", s.body(object)) }, []checker.Kind{checker.Orphan}},
		"a file too much":     {func(s *scene) { s.write("x", nil) }, []checker.Kind{checker.Orphan}},
		"stream removed":      {func(s *scene) { s.Redis.Exec("DEL", ordersKey+":1") }, []checker.Kind{checker.Lost, checker.StreamGone}},
		"a message deleted":   {func(s *scene) { s.Redis.Exec("XDEL", ordersKey+":1", "1-1700") }, []checker.Kind{checker.Lost}},
		"a message appended":  {func(s *scene) { s.Redis.Exec("XADD", ordersKey+":1", "*", "k", "v") }, []checker.Kind{checker.Invented}},
		"a message came back": {func(s *scene) { s.append(s.Parts[0], ordersKey+":0", 1, 1) }, []checker.Kind{checker.GoneButThere}},
		"a message too late":  {func(s *scene) { s.append(s.Parts[0], ordersKey+":0", 2, 1) }, []checker.Kind{checker.Stray}},
		"manifest removed":    {func(s *scene) { s.Redis.Exec("DEL", s.Layout.ManifestKey(s.Parts[0])) }, []checker.Kind{checker.Lost, checker.Orphan, checker.Stray}},
		"an entry not an entry": {func(s *scene) { s.Redis.Exec("HSET", s.Layout.ManifestKey(s.Parts[1]), "1", "x") },
			[]checker.Kind{checker.Illegal}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t)
			c.damage(s)
			_, found := s.findings()
			var kinds []checker.Kind
			for _, f := range found {
				kinds = append(kinds, f.Kind)
			}
			slices.Sort(kinds)
			if !slices.Equal(slices.Compact(kinds), c.want) {
				t.Errorf("found %v, want %v", found, c.want)
			}
		})
	}
}

func (s *scene) remove(path string) {
	if err := os.Remove(filepath.Join(s.Root, path)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scene) body(path string) []byte {
	body, err := os.ReadFile(filepath.Join(s.Root, path))
	if err != nil {
		s.t.Fatal(err)
	}
	return body
}

// A world that can't be read is an error that says what could not be.
func TestLoadFails(t *testing.T) {
	s := newScene(t)
	s.Redis.Exec("SET", ordersKey+":9", "no stream")
	s.acks = append(s.acks, checker.Ack{Key: ordersKey + ":9"})
	if _, err := s.Load(context.Background(), s.acks); err == nil || !strings.Contains(err.Error(), ordersKey+":9") {
		t.Errorf("a key of another type: %v", err)
	}
	s.Redis.Exec("DEL", s.Layout.ManifestKey(s.Parts[0]))
	s.Redis.Exec("SET", s.Layout.ManifestKey(s.Parts[0]), "no hash")
	if _, err := s.Load(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "manifest of orders") {
		t.Errorf("a manifest of another type: %v", err)
	}
	s.Redis.Stop()
	if _, err := s.Load(context.Background(), nil); err == nil || !strings.Contains(err.Error(), "connect to redis-server") {
		t.Errorf("no server: %v", err)
	}
}

// What the producers have written down becomes the ledger, deletions too.
func TestAcks(t *testing.T) {
	books := broker.NewLedger()
	if acks, deleted := Acks(books); acks == nil || len(acks) != 0 || len(deleted) != 0 {
		t.Errorf("of nothing: %v, %v", acks, deleted)
	}
	server := redisserver.Start(t)
	b, err := broker.Connect(server.Addr, segment.DefaultLayout())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	p := segment.Partition{Topic: "events", Plain: true}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := (&broker.Producer{Broker: b, Ledger: books, Partition: p, Batch: 3, Pace: 10 * time.Millisecond}).Run(ctx); err != nil {
		t.Fatal(err)
	}
	s := books.Sources()[0]
	for id := range books.Acks(s) {
		books.Deleted(s, id)
		break
	}
	acks, deleted := Acks(books)
	if len(acks) == 0 || len(acks) != books.Len() || len(deleted) != 1 {
		t.Errorf("%d acknowledged, %d deleted, of %d", len(acks), len(deleted), books.Len())
	}
	w, err := Place{Redis: server, Layout: segment.DefaultLayout()}.Load(context.Background(), acks)
	if err != nil || len(w.Streams["events"]) != len(acks) {
		t.Fatalf("%d messages, %v", len(w.Streams["events"]), err)
	}
	rules := checker.Rules{May: func(a checker.Ack) string {
		if deleted[a] {
			return "deleted"
		}
		return ""
	}}
	if found := checker.Check(w, acks, rules); len(found) != 1 || found[0].Kind != checker.Stray || len(found[0].IDs) != len(acks)-1 {
		t.Errorf("with no manifest: %v", found)
	}
}
