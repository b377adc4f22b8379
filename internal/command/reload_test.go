package command

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/internal/ops"
	"korvet-offload/s3sink"
)

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !condition(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 20s", what)
		}
	}
}

// reloader is a daemon in this process that reads its settings from a file.
type reloader struct {
	*running
	file string
	asks chan os.Signal
}

// startReloading starts a daemon with a settings file.
func startReloading(t *testing.T, environ []string, text string) *reloader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := &reloader{&running{t: t, stop: stop, code: make(chan int, 1), said: func() {}}, filepath.Join(t.TempDir(), "settings.yml"), make(chan os.Signal, 1)}
	r.write(text)
	go func() {
		r.code <- Main(ctx, Process{Args: []string{"korvet-offload", "run", "--config", r.file, "--http-address", "127.0.0.1:0"}, Environ: environ,
			Stdout: io.Discard, Stderr: r, Hangups: func() (<-chan os.Signal, func()) { return r.asks, func() {} }})
	}()
	t.Cleanup(stop)
	return r
}

func (r *reloader) write(text string) {
	r.t.Helper()
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reload changes the file and has it read.
func (r *reloader) reload(text string) {
	r.t.Helper()
	r.write(text)
	r.asks <- syscall.SIGHUP
}

// hasNot checks that the log does not have a text in it.
func (r *reloader) hasNot(text string) {
	r.t.Helper()
	if strings.Contains(r.log(), text) {
		r.t.Errorf("%q in\n%s", text, r.log())
	}
}

// A tick of an hour ends at once when the settings change; what needs a restart
// is named; a file with faults changes nothing; secrets are not shown.
func TestReload(t *testing.T) {
	rig := newRig(t)
	const head = "korvet.redis.timeout: 5s\n"
	r := startReloading(t, rig.environ, head+"korvet.storage.offload.tick-interval: 1h\nkorvet.storage.offload.lease-duration: 2h\nkorvet.storage.offload.seal-grace: 100d\n")
	r.await(`"message":"this instance leads"`)
	r.reload(head + "korvet.storage.offload.tick-interval: 1h\nkorvet.storage.offload.lease-duration: 2h\nkorvet.storage.offload.seal-grace: 1s\nkorvet.storage.offload.concurency: 3\n" +
		"korvet.storage.offload.sla: never\nkorvet.redis.password: topsecret\nkorvet.redis.uri: redis://:alsosecret@127.0.0.1:1\n")
	r.await(`concurency (` + r.file)
	r.await(`sla`)
	r.await(`nothing is changed`)
	r.hasNot("segment is remote")
	r.hasNot("setting has changed")

	r.reload("korvet.storage.offload.tick-interval: 1h\nkorvet.storage.offload.lease-duration: 3h\nkorvet.storage.offload.seal-grace: 1s\n" +
		"korvet.storage.offload.http.token: topsecret topsecret\n")
	r.await(`"message":"setting has changed","setting":"korvet.storage.offload.seal-grace","value":"1s"`)
	r.await(`"message":"changed, and needs a restart","settings":["korvet.redis.timeout","korvet.storage.offload.lease-duration","korvet.storage.offload.http.token"]`)
	r.await(`"message":"segment is remote","segment":"orders:0/1"`)
	for _, secret := range []string{"topsecret", "alsosecret"} {
		r.hasNot(secret)
	}
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

// What the log says, and how much, changes at once; a topic that is declared
// now is worked on from the next pass on.
func TestReloadOfLevelAndTopics(t *testing.T) {
	rig := newRig(t)
	r := startReloading(t, rig.environ, "korvet.storage.offload.tick-interval: 1h\nkorvet.storage.offload.lease-duration: 2h\n")
	r.await(`"message":"segment is remote","segment":"orders:0/1"`)
	r.hasNot(`"level":"debug"`)
	text := "korvet.storage.offload.tick-interval: 1h\nkorvet.storage.offload.lease-duration: 2h\nkorvet.storage.offload.log.level: debug\nkorvet.topics[0].name: fresh\nkorvet.topics[0].remote-storage-enabled: true\n"
	r.reload(text)
	r.await(`"message":"setting has changed","setting":"korvet.storage.offload.log.level","value":"debug"`)
	r.await(`"message":"setting has changed","setting":"korvet.topics","value":""`)
	r.await(`"message":"partition has its first segment","segment":"fresh:0/0"`)
	r.await(`"level":"debug"`)
	r.reload(text)
	r.await(`"message":"the settings were read again, and have not changed"`)
	r.reload(strings.Replace(text, "debug", "error", 1))
	r.await(`"message":"setting has changed","setting":"korvet.storage.offload.log.level","value":"error"`)
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.asks <- syscall.SIGHUP
	r.await(`"fault":"read settings file: open ` + r.file)
	r.stop()
	if code := r.end(); code != exitDone || strings.HasSuffix(strings.TrimSpace(r.log()), `"message":"stopped"}`) {
		t.Errorf("exit %d; the level does not hold:\n%s", code, r.log())
	}
}

// Settings that change before Redis has answered hold from the first pass on.
func TestReloadDuringTheStart(t *testing.T) {
	rig := newRig(t)
	rig.server.Freeze()
	r := startReloading(t, append(rig.environ, "KORVET_REDIS_TIMEOUT=500ms"), "korvet.storage.offload.seal-grace: 100d\n")
	r.await("waiting for redis")
	r.reload("korvet.storage.offload.seal-grace: 1s\n")
	r.await(`"setting":"korvet.storage.offload.seal-grace","value":"1s"`)
	r.hasNot(`"message":"this instance leads"`)
	rig.server.Thaw()
	r.await(`"message":"segment is remote","segment":"orders:0/1"`)
}

// All other commands end on a hangup, as programs do.
func TestOnlyTheDaemonTakesHangups(t *testing.T) {
	rig := newRig(t)
	for _, args := range [][]string{{"run", "--once"}, {"run", "--once", "--dry-run"}, {"status"}, {"pause"}} {
		Main(t.Context(), Process{Args: append([]string{"korvet-offload"}, args...), Environ: rig.environ, Stdout: io.Discard, Stderr: io.Discard,
			Hangups: func() (<-chan os.Signal, func()) {
				t.Errorf("%q takes them", args)
				return nil, func() {}
			}})
	}
}

// TestReloadReachesEverything: each setting that can change arrives where it is
// used. What there is beside these few places is one copy of the whole.
func TestReloadReachesEverything(t *testing.T) {
	rig := newRig(t)
	load := func(text string) *config.Loaded {
		file := filepath.Join(t.TempDir(), "settings.yml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Input{File: file, Environ: rig.environ, NeedStore: true})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	old := load("")
	fresh := load(`korvet.storage.offload:
  tick-interval: 77s
  upload-rate: 7MB
  page-size: 7
  concurrency: 7
  seal-grace: 7s
  roll.enabled: false
  delete-grace: 7s
  expire-unuploaded: expire
  hold-pending: true
  topic-delete-grace: 7s
  delete-removed-topics: true
  sla: 7s
  log.level: debug
korvet.topics[0]: {name: declared, partitions: 2}
korvet.streams[0].key: plain
`)
	s, err := connect(t.Context(), old.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	log, level, err := ops.NewLogger(old.Ops, io.Discard, false)
	if err != nil {
		t.Fatal(err)
	}
	var told *config.Loaded
	r := &reloading{log: log, level: level, now: old, load: func() (*config.Loaded, error) { return fresh, nil },
		tell: func(now *config.Loaded) { told = now }, begin: func() func() { return func() {} }}
	r.attach(s)
	r.reload()
	if got := level.Level(); got != zap.DebugLevel {
		t.Errorf("log level %s", got)
	}
	if got := int64(s.limit.limiter.Limit()); got != 7<<20 {
		t.Errorf("upload rate %d", got)
	}
	if told != nil || s.worker.Config() == fresh.Worker {
		t.Error("it does not wait for the next pass")
	}
	if _, err := s.worker.RunOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.worker.Config(); got != fresh.Worker {
		t.Errorf("worker: %+v, want %+v", got, fresh.Worker)
	}
	if told == nil || told.Shown("korvet.storage.offload.sla") != "7s" {
		t.Errorf("told %v", told)
	}
	topics, err := s.redis.Topics(t.Context())
	var names []string
	for _, topic := range topics {
		names = append(names, topic.Name)
	}
	if got := strings.Join(names, " "); err != nil || got != "declared orders plain" {
		t.Errorf("topics %s, %v", got, err)
	}
	if got := s.redis.PageSize(); got != 7 {
		t.Errorf("page size %d", got)
	}
}

// A settings file that has become a pipe holds up neither the next reload nor the
// end.
func TestReloadOfAPipe(t *testing.T) {
	rig := newRig(t)
	r := startReloading(t, rig.environ, "korvet.storage.offload.log.level: info\n")
	r.await(`"listening"`)
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(r.file, 0o600); err != nil {
		t.Fatal(err)
	}
	r.asks <- syscall.SIGHUP
	r.await("is no plain file, and can't be read again")
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.reload("korvet.storage.offload.log.level: debug\n")
	r.await("setting has changed")
}

// What shows settings, or works by them, is told of those that have changed.
func TestATickThatChangedReachesThePage(t *testing.T) {
	l, err := config.Load(config.Input{Environ: newRig(t).environ, NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	b := newBook(t)
	d := &daemon{cfg: l.Config, log: b.log, journal: b.journal, eviction: newEvictionWatch(b.log)}
	d.metrics, d.board = newMetrics(l.Config, d.up), newBoard(l.Config, nil, d)
	if d.site, err = newSite(l.Config, d); err != nil || d.site.Tick() != l.Worker.TickInterval {
		t.Fatalf("%v, tick %s", err, d.site.Tick())
	}
	l.Worker.TickInterval = 77 * time.Second
	if d.retold(l); d.site.Tick() != 77*time.Second {
		t.Errorf("tick %s", d.site.Tick())
	}
}

// Between two ticks, too, an outage that lasts is written down again.
func TestALookSaysAgainWhatIsDown(t *testing.T) {
	l, err := config.Load(config.Input{Environ: newRig(t).environ, NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	s, err := connect(t.Context(), l.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	b := newBook(t)
	now := time.Now()
	b.now = func() time.Time { return now }
	d := &daemon{cfg: l.Config, log: b.log, journal: b.journal, eviction: newEvictionWatch(b.log)}
	d.metrics = newMetrics(l.Config, d.up)
	b.fails(partStore, "no store", errors.New("none"))
	b.wrote("error no store error=none")
	d.look(t.Context(), s)
	b.wrote()
	now = now.Add(outageReminder)
	d.look(t.Context(), s)
	b.wrote("error no store for=5m0s error=none")
}
