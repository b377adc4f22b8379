package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// A server that refuses, for a while, what the worker needs: the lease goes,
// the worker is alive and not ready and says why, and goes on by itself when
// the server does. Nothing is lost.
func TestRedisThatRefusesForAWhile(t *testing.T) {
	nobody := closedPort(t)
	for name, c := range map[string]struct {
		begin, end func(r *rig)
		says       string
	}{
		//fault:redis | The server is demoted while the worker leads, and promoted again | REPLICAOF to an address where nobody is, then NO ONE | leadership is lost, alive and not ready, and all goes on within seconds with nothing lost
		"READONLY": {func(r *rig) { r.redis.Exec("REPLICAOF", "127.0.0.1", port(nobody)) }, func(r *rig) { r.redis.Exec("REPLICAOF", "NO", "ONE") }, "replica"},
		//fault:redis | A demoted server refuses reads as well | REPLICAOF to an address where nobody is, with replica-serve-stale-data no | the same
		"MASTERDOWN": {func(r *rig) {
			r.redis.Exec("CONFIG", "SET", "replica-serve-stale-data", "no")
			r.redis.Exec("REPLICAOF", "127.0.0.1", port(nobody))
		}, func(r *rig) { r.redis.Exec("REPLICAOF", "NO", "ONE") }, "MASTERDOWN"},
		//fault:redis | The server refuses writes because its disk failed | a BGSAVE into a folder that is gone, then one into a folder that is there | the same
		"MISCONF": {breakDisk, mendDisk, "MISCONF"},
		//fault:redis | Too few replicas are connected for the server to take writes | min-replicas-to-write 1 without a replica, then 0 | the same
		"NOREPLICAS": {func(r *rig) { r.redis.Exec("CONFIG", "SET", "min-replicas-to-write", "1") },
			func(r *rig) { r.redis.Exec("CONFIG", "SET", "min-replicas-to-write", "0") }, "NOREPLICAS"},
		//fault:redis | Somebody's script holds the server for long | EVAL of an endless loop, then SCRIPT KILL | the same
		"BUSY": {holdUp, func(r *rig) { r.redis.Exec("SCRIPT", "KILL") }, "BUSY"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFileRig(t)
			r.redis = redisserver.Start(t, redisserver.Args("--enable-protected-configs", "local"))
			r.one(4, 300)
			d := r.ticking()
			d.mustGoOn()
			for n := range segment.Number(6) { // to be in the middle of
				r.sealed(segment.Partition{Topic: "orders"}, 10+n, 2000)
			}
			c.begin(r)
			d.unready(c.says)
			await(t, "the lease is lost", 20*time.Second, func() bool {
				return strings.Contains(d.worker.log(), "leads no longer") || strings.Contains(d.worker.log(), "lease lost")
			})
			await(t, "a second passes", 20*time.Second, after(time.Second))
			d.unready(c.says)
			d.mustLive()
			begun := time.Now()
			c.end(r)
			await(t, "ready again", 20*time.Second, d.ready(200))
			if took := time.Since(begun); took > 8*time.Second {
				t.Errorf("it took %s to go on", took)
			}
			d.mustGoOn()
			t.Log(d.worker.log())
		})
	}
}

// A cluster that is not whole, for a while.
func TestAClusterThatIsDownForAWhile(t *testing.T) {
	for name, c := range map[string]struct{ slots, says string }{
		//fault:redis | A slot of the cluster has no node, so the others refuse as well | CLUSTER DELSLOTS of a slot without keys, then ADDSLOTS | alive and not ready, and all goes on within seconds with nothing lost
		"one slot": {"15000", "CLUSTERDOWN"},
		//fault:redis | No slot of the cluster has a node | CLUSTER DELSLOTSRANGE of all, then ADDSLOTSRANGE | the same
		"every slot": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFileRig(t)
			r.redis = redisserver.Start(t, redisserver.Cluster(true))
			r.env = []string{"KORVET_REDIS_CLUSTER=true"}
			r.one(4, 300)
			d := r.ticking()
			d.mustGoOn()
			if c.slots == "" {
				r.redis.Exec("CLUSTER", "DELSLOTSRANGE", "0", "16383")
			} else {
				r.redis.Exec("CLUSTER", "DELSLOTS", c.slots)
			}
			d.unready(c.says)
			await(t, "two seconds pass", 20*time.Second, after(2*time.Second))
			d.unready(c.says)
			d.mustLive()
			if c.slots == "" {
				r.redis.Exec("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
			} else {
				r.redis.Exec("CLUSTER", "ADDSLOTS", c.slots)
			}
			d.mustGoOn()
			t.Log(d.worker.log())
		})
	}
}

