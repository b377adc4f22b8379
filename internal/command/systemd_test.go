package command

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/config"
	"korvet-offload/internal/ops"
	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// listener is a service manager: a datagram socket, and what it has heard.
type listener struct {
	t *testing.T

	mu    sync.Mutex
	heard []string // one element for each message
}

// listen makes this process one that a service manager has started. A watchdog
// of 0 watches nothing.
func listen(t *testing.T, watchdog string) *listener {
	t.Helper()
	l, name := &listener{t: t}, filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.take(conn)
	}()
	t.Cleanup(func() { _ = conn.Close(); <-done })
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", watchdog)
	return l
}

func (l *listener) take(conn *net.UnixConn) {
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		l.mu.Lock()
		l.heard = append(l.heard, string(buffer[:n]))
		l.mu.Unlock()
	}
}

// all is everything that was heard so far.
func (l *listener) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}

// count is in how many messages a line is.
func (l *listener) count(line string) (n int) {
	for _, message := range l.all() {
		if slices.Contains(strings.Split(message, "\n"), line) {
			n++
		}
	}
	return n
}

// await polls until something holds.
func (l *listener) await(what string, holds func() bool) {
	l.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			l.t.Fatalf("%s: never; heard %q", what, l.all())
		}
	}
}

func (l *listener) awaitLine(line string) {
	l.t.Helper()
	l.await(line, func() bool { return l.count(line) > 0 })
}

func TestServiceManagerHearsHowItGoes(t *testing.T) {
	l, rig := listen(t, "300000"), newRig(t)
	r := start(t, rig.environ)
	l.awaitLine("READY=1")
	l.awaitLine("STATUS=leads: every sealed segment was copied at the last look")
	l.await("watchdog", func() bool { return l.count("WATCHDOG=1") > 3 })
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	l.awaitLine("STOPPING=1")
	all := l.all()
	if last := all[len(all)-1]; last != "STOPPING=1\nSTATUS=stopping" || l.count("READY=1") != 1 || l.count("STOPPING=1") != 1 {
		t.Errorf("%q", all)
	}
	if first := slices.IndexFunc(all, func(m string) bool { return strings.Contains(m, "WATCHDOG=1") }); first >= 0 && !strings.Contains(strings.Join(all[:first+1], "\n"), "READY=1") {
		t.Errorf("the watchdog is fed before the program is ready: %q", all)
	}
	if !strings.Contains(r.log(), "WatchdogSec is shorter than what redis and the store may take to answer") {
		t.Error("nothing was said of the short watchdog")
	}
}

