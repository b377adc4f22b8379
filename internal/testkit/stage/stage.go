package stage

import (
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// Stage is one Redis, one store, and what producers were told.
type Stage struct {
	Redis  *redisserver.Server
	Conn   *Conn
	Layout segment.Layout
	Root   string   // the folder of the objects
	Env    []string // what workers get beside the environment, the addresses and each one's own
	Acks   []checker.Ack
	Pad    int // bytes that each message has more, and that don't compress

	t       testing.TB
	program string
	dir     string
	sent    map[string]bool // sums of messages of which nobody knows what became of them
	number  int             // of the last message
	ahead   time.Duration   // of the clock that workers see
}

// New sets a stage for a program that was built with faultpoints.
func New(t testing.TB, program string, options ...redisserver.Option) *Stage {
	t.Helper()
	s := &Stage{t: t, program: program, dir: t.TempDir(), Redis: redisserver.Start(t, options...), Layout: segment.DefaultLayout(), sent: map[string]bool{}}
	s.Root = filepath.Join(s.dir, "objects")
	s.Conn = NewConn(s.Redis.Socket)
	t.Cleanup(s.Conn.Close)
	s.Env = []string{
		"KORVET_STORAGE_REMOTE_PATH=file://" + s.Root,
		"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=",
		"KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false", // other tests keep the CPUs busy
		"KORVET_STORAGE_OFFLOAD_SPOOL_DIR=" + s.dir,
		"KORVET_FAULT_CLOCK=" + s.File("clock"),
		"KORVET_FAULT_FAIL=" + s.File("failures"),
	}
	return s
}

// File is the name of a file of the stage's own.
func (s *Stage) File(name string) string { return filepath.Join(s.dir, name) }

// Write puts a text into a file of the stage's own, in one step.
func (s *Stage) Write(name, text string) {
	s.t.Helper()
	tmp := s.File(name + ".new")
	if err := os.WriteFile(tmp, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(tmp, s.File(name)); err != nil {
		s.t.Fatal(err)
	}
}

// Ahead moves the clock that workers see, forward or back.
func (s *Stage) Ahead(by time.Duration) {
	s.t.Helper()
	s.ahead += by
	s.Write("clock", strconv.FormatInt(s.ahead.Milliseconds(), 10))
}

// Fail has one in n of the workers' calls fail; 0 = none.
func (s *Stage) Fail(n int, seed uint64) {
	s.t.Helper()
	text := ""
	if n > 0 {
		text = fmt.Sprintf("%d:%d", n, seed)
	}
	s.Write("failures", text)
}

// Start starts the program in the background; it ends with the stage.
func (s *Stage) Start(env []string, args ...string) *Process {
	s.t.Helper()
	all := append(append(os.Environ(), "KORVET_REDIS_URI="+s.Redis.URI()), s.Env...)
	p, err := launch(s.program, append(all, env...), args...)
	if err != nil {
		s.t.Fatalf("start %s: %v", s.program, err)
	}
	s.t.Cleanup(p.Kill)
	return p
}

// passTime is how long one pass may take on a busy machine.
const passTime = time.Minute

// Once makes one pass and returns when the program has ended.
func (s *Stage) Once(env ...string) *Process {
	s.t.Helper()
	p := s.Start(env, "run", "--once", "--output", "json")
	if !p.Wait(passTime) {
		s.t.Fatalf("a pass does not end within %s; its log:\n%s", passTime, p.Log())
	}
	return p
}

// Do sends a command that has to work.
func (s *Stage) Do(args ...string) any {
	s.t.Helper()
	reply, err := s.Conn.Do(args...)
	if err != nil {
		s.t.Fatal(err)
	}
	return reply
}

// FreeLease lets the lease of a worker that is dead lapse at once.
func (s *Stage) FreeLease() { s.Do("DEL", s.Layout.LeaseKey()) }

// Topic registers a topic that is offloaded, or changes its settings.
func (s *Stage) Topic(name string, settings ...string) {
	s.t.Helper()
	s.Do(append([]string{"HSET", s.Layout.TopicKey(name), "remote.storage.enable", "true"}, settings...)...)
	s.Do("SADD", s.Layout.TopicsKey(), name)
}

// Unregister takes a topic out of the registry.
func (s *Stage) Unregister(name string) {
	s.t.Helper()
	s.Do("SREM", s.Layout.TopicsKey(), name)
	s.Do("DEL", s.Layout.TopicKey(name))
}

// Manifest reads a manifest.
func (s *Stage) Manifest(p segment.Partition) map[string]string {
	s.t.Helper()
	flat := s.Do("HGETALL", s.Layout.ManifestKey(p)).([]any)
	m := map[string]string{}
	for i := 0; i+1 < len(flat); i += 2 {
		m[flat[i].(string)] = flat[i+1].(string)
	}
	return m
}

// Entry is one entry of a manifest; the zero Entry where there is none.
func (s *Stage) Entry(p segment.Partition, n segment.Number) segment.Entry {
	s.t.Helper()
	raw, there := s.Do("HGET", s.Layout.ManifestKey(p), n.String()).(string)
	if !there {
		return segment.Entry{}
	}
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil {
		s.t.Fatalf("entry %s/%s: %v in %s", p, n, err, raw)
	}
	return e
}

// messageFields makes the next message: no two are alike.
func (s *Stage) messageFields() []string {
	s.number++
	pad := make([]byte, s.Pad)
	_, _ = rand.Read(pad) // never fails
	return []string{"key", strconv.Itoa(s.number % 7), "value", fmt.Sprintf("message %d of process %d", s.number, os.Getpid()), "pad", string(pad)}
}

// Append appends messages with ids of the server's choice to a stream, all in
// one go, and notes which were acknowledged. An error says that some were not;
// what became of those nobody knows.
func (s *Stage) Append(p segment.Partition, key string, n int) error {
	var commands [][]string
	var sums []string
	for range n {
		fields := s.messageFields()
		commands = append(commands, append([]string{"XADD", key, "*"}, fields...))
		sums = append(sums, sumOf(fields))
	}
	replies, err := s.Conn.Pipe(commands)
	for i, sum := range sums {
		if i >= len(replies) {
			s.sent[sum] = true
			continue
		}
		switch r := replies[i].(type) {
		case string:
			s.Acks = append(s.Acks, checker.Ack{Partition: p.String(), Key: key, ID: r, Sum: sum})
		case redisserver.ReplyError:
			err = fmt.Errorf("append to %s: %w", key, r)
		}
	}
	return err
}

// MustAppend is Append to a server that has to take it.
func (s *Stage) MustAppend(p segment.Partition, key string, n int) {
	s.t.Helper()
	if err := s.Append(p, key, n); err != nil {
		s.t.Fatal(err)
	}
}

// Sent says whether a message may be there although nobody acknowledged it.
func (s *Stage) Sent(_, _, sum string) bool { return s.sent[sum] }
