package command

import (
	"context"
	"fmt"
	"net"
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
	m.send = notify
	limit, err := systemd.SdWatchdogEnabled(false)
	switch m.limit = limit; {
	case err != nil:
		log.Warn("the service manager's watchdog can't be fed", zap.Error(err))
	case limit > 0 && limit < shortestLimit:
		log.Warn("WatchdogSec is shorter than what redis and the store may take to answer; want 30s or more", zap.Duration("watchdog", limit))
	}
	return m
}

// notifyTime is how long the service manager may take to accept a message: one
// that reads nothing must not hold up the watch, or the end of the program.
const notifyTime = time.Second

// notify sends one message to the service manager.
func notify(state string) error {
	to := &net.UnixAddr{Name: os.Getenv("NOTIFY_SOCKET"), Net: "unixgram"}
	conn, err := net.DialUnix(to.Net, nil, to)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetWriteDeadline(time.Now().Add(notifyTime)); err != nil {
		return err
	}
	_, err = conn.Write([]byte(state))
	return err
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
	ready := m.ready || notReady == ""
	if ready && !m.ready {
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
	case !ready:
		lines = append(lines, moreTime())
	case dead == nil && m.limit > 0:
		lines = append(lines, systemd.SdNotifyWatchdog)
	}
	if m.tell(lines...) { // otherwise the next beat says it again
		m.ready = ready
	}
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

// maxStatus bounds a STATUS, in bytes: systemd passes over a message of more than
// 4 KiB, and with it the sign of life.
const maxStatus = 1000

// statusLine is the STATUS of a text; "" where it was the last one, too.
func (m *manager) statusLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxStatus {
		text = strings.ToValidUTF8(text[:maxStatus], "") + "..."
	}
	if text == m.status {
		return ""
	}
	m.status = text
	return "STATUS=" + text
}

// tell sends the lines that are not empty, in one message. False means that it
// was not accepted.
func (m *manager) tell(lines ...string) bool {
	var all []string
	for _, l := range lines {
		if l != "" {
			all = append(all, l)
		}
	}
	if m.send == nil || m.stopping || len(all) == 0 {
		return true
	}
	err := m.send(strings.Join(all, "\n"))
	if err == nil {
		return true
	}
	m.status = "" // it has not heard of it
	if !m.deaf {
		m.deaf = true
		m.log.Warn("the service manager can't be told how it goes", zap.Error(err))
	}
	return false
}
