package network

import (
	"math/rand/v2"
	"testing"
	"time"
)

// limit lets so many bytes of every connection pass, and then closes it.
func limit(stream string, bytes int) toxic {
	return toxic{"limit_data", stream, map[string]any{"bytes": bytes}}
}

// Connections end at every offset that chance chooses, from the first byte on,
// again and again, until all the work is done under it.
func TestCuts(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	for name, c := range map[string]struct {
		server, stream string
		most           int // bytes
		size           size
		env            []string
	}{
		//fault:network | the line is cut in the middle of a reply of Redis | the proxy closes connections after a random number of bytes, 1 to 400,000 | a cut page is asked for again, and no entry is lost or comes twice
		"redis, in a reply": {server: "redis", stream: "downstream", most: 400_000, size: usual()},
		//fault:network | the line is cut in the middle of a request to Redis | the proxy closes connections after a random number of bytes, 1 to 3,000 | a change of a manifest was made whole or not at all
		"redis, in a request": {server: "redis", stream: "upstream", most: 3_000, size: usual()},
		//fault:network | the line is cut in the middle of an answer of the store | the proxy closes connections after a random number of bytes, 1 to 2,000 | an object that was put without an answer is recognised and adopted
		"store, in an answer": {server: "store", stream: "downstream", most: 2_000, size: usual()},
		//fault:network | the line is cut in the middle of an upload | the proxy closes connections after a random number of bytes, 1 to 200,000 | there is no half object, and the upload is made again from the spool
		"store, in an upload": {server: "store", stream: "upstream", most: 200_000, size: usual()},
		//fault:network | the line is cut in the middle of an upload in parts | the proxy closes connections after a random number of bytes, 1 to 12,000,000 | there is no half object, and the upload is completed or given up
		"store, in an upload in parts": {server: "store", stream: "upstream", most: 12_000_000, size: size{1, 2, 8_000, 1500},
			env: []string{"KORVET_STORAGE_S3_MULTIPART_THRESHOLD=1MB", "KORVET_STORAGE_S3_PART_SIZE=5MB"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, s, c.size)
			w.env = c.env
			redis, store := newProxy(t, s.redis.Addr), newProxy(t, s.s3.Endpoint)
			p := w.start(redis.addr(), store.addr())
			redis.add(up("latency", map[string]any{"latency": 2}))
			store.add(up("latency", map[string]any{"latency": 10}))
			w.cut(map[string]*proxy{"redis": redis, "store": store}[c.server], c.stream, c.most)
			p.mustLive("after the cuts")
			w.mustSettle(60*time.Second, p)
		})
	}
}

// cut makes the work due and cuts while it goes on: most of the time, so that
// little gets through, and for some seconds at least.
func (w *world) cut(faulty *proxy, stream string, most int) {
	seed := uint64(time.Now().UnixNano())
	w.t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	w.begin()
	cuts := 0
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end) && !w.done(); cuts++ {
		offset := 1 + random.IntN(1<<random.IntN(bits(most))) // small ones as often as large ones
		at := limit(stream, min(offset, most))
		faulty.add(at)
		<-time.After(time.Duration(50+random.IntN(150)) * time.Millisecond)
		faulty.lift(at)
		<-time.After(time.Duration(random.IntN(50)) * time.Millisecond)
	}
	w.t.Logf("%d cuts, %d segments left", cuts, w.left())
	if cuts < 5 {
		w.t.Error("the work was done before the line was cut")
	}
}

// bits is how many bits a number has.
func bits(n int) (b int) {
	for ; n > 0; n >>= 1 {
		b++
	}
	return b
}
