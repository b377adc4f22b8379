package command

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
	"go.uber.org/zap"
)

// manager is the service manager that started the program, systemd, and what it
// is told: READY=1 once Redis and the store have answered, one line of STATUS,
// and WATCHDOG=1 for as long as the worker is alive. There is no timer in it:
// whoever calls beat is what the service manager watches.
//
// A program that no service manager started tells nobody. What can't be sent is
// a line in the log, once. Safe for concurrent use.
type manager struct {
	send  func(state string) error // nil = nobody listens
	limit time.Duration            // WatchdogSec; 0 = nothing is watched
	log   *zap.Logger

	mu       sync.Mutex
	ready    bool // READY=1 was sent
	stopping bool // nothing is sent any more
	deaf     bool // it has been written down that nothing can be sent
	status   string
}

// shortestLimit is a WatchdogSec at which a Redis and a store that are slow to
// answer do not pass for a program that hangs: the watch loop waits for the one
// and then for the other, a third of the limit after the last sign of life.
const shortestLimit = 30 * time.Second

// newManager finds the service manager by the variables that it sets.
func newManager(log *zap.Logger) *manager {
	m := &manager{log: log}
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return m
	}
	m.send = func(state string) error {
		_, err := systemd.SdNotify(false, state)
		return err
	}
	limit, err := systemd.SdWatchdogEnabled(false)
	switch m.limit = limit; {
	case err != nil:
		log.Warn("the service manager's watchdog can't be fed", zap.Error(err))
	case limit > 0 && limit < shortestLimit:
		log.Warn("WatchdogSec is shorter than what redis and the store may take to answer; want 30s or more", zap.Duration("watchdog", limit))
	}
	return m
}

// interval is how often beat has to be called: a third of the limit, and at
// least as often as that.
func (m *manager) interval(atLeast time.Duration) time.Duration {
	if m.limit == 0 {
		return atLeast
	}
	return min(atLeast, max(m.limit/3, time.Millisecond))
}

// startStep is how long the program may be silent while it starts: the longest
// wait for Redis, and then an attempt to reach it.
const startStep = 2 * time.Minute

// moreTime asks for that long to start, counted from now.
func moreTime() string { return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", startStep.Microseconds()) }

// waits says that what is needed to start is not there yet.
func (m *manager) waits(forWhat string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		m.tell(moreTime(), m.statusLine("waiting for "+forWhat))
	}
}

// beat is one sign of life. The program is ready when notReady is empty, and
// dead while there is an error: then the watchdog gets nothing.
func (m *manager) beat(standing, notReady string, dead error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var lines []string
	if notReady == "" && !m.ready {
		m.ready = true
		lines = append(lines, systemd.SdNotifyReady)
	}
	switch {
	case dead != nil:
		standing = "hangs: " + dead.Error()
	case notReady != "":
		standing = "not ready: " + notReady
	}
	lines = append(lines, m.statusLine(standing))
	switch {
	case !m.ready:
		lines = append(lines, moreTime())
	case dead == nil && m.limit > 0:
		lines = append(lines, systemd.SdNotifyWatchdog)
	}
	m.tell(lines...)
}

// reloads says that settings are read again, and returns what to call once that
// is over, well or not.
func (m *manager) reloads() (over func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ready {
		return func() {} // it has not begun to run, for the service manager
	}
	m.tell(systemd.SdNotifyReloading)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tell(systemd.SdNotifyReady)
	}
}

// stops says that the program ends; nothing is said after that.
func (m *manager) stops() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tell(systemd.SdNotifyStopping, m.statusLine("stopping"))
	m.stopping = true
}

// stopsWith calls stops when ctx ends.
func (m *manager) stopsWith(ctx context.Context) error {
	<-ctx.Done()
	m.stops()
	return nil
}

// statusLine is the STATUS of a text; "" where it was the last one, too.
func (m *manager) statusLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if text == m.status {
		return ""
	}
	m.status = text
	return "STATUS=" + text
}

// tell sends the lines that are not empty, in one message.
func (m *manager) tell(lines ...string) {
	var all []string
	for _, l := range lines {
		if l != "" {
			all = append(all, l)
		}
	}
	if m.send == nil || m.stopping || len(all) == 0 {
		return
	}
	if err := m.send(strings.Join(all, "\n")); err != nil && !m.deaf {
		m.deaf = true
		m.log.Warn("the service manager can't be told how it goes", zap.Error(err))
	}
}
