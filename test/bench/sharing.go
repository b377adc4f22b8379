package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// What instances that share the work have to do: the store is what they wait
// for, since each of its answers takes storeWait.
const (
	sharedPartitions = 16
	sharedSegments   = 4 // of each
	sharedMessages   = 1000
	sharedAtOnce     = 2 // copies, by each instance
	storeWait        = 200 * time.Millisecond
)

// sharing measures how much sooner two instances with four shards are done than
// one.
func (b *bench) sharing() {
	if !b.o.only.MatchString("sharing") {
		return
	}
	slow := b.slowStore()
	var one, two, times []float64
	for range b.o.runs {
		a, c := b.share(slow, 1).Seconds(), b.share(slow, 2).Seconds()
		one, two, times = append(one, a), append(two, c), append(times, a/c)
	}
	ratio := median(times)
	b.rows = append(b.rows, row{what: fmt.Sprintf("two instances with 4 shards against one, %d segments, a store that takes %s to answer", sharedPartitions*sharedSegments, storeWait),
		note: fmt.Sprintf("%.2f times as fast (%.1f s, %.1f s)", ratio, median(one), median(two)), must: "1.6", aim: "1.9"})
	if ratio < 1.6 {
		b.t.Fatalf("two instances are only %.2f times as fast as one", ratio)
	}
}

// slowStore is a way to the S3 server on which each request waits.
func (b *bench) slowStore() string {
	to, err := url.Parse(b.s3.Endpoint)
	b.must(err)
	proxy := httputil.NewSingleHostReverseProxy(to) // the Host that was signed stays
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(storeWait):
			proxy.ServeHTTP(w, r)
		case <-r.Context().Done():
		}
	}))
	b.t.Cleanup(server.Close)
	return server.URL
}

// share lets so many instances copy everything, and says how long that takes from
// when it is there: each has its shards by then.
func (b *bench) share(endpoint string, instances int) time.Duration {
	s := redisserver.Start(b.t)
	defer s.Stop()
	client := redis.NewClient(&redis.Options{Addr: s.Addr})
	defer client.Close()
	for p := range sharedPartitions {
		b.load(s, p, sharedMessages)
	}
	prefix := fmt.Sprintf("sharing-%d-%d", instances, time.Now().UnixNano())
	var all []*exec.Cmd
	for range instances {
		all = append(all, b.sharer(s, endpoint, prefix))
	}
	b.await("each instance has its shards", func() bool {
		records, err := client.HVals(b.ctx, segment.DefaultLayout().MembersKey()).Result()
		b.must(err)
		even := 0
		for _, r := range records {
			if shards := strings.Split(strings.Trim(cut(r, `"shards":`, "]"), "[]"), ","); len(shards) == 4/instances && shards[0] != "" {
				even++
			}
		}
		return even == instances
	})
	start := time.Now()
	b.seal(s, sharedPartitions, sharedMessages, sharedSegments)
	b.await("everything is copied", func() bool {
		for p := range sharedPartitions {
			entries, err := client.HVals(b.ctx, segment.DefaultLayout().ManifestKey(part(p))).Result()
			b.must(err)
			if strings.Count(strings.Join(entries, ""), `"tier":"REMOTE"`) < sharedSegments {
				return false
			}
		}
		return true
	})
	took := time.Since(start)
	for _, cmd := range all {
		b.must(cmd.Process.Signal(syscall.SIGTERM))
		b.must(cmd.Wait())
	}
	return took
}

// cut is what follows a text up to another one.
func cut(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// await polls until a condition holds.
func (b *bench) await(what string, condition func() bool) {
	deadline := time.Now().Add(passTime)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if <-tick.C; time.Now().After(deadline) {
			b.t.Fatalf("not within %s: %s", passTime, what)
		}
	}
}

// sharer starts an instance.
func (b *bench) sharer(s *redisserver.Server, endpoint, prefix string) *exec.Cmd {
	cmd := exec.CommandContext(b.ctx, b.bin, "run", "--redis-uri", s.URI(), "--tick-interval", "200ms", "--lease-duration", "10s",
		"--http-address", "", "--log-level", "error") // at first there is nothing to do, which is worth a warning
	cmd.Env = append(os.Environ(),
		"KORVET_STORAGE_REMOTE_PATH=s3://"+b.s3.Bucket+"/"+prefix, "KORVET_STORAGE_S3_ENDPOINT="+endpoint,
		"KORVET_STORAGE_S3_REGION="+b.s3.Region, "KORVET_STORAGE_S3_ACCESS_KEY_ID="+b.s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY="+b.s3.Secret,
		"KORVET_STORAGE_OFFLOAD_SHARDS=4", fmt.Sprintf("KORVET_STORAGE_OFFLOAD_CONCURRENCY=%d", sharedAtOnce), "KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false")
	cmd.Stderr = os.Stderr
	b.must(cmd.Start())
	b.t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended, unless something went wrong
	return cmd
}
