package network

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// mostMemory is what an instance may take, in bytes, while it moves 100 MB with
// three segments at once. On a fast line it takes 95 to 120 MB, most of it for
// the encoders' row groups.
const mostMemory = 160 << 20

// A line that drips makes the work slow, and nothing pile up.
func TestMemoryWhileTheLineDrips(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for name, c := range map[string]struct{ redis, store toxic }{
		//fault:network | the store takes uploads very slowly | 6 segments of 17 MB, the proxy passes 2 MB in a second on each connection | the worker takes about as much memory as on a fast line, and nothing piles up
		"store": {store: up("bandwidth", map[string]any{"rate": 2_000})},
		//fault:network | Redis answers very slowly | 6 segments of 17 MB, the proxy passes 5 MB in a second on each connection | the worker takes about as much memory as on a fast line, and nothing piles up
		"redis": {redis: down("bandwidth", map[string]any{"rate": 5_000})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if peak := moveOverALine(t, s, c.redis, c.store); peak > mostMemory {
				t.Errorf("it took %d MB", peak>>20)
			}
		})
	}
}

// moveOverALine moves 100 MB and says how much memory the program took at most.
func moveOverALine(t *testing.T, s *servers, onRedis, onStore toxic) (peak int64) {
	w := newWorld(t, s, size{partitions: 3, segments: 2, messages: 4_000, valueBytes: 4_000})
	w.env = []string{"KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY=8MB", "KORVET_STORAGE_OFFLOAD_CONCURRENCY=3"}
	redis, store := newProxy(t, s.redis.Addr), newProxy(t, s.s3.Endpoint)
	p := w.start(redis.addr(), store.addr())
	idle := p.peak()
	for faulty, toxic := range map[*proxy]toxic{redis: onRedis, store: onStore} {
		if toxic.kind != "" {
			faulty.add(toxic)
		}
	}
	w.begin()
	begun := time.Now()
	await(t, "all is done in spite of it", 60*time.Second, w.done)
	peak = p.peak()
	t.Logf("%s: %d MB at most, %d MB before", time.Since(begun).Round(100*time.Millisecond), peak>>20, idle>>20)
	w.mustSettle(time.Second, p)
	return peak
}

// peak is the most memory that the program has taken so far, in bytes.
func (p *process) peak() (n int64) {
	p.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		p.t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			if _, err := fmt.Sscan(kb, &n); err != nil {
				p.t.Fatal(err)
			}
		}
	}
	return n << 10
}
