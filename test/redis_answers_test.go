package test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisproxy"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// behind makes the rig's programs reach Redis through a proxy.
func (r *rig) behind(rule redisproxy.Rule) {
	r.env = append(r.env, "KORVET_REDIS_URI=redis://"+redisproxy.Start(r.t, r.redis.Addr, rule))
}

// every picks each n-th request that holds one of the words.
func every(n int32, fate redisproxy.Fate, words ...string) (redisproxy.Rule, func() int32) {
	var seen, hit atomic.Int32
	return func(request []byte) redisproxy.Fate {
		for _, w := range words {
			if bytes.Contains(request, []byte(w)) && seen.Add(1)%n == 0 {
				hit.Add(1)
				return fate
			}
		}
		return redisproxy.Fate{}
	}, hit.Load
}

//fault:redis | The connection is cut after a script was done, so that its answer is lost | a proxy cuts one in four answers at random, those to changes of the manifest, removals and the lease, through a whole life of segments | each change is found done, none is done twice, and every step is reached
func TestAnswersOfScriptsThatAreLost(t *testing.T) {
	r := newFileRig(t)
	r.one(6, 200)
	p := segment.Partition{Topic: "orders"}
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "6", fmt.Sprintf(`{"v":1,"state":"OPEN","tier":"LOCAL","openedAt":%d}`, time.Now().Add(-time.Hour).UnixMilli()))
	r.redis.Exec("XADD", r.layout.SegmentKey(p, 6), "*", "value", "x")
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var mu sync.Mutex
	cut := 0
	r.behind(func(request []byte) redisproxy.Fate {
		mu.Lock()
		defer mu.Unlock()
		lose := bytes.Contains(request, []byte("EVAL")) && random.IntN(4) == 0
		if lose {
			cut++
		}
		return redisproxy.Fate{Lose: lose}
	})
	r.set("orders", "segment.ms", "60000", "local.retention.ms", "500")
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0", "KORVET_REDIS_TIMEOUT=2s")
	gone := func() bool {
		for _, e := range r.entries() {
			if e.Local != segment.Gone {
				return false
			}
		}
		return strings.Contains(r.redis.Exec("HGET", r.layout.ManifestKey(p), "6"), `"local":"GONE"`)
	}
	for range 60 {
		r.redis.Exec("DEL", r.layout.LeaseKey()) // or wait for it to lapse
		_, stderr, code := r.run("run", "--once")
		if code == 2 || strings.Contains(stderr, "goroutine ") {
			t.Fatalf("exit %d\n%s", code, stderr)
		}
		if gone() {
			break
		}
	}
	if !gone() || cut < 10 {
		t.Fatalf("after %d answers that were lost: %s", cut, r.redis.Exec("HGETALL", r.layout.ManifestKey(p)))
	}
	t.Logf("%d answers were lost", cut)
	for key, e := range r.entries() {
		r.mustHold(r.ledger[key], e)
		if e.Rev < 3 || e.Copy != 0 { // flip, DROPPING once or again, GONE
			t.Errorf("%s was changed %d times: %s", key, e.Rev, e.Encode())
		}
	}
	if n := len(r.objects()); n != 7 {
		t.Errorf("%d objects: %q", n, r.objects())
	}
	if n := r.redis.Exec("HLEN", r.layout.ManifestKey(p)); n != "8" {
		t.Errorf("%s entries", n)
	}
}

//fault:redis | The answer of WAIT is lost | a proxy cuts the connection at the answer of each WAIT while a replica is there | the local copy stays until an answer comes, and goes then
func TestAnswersOfWaitThatAreLost(t *testing.T) {
	r := newFileRig(t)
	r.redis.Exec("CONFIG", "SET", "repl-diskless-sync-delay", "0")
	redisserver.Start(t, redisserver.Args("--replicaof", "127.0.0.1", port(r.redis.Addr)))
	await(t, "the replica is there", 30*time.Second, func() bool { return strings.Contains(r.redis.Exec("INFO", "replication"), "state=online") })
	w, _ := r.oneSegment()
	key := r.layout.SegmentKey(w.partition, w.number)
	r.set("orders", "local.retention.ms", "1000")
	var mend atomic.Bool
	r.behind(func(request []byte) redisproxy.Fate {
		return redisproxy.Fate{Lose: !mend.Load() && bytes.Contains(request, []byte("WAIT\r\n"))}
	})
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=1", "KORVET_REDIS_TIMEOUT=2s")
	for range 3 {
		out := r.pass(1, "--output", "json")
		if !strings.Contains(out, `"reason": "not_replicated"`) {
			t.Errorf("%s", out)
		}
		r.mustBeInRedis(w)
	}
	mend.Store(true)
	r.pass(0)
	e := r.entries()[key]
	if e.Local != segment.Gone || e.Rev < 3 {
		t.Errorf("%s", e.Encode())
	}
	r.mustHold(w, e)
}

