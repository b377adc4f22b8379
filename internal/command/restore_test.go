package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

const (
	manifestKey = "korvet:storage:manifest:orders:0"
	streamKey   = "korvet:storage:local:orders:0"
	restoredKey = "restored:" + streamKey
	rootKey     = "korvet:storage:offload:cluster"
)

// lossRig is a rig with messages of every kind, of which all that is sealed is on
// the store and no longer in Redis. ledger is what XRANGE had said of each stream,
// byte for byte.
type lossRig struct {
	rig
	root   string
	ledger map[string]string // by segment
}

// newLossRig makes segments of the kinds that matter: 0 and 1 small, 2 with odd
// entries, 3 with many.
func newLossRig(t *testing.T) *lossRig {
	t.Helper()
	r := &lossRig{rig: newRig(t), ledger: map[string]string{}}
	_, r.root, _ = strings.Cut(r.environ[1], "file://")
	s := r.server
	s.Exec("DEL", streamKey+":0", streamKey+":1", streamKey+":2")
	ms := 1_700_000_000_000
	add := func(segment string, fields ...string) {
		ms++
		s.Pipe(redisserver.AppendCommand(nil, append([]string{"XADD", streamKey + ":" + segment, fmt.Sprintf("%d-%d", ms, ms%3)}, fields...)...))
	}
	for i := range 20 {
		add(fmt.Sprint(i/10), "value", fmt.Sprint(i), "key", "k")
	}
	add("2", "b", "1", "a", "2", "b", "1", "b", "3")
	add("2", "", "", "x", "", "", "y")
	add("2", "value", "a\r\nb\x01 \\ \" \xff\xfe")
	add("2", "large", strings.Repeat("0123456789abcdef", 100_000))
	var wide []string
	for i := range 5000 {
		wide = append(wide, fmt.Sprintf("name-%d", i%4000), fmt.Sprint(i))
	}
	add("2", wide...)
	add("2", "end", "of 2")
	s.Exec("XDEL", streamKey+":2", fmt.Sprintf("%d-%d", ms, ms%3)) // the last one generated is not the last one there
	var cmds []byte
	for i := range 2500 {
		cmds = redisserver.AppendCommand(cmds, "XADD", streamKey+":3", fmt.Sprintf("%d-%d", ms+1+i/7, i%7), "value", fmt.Sprintf("%0120d", i), "key", fmt.Sprint(i))
	}
	s.Pipe(cmds)
	for n := range 4 {
		s.Exec("HSET", manifestKey, fmt.Sprint(n), `{"v":1,"state":"SEALED","tier":"LOCAL","sealedAt":1}`)
	}
	s.Exec("HSET", manifestKey, "4", `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
	for n := range 4 {
		r.ledger[fmt.Sprint(n)] = r.read(fmt.Sprintf("%s:%d", streamKey, n))
	}
	s.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "0")
	for range 3 {
		mustCall(t, r.environ, exitDone, "run", "--once")
	}
	if got := s.Exec("EXISTS", streamKey+":0", streamKey+":1", streamKey+":2", streamKey+":3"); got != "0" {
		t.Fatalf("%s streams are still there", got)
	}
	s.Exec("HDEL", "korvet:topic:orders", "local.retention.ms")
	return r
}

// read is what XRANGE says of a stream.
func (r *lossRig) read(key string) string { return r.server.Exec("XRANGE", key, "-", "+") }

// all is the ledger of some segments.
func (r *lossRig) all(segments ...string) string {
	var text []string
	for _, n := range segments {
		text = append(text, r.ledger[n])
	}
	return strings.Join(text, "\n")
}

func (r *lossRig) mustHold(t *testing.T, key, want string) {
	t.Helper()
	if got := r.read(key); got != want {
		t.Errorf("stream %s: %d bytes that are not the %d of the ledger: %.300q", key, len(got), len(want), got)
	}
}

// object is the file of a segment.
func (r *lossRig) object(name string) string {
	return filepath.Join(r.root, streamKey, name+".parquet")
}

// dump is all that Redis holds, but for what changes by itself.
func (r *lossRig) dump() string {
	var text strings.Builder
	for _, key := range strings.Fields(r.server.Exec("KEYS", "*")) {
		switch r.server.Exec("TYPE", key) {
		case "stream":
			fmt.Fprintln(&text, key, r.server.Exec("XINFO", "STREAM", key, "FULL"))
		case "hash":
			fmt.Fprintln(&text, key, r.server.Exec("HGETALL", key))
		default:
			fmt.Fprintln(&text, key)
		}
	}
	return text.String()
}

// Redis loses everything; then everything that was on the store is found again, and
// a topic is brought back, byte for byte.
//
//fault:redis | Redis has lost all its data, and the bucket is there | FLUSHALL at a real server, then restore --manifests and restore | the entries are what they were, the streams hold the messages of the ledger byte for byte, and the worker goes on
func TestAfterALossOfRedis(t *testing.T) {
	r := newLossRig(t)
	before := map[string]string{}
	for n := range 4 {
		before[fmt.Sprint(n)] = objectOf(t, r.server.Exec("HGET", manifestKey, fmt.Sprint(n)))
	}
	r.server.Exec("FLUSHALL")

	dry := mustCall(t, r.environ, exitDone, "restore", "--manifests")
	if !strings.Contains(dry.stdout, "1 manifest would be restored; --yes does it") || !strings.Contains(dry.stdout, "topic orders: it is in no registry") {
		t.Errorf("%s", dry.stdout)
	}
	if n := r.server.Exec("DBSIZE"); n != "0" {
		t.Fatalf("a dry run has written %s keys", n)
	}
	done := mustCall(t, r.environ, exitDone, "restore", "--manifests", "--registry", "--yes")
	if !strings.Contains(done.stdout, "1 manifest restored") || !strings.Contains(done.stdout, "topic orders is registered with 1 partition") {
		t.Errorf("%s", done.stdout)
	}
	for n, object := range before {
		if got := objectOf(t, r.server.Exec("HGET", manifestKey, n)); got != object {
			t.Errorf("entry %s tells of %s, want %s", n, got, object)
		}
	}
	if got := r.server.Exec("HGET", manifestKey, "4"); !strings.Contains(got, `"state":"OPEN"`) {
		t.Errorf("entry 4 = %s", got)
	}
	again := mustCall(t, r.environ, exitDone, "restore", "--manifests", "--registry", "--yes")
	if !strings.Contains(again.stdout, "orders:0   there") || !strings.Contains(again.stdout, "0 manifests restored") {
		t.Errorf("%s", again.stdout)
	}

	was := r.dump()
	mustCall(t, r.environ, exitDone, "restore", "orders:0")
	if r.dump() != was {
		t.Error("a dry run has changed something")
	}
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--yes")
	r.mustHold(t, restoredKey, r.all("0", "1", "2", "3"))
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--original", "--yes")
	for n := range 4 {
		r.mustHold(t, fmt.Sprintf("%s:%d", streamKey, n), r.ledger[fmt.Sprint(n)])
	}
	// The worker takes the streams for what they are: it drops them again when that
	// is due, and nothing is copied again.
	r.server.Exec("XADD", streamKey+":4", "*", "f", "new")
	mustCall(t, r.environ, exitDone, "run", "--once")
	r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "0")
	mustCall(t, r.environ, exitDone, "run", "--once")
	if got := r.server.Exec("EXISTS", streamKey+":0", streamKey+":1", streamKey+":2", streamKey+":3"); got != "0" {
		t.Errorf("%s streams stay: %s", got, r.server.Exec("HGETALL", manifestKey))
	}
	if got := r.server.Exec("XLEN", streamKey+":4"); got != "1" {
		t.Errorf("the new message: %s", got)
	}
	if files, err := os.ReadDir(filepath.Join(r.root, streamKey)); err != nil || len(files) != 4 {
		t.Errorf("%v %v", files, err)
	}
}

// objectOf is what of an entry the store knows as well.
func objectOf(t *testing.T, raw string) string {
	t.Helper()
	var e map[string]json.RawMessage
	if err := json.Unmarshal([]byte(raw), &e); err != nil {
		t.Fatalf("%v in %q", err, raw)
	}
	var text bytes.Buffer
	for _, name := range []string{"state", "tier", "local", "copy", "firstId", "lastId", "count", "object"} {
		fmt.Fprintf(&text, "%s=%s ", name, e[name])
	}
	return text.String()
}
