package network

import (
	"strings"
	"testing"
	"time"
)

// Connections that a firewall has forgotten are silent for ever, and never
// closed. Those that wait for an answer on one find out by their deadlines.

func TestAbandonedConnectionsToTheStore(t *testing.T) {
	//fault:network | a firewall forgets the connections to the store | those that are there swallow everything for ever, new ones work | not ready after half a minute, and requests give up within a minute and go on over new ones
	t.Parallel() // the longest test of all: its file is the first
	w := newWorld(t, newServers(t), usual())
	slow := newProxy(t, w.s3.Endpoint)
	zone := newDeadZone(t, slow.addr())
	p := w.start(w.redis.Addr, zone.addr())
	slow.add(up("latency", map[string]any{"latency": 100}))
	begun := w.abandon(zone)
	await(t, "not ready while the store says nothing", 55*time.Second, func() bool {
		_, why := p.probe("/readyz")
		return strings.Contains(why, "the store has not answered")
	})
	t.Logf("not ready after %s", time.Since(begun).Round(100*time.Millisecond))
	p.mustLive("over dead connections")
	w.mustSettle(75*time.Second, p)
	t.Logf("all done after %s", time.Since(begun).Round(100*time.Millisecond))
}

func TestAbandonedConnectionsToRedis(t *testing.T) {
	//fault:network | a firewall forgets the connections to Redis | those that are there swallow everything for ever, new ones work | each command gives up within the timeout, and the work goes on over new ones
	t.Parallel()
	w := newWorld(t, newServers(t), usual())
	slow := newProxy(t, w.s3.Endpoint)
	zone := newDeadZone(t, w.redis.Addr)
	p := w.start(zone.addr(), slow.addr())
	slow.add(up("latency", map[string]any{"latency": 100}))
	begun := w.abandon(zone)
	p.mustLive("over dead connections")
	w.mustSettle(60*time.Second, p)
	t.Logf("all done after %s", time.Since(begun).Round(100*time.Millisecond))
}

// abandon makes the work due and the connections dead in the middle of it.
func (w *world) abandon(zone *deadZone) time.Time {
	w.t.Helper()
	all := w.left()
	w.begin()
	await(w.t, "half of the work is done", 20*time.Second, func() bool { return w.left() <= all/2 })
	if n := zone.forget(); n == 0 {
		w.t.Fatal("there was no connection")
	}
	return time.Now()
}