//fault:redis | What answers at the address is no Redis, or goes mad | a proxy that answers in another protocol, with lengths of 2^62, or without end, from the start or at one command | one line that says so, exit code 1, soon and with bounded memory, and nothing is changed
func TestGarbageFromRedis(t *testing.T) {
	say := func(text string) redisproxy.Fate {
		return redisproxy.Fate{Say: func(w io.Writer) { io.WriteString(w, text) }} //nolint:errcheck // the other side may be gone
	}
	endless := redisproxy.Fate{Say: func(w io.Writer) {
		chunk := bytes.Repeat([]byte("$4\r\nabcd\r\n"), 4000)
		_, err := io.WriteString(w, "*1000000\r\n")
		for err == nil {
			_, err = w.Write(chunk)
		}
	}}
	for name, c := range map[string]struct {
		fate redisproxy.Fate
		at   string
	}{
		"a web server":                {say("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), "HELLO"},
		"2^62 at the greeting":        {say("*4611686018427387904\r\n"), "HELLO"},
		"an endless greeting":         {endless, "HELLO"},
		"2^62 topics":                 {say("*4611686018427387904\r\n"), "SMEMBERS"},
		"topics without end":          {endless, "SMEMBERS"},
		"a page of 2^62":              {say("*4611686018427387904\r\n"), "XRANGE"},
		"a page without end":          {endless, "XRANGE"},
		"a script's answer of 2^62":   {say("$4611686018427387904\r\n"), "EVALSHA"},
		"a script's answer of a kind": {say("*1\r\n*1\r\n+OK\r\n"), "EVALSHA"},
		"an answer to nothing":        {say("+OK\r\n+OK\r\n+OK\r\n"), "TYPE"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFileRig(t)
			r.one(1, 50)
			before := r.redis.Exec("HGETALL", r.layout.ManifestKey(segment.Partition{Topic: "orders"}))
			rule, hit := every(1, c.fate, c.at)
			r.behind(rule)
			r.env = append(r.env, "KORVET_REDIS_TIMEOUT=1s", "GOMEMLIMIT=64MiB")
			begun := time.Now()
			_, stderr, code := r.run("run", "--once")
			if code != 1 || hit() == 0 || strings.Contains(stderr, "goroutine ") || len(stderr) > 2000 || time.Since(begun) > 30*time.Second {
				t.Errorf("exit %d after %s\n%s", code, time.Since(begun), stderr[:min(len(stderr), 3000)])
			}
			if now := r.redis.Exec("HGETALL", r.layout.ManifestKey(segment.Partition{Topic: "orders"})); now != before {
				t.Errorf("the manifest was changed: %s", now)
			}
			t.Log(time.Since(begun), stderr)
		})
	}
}

//fault:redis | The server cuts replies beyond client-output-buffer-limit | a limit of 1 MiB and entries of 600 KiB, then a limit below one entry, the built binary | COUNT halves and every entry is copied once; where not even one passes, a message that names the limit
func TestRepliesThatAreTooLargeForTheServer(t *testing.T) {
	r := newFileRig(t)
	p := segment.Partition{Topic: "orders"}
	r.one(2, 200)
	key := r.layout.SegmentKey(p, 7)
	var cmds []byte
	for i := range 40 {
		cmds = redisserver.AppendCommand(cmds, "XADD", key, fmt.Sprintf("5-%d", i), "value", strings.Repeat(string(rune('a'+i%26)), 600<<10))
	}
	r.redis.Pipe(cmds)
	r.redis.Exec("HSET", r.layout.ManifestKey(p), "7", `{"v":1,"state":"SEALED","tier":"LOCAL","count":40,"lastId":"5-39","sealedAt":6}`)
	r.redis.Exec("CONFIG", "SET", "client-output-buffer-limit", "normal 300kb 0 0")
	for _, reader := range []string{"direct", "client"} {
		r.env = []string{"KORVET_STORAGE_OFFLOAD_PAGE_READER=" + reader}
		_, stderr, code := r.run("run", "--once")
		if code != 1 {
			t.Errorf("%s: exit %d", reader, code)
		}
		oneLine(t, stderr, "orders:0/7", key, "COUNT 1", "raise its client-output-buffer-limit")
	}
	r.redis.Exec("CONFIG", "SET", "client-output-buffer-limit", "normal 1mb 0 0")
	r.env = nil
	r.pass(0)
	e, err := segment.ParseEntry([]byte(strings.TrimSpace(r.redis.Exec("HGET", r.layout.ManifestKey(p), "7"))))
	if err != nil || e.Tier != segment.Remote || e.Count != 40 || e.FirstID.String() != "5-0" || e.LastID.String() != "5-39" {
		t.Errorf("%s, %v", e.Encode(), err)
	}
}