// breakDisk makes the server's next snapshot fail, after which it refuses
// writes.
func breakDisk(r *rig) {
	dir := filepath.Join(r.redis.Dir, "gone")
	if err := os.Mkdir(dir, 0o700); err != nil {
		r.t.Fatal(err)
	}
	r.redis.Exec("CONFIG", "SET", "save", "3600 1", "dir", dir)
	if err := os.Remove(dir); err != nil {
		r.t.Fatal(err)
	}
	r.redis.Exec("BGSAVE")
	await(r.t, "the snapshot has failed", 20*time.Second, func() bool {
		return strings.Contains(r.redis.Exec("INFO", "persistence"), "rdb_last_bgsave_status:err")
	})
}

func mendDisk(r *rig) {
	r.redis.Exec("CONFIG", "SET", "dir", r.redis.Dir)
	r.redis.Exec("BGSAVE")
}

// holdUp keeps the server busy with a script until SCRIPT KILL.
func holdUp(r *rig) {
	r.redis.Exec("CONFIG", "SET", "busy-reply-threshold", "50")
	cmd := exec.Command("redis-cli", "-s", r.redis.Socket, "EVAL", "while true do end", "0")
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = cmd.Wait() })
}

//fault:redis | The server is restarted and loads a large file for long | a restart with key-load-delay, asked again all the time | LOADING is waited for, alive and not ready, and all goes on
func TestRedisThatLoads(t *testing.T) {
	r := newFileRig(t)
	r.redis = redisserver.Start(t, redisserver.Args("--key-load-delay", "400", "--loading-process-events-interval-bytes", "1024"))
	r.one(4, 300)
	var filler []byte
	for n := range 10_000 {
		filler = redisserver.AppendCommand(filler, "SET", "filler:"+segment.Number(n).String(), strings.Repeat("x", 100))
	}
	r.redis.Pipe(filler)
	d := r.ticking()
	d.mustGoOn()
	r.redis.Exec("SAVE")
	r.redis.Stop()
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		r.redis.Relaunch()
	}()
	d.unready("LOADING")
	d.mustLive()
	select {
	case <-loaded:
		t.Error("that was no loading")
	default:
	}
	<-loaded
	d.mustGoOn()
	t.Log(d.worker.log())
}

//fault:redis | The server forgets every script in the middle of a pass | SCRIPT FLUSH again and again while segments move | each script is sent whole and done once
func TestScriptsThatAreForgotten(t *testing.T) {
	r := newFileRig(t)
	r.one(60, 50)
	p := r.start("run", "--once")
	flush := time.NewTicker(3 * time.Millisecond)
	defer flush.Stop()
	flushes := 0
	for going := true; going; {
		select {
		case <-p.ended:
			going = false
		case <-flush.C:
			r.redis.Exec("SCRIPT", "FLUSH")
			flushes++
		}
	}
	if code := p.wait(t, time.Minute); code != 0 || flushes < 5 {
		t.Errorf("exit %d after %d flushes\n%s", code, flushes, p.log())
	}
	r.mustBeDone()
	for key, e := range r.entries() {
		if e.Rev != 1 {
			t.Errorf("%s was changed %d times", key, e.Rev)
		}
	}
}