func TestServiceManagerGivesTimeForRedis(t *testing.T) {
	l := listen(t, "")
	r := start(t, []string{"KORVET_REDIS_URI=redis://127.0.0.1:1", "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()})
	l.await("two attempts", func() bool { return l.count("EXTEND_TIMEOUT_USEC=120000000") > 1 })
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	l.awaitLine("STOPPING=1")
	if l.count("READY=1") != 0 || l.count("STATUS=waiting for redis") != 1 {
		t.Errorf("%q", l.all())
	}
}

func TestSwitchedOffIsReadyAndFed(t *testing.T) {
	l := listen(t, "60000000")
	r := start(t, []string{"KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir(), "KORVET_STORAGE_OFFLOAD_ENABLED=false"})
	l.awaitLine("READY=1")
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	if want := "READY=1\nSTATUS=switched off by korvet.storage.offload.enabled\nWATCHDOG=1"; l.all()[0] != want {
		t.Errorf("%q, want %q", l.all(), want)
	}
}

// heardBy is a manager, and what it says.
func heardBy(limit time.Duration) (*manager, *[]string) {
	var heard []string
	return &manager{limit: limit, log: zap.NewNop(), send: func(state string) error {
		heard = append(heard, state)
		return nil
	}}, &heard
}

func TestReadyOnlyOnceTheStoreHasAnswered(t *testing.T) {
	m, heard := heardBy(time.Minute)
	d := &daemon{manager: m}
	d.journal = newJournal(zap.NewNop(), ops.NewHealth(d.alive))
	d.journal.fails(partOwner, "the store does not answer", errors.New("put object: refused"))
	d.journal.works(partRedis)
	d.beat()
	d.beat()
	d.journal.works(partOwner)
	d.beat()
	d.journal.fails(partStore, "the store can't be used", errors.New("gone\nfor now"))
	d.beat()
	want := []string{
		"STATUS=not ready: put object: refused\nEXTEND_TIMEOUT_USEC=120000000",
		"EXTEND_TIMEOUT_USEC=120000000",
		"READY=1\nSTATUS=asks for the lease\nWATCHDOG=1",
		"STATUS=not ready: gone for now\nWATCHDOG=1", // a restart would not help
	}
	if !slices.Equal(*heard, want) {
		t.Errorf("%q, want %q", *heard, want)
	}
}

func TestStatusOfTheServiceManager(t *testing.T) {
	j := newJournal(zap.NewNop(), ops.NewHealth(nil))
	for _, step := range []struct {
		do   func()
		want string
	}{
		{func() {}, "asks for the lease"},
		{j.Follows, "follows: another instance leads"},
		{j.Leads, "leads: looks for what is to be done"},
		{func() { j.Planned(offload.Plan{Lag: offload.Lag{Segments: 2, Oldest: 61400 * time.Millisecond}}) }, "leads: 2 segments to copy at the last look, the oldest sealed 1m1s before"},
		{func() { j.Planned(offload.Plan{}) }, "leads: every sealed segment was copied at the last look"},
		{func() { j.Lost(errors.New("x")) }, "asks for the lease"},
		{j.Leads, "leads: looks for what is to be done"},
	} {
		step.do()
		if got, _ := j.standing(); got != step.want {
			t.Errorf("%q, want %q", got, step.want)
		}
	}
}

// A pass in which nothing moves starves the watchdog, and one that goes on
// feeds it again.
func TestHangingPassStarvesTheWatchdog(t *testing.T) {
	m, heard := heardBy(time.Minute)
	d := &daemon{manager: m}
	d.journal = newJournal(zap.NewNop(), ops.NewHealth(d.alive))
	now := time.Now()
	dog := newWatchdog(time.Minute)
	dog.now = func() time.Time { return now }
	d.session.Store(&session{dog: dog, turns: single{leader: leader{lease.New(nil, lease.DefaultConfig())}}})
	d.beat()
	returned := dog.call("read stream", "x")
	now = now.Add(61 * time.Second)
	d.beat()
	now = now.Add(time.Second)
	d.beat()
	returned()
	d.beat()
	want := []string{
		"READY=1\nSTATUS=asks for the lease\nWATCHDOG=1",
		`STATUS=hangs: no progress for 1m1s in "read stream x", begun 1m1s ago (korvet.storage.offload.stall-timeout): a restart is needed, unless it goes on by itself`,
		`STATUS=hangs: no progress for 1m2s in "read stream x", begun 1m2s ago (korvet.storage.offload.stall-timeout): a restart is needed, unless it goes on by itself`,
		"STATUS=asks for the lease\nWATCHDOG=1",
	}
	if !slices.Equal(*heard, want) {
		t.Errorf("%q, want %q", *heard, want)
	}
}

// hungStore never says whom it belongs to, and does not listen.
type hungStore struct {
	s3sink.Store
	asked   chan struct{}
	release chan struct{}
}

func (h hungStore) CheckOwner(context.Context) error {
	select {
	case h.asked <- struct{}{}:
		<-h.release
	case <-h.release:
	}
	return errors.New("given up")
}

// What watches the worker is watched itself: nothing else feeds the watchdog.
func TestHangingWatchLoopStarvesTheWatchdog(t *testing.T) {
	l, rig := listen(t, "30000"), newRig(t)
	redis, err := redisstore.Open(t.Context(), redisstore.Config{URI: rig.server.URI()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer redis.Close()
	d := &daemon{manager: newManager(zap.NewNop()), eviction: newEvictionWatch(zap.NewNop())}
	d.journal = newJournal(zap.NewNop(), ops.NewHealth(d.alive))
	d.metrics = newMetrics(config.DefaultConfig(), d.up)
	store := hungStore{asked: make(chan struct{}), release: make(chan struct{})}
	s := &session{redis: redis, store: store, dog: newWatchdog(time.Minute), turns: single{leader: leader{lease.New(redis.Client(), lease.DefaultConfig())}}}
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { d.watch(ctx, s) })
	l.await("watchdog", func() bool { return l.count("WATCHDOG=1") > 2 })
	d.journal.fails(partOwner, "the store does not answer", errors.New("refused"))
	<-store.asked // the loop hangs from here on
	before := len(l.all())
	select {
	case <-time.After(20 * d.manager.limit):
	case <-store.asked:
	}
	if after := l.all()[before:]; len(after) > 1 { // the last one may just have been under way
		t.Errorf("heard of a loop that hangs: %q", after)
	}
	close(store.release)
	cancel()
	watching.Wait()
}

func TestReloadIsTold(t *testing.T) {
	m, heard := heardBy(0)
	m.reloads()() // before it is ready it reloads nothing, for the service manager
	m.beat("leads", "", nil)
	over := m.reloads()
	over()
	m.stops()
	m.reloads()()
	m.beat("leads", "", nil)
	if want := []string{"READY=1\nSTATUS=leads", "RELOADING=1", "READY=1", "STOPPING=1\nSTATUS=stopping"}; !slices.Equal(*heard, want) {
		t.Errorf("%q, want %q", *heard, want)
	}
}

func TestWithoutServiceManagerNobodyIsTold(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	m := newManager(zap.NewNop())
	m.waits("redis")
	m.beat("leads", "", nil)
	m.stops()
	if m.interval(time.Second) != time.Second {
		t.Error("there is nothing to feed")
	}
}

func TestServiceManagerThatIsGone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "gone"))
	t.Setenv("WATCHDOG_USEC", "soon")
	core, logs := observer.New(zap.WarnLevel)
	m := newManager(zap.New(core))
	m.beat("leads", "", nil)
	m.beat("follows", "", nil)
	if all := logs.All(); len(all) != 2 || all[0].Message != "the service manager's watchdog can't be fed" || all[1].Message != "the service manager can't be told how it goes" {
		t.Errorf("%+v", all)
	}
}

// A service manager that reads nothing holds up neither the watch nor the end,
// and hears that the program is ready once it reads again.
func TestServiceManagerReadsNothing(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", name)
	t.Setenv("WATCHDOG_USEC", "60000000")
	fills := 0
	for notify("fill") == nil { // until it takes no more
		fills++
	}
	m := newManager(zap.NewNop())
	start := time.Now()
	m.beat("leads", "", nil)
	if took := time.Since(start); took > 10*notifyTime {
		t.Errorf("a beat took %s", took)
	}
	for range fills {
		read(t, conn)
	}
	m.beat("leads", "", nil)
	if heard := read(t, conn); !strings.Contains(heard, "READY=1") || !strings.Contains(heard, "STATUS=leads") {
		t.Errorf("heard %q", heard)
	}
}

func read(t *testing.T, conn *net.UnixConn) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 4096)
	n, err := conn.Read(buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n])
}

// A long error does not make a message that systemd passes over.
func TestServiceManagerGetsShortMessages(t *testing.T) {
	var sent []string
	m := &manager{log: zap.NewNop(), limit: time.Minute, send: func(state string) error {
		sent = append(sent, state)
		return nil
	}}
	m.beat("", "", nil)
	m.beat("", strings.Repeat("\u00fc", 10_000), nil)
	if len(sent) != 2 || len(sent[1]) > 4096 || !strings.Contains(sent[1], "WATCHDOG=1") {
		t.Errorf("sent %d messages, the last of %d bytes", len(sent), len(sent[len(sent)-1]))
	}
}
