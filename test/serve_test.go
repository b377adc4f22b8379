package test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/segment"
)

var servesAt = regexp.MustCompile(`"address":"([^"]+)"`)

// serves runs the server until the test ends, and gives its address.
func (r *rig) serves(args ...string) (*process, string) {
	r.t.Helper()
	p := r.start(append([]string{"serve", "--serve-address", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"}, args...)...)
	var address string
	for address == "" {
		if m := servesAt.FindStringSubmatch(p.log()); m != nil {
			address = m[1]
			break
		}
		select {
		case <-p.ended:
			r.t.Fatal(p.log())
		case <-time.After(5 * time.Millisecond):
		}
	}
	r.t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return p, "http://" + address
}

// large puts a file of so many bytes where a segment's belongs, with its entry.
func (r *rig) large(p segment.Partition, n segment.Number, size int) []byte {
	r.t.Helper()
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(n)}).Read(content) // it never fails
	path := segment.ObjectPath(r.layout.Folder(p), n, 0, "")
	file := filepath.Join(r.root(), path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		r.t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	r.redis.Exec("HSET", r.layout.ManifestKey(p), n.String(), fmt.Sprintf(
		`{"v":1,"state":"SEALED","tier":"REMOTE","firstId":"1-1","lastId":"2-1","count":2,"local":"GONE","object":{"path":%q,"bytes":%d,"etag":"","sha256":%q}}`,
		path, size, hex.EncodeToString(sum[:])))
	return content
}

// systemCalls are the reads and writes of a process so far, sendfile(2) among
// them, as the kernel counts them.
func systemCalls(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if name == "syscr" || name == "syscw" {
			n, err := strconv.Atoi(value)
			if err != nil {
				t.Fatal(err)
			}
			total += n
		}
	}
	return total
}

// A file of this machine is sent by the kernel: the process neither reads nor
// writes it, and a wrapper that came between would be seen here.
func TestServeSendsFilesByTheKernel(t *testing.T) {
	r := newFileRig(t)
	const size = 16 << 20
	content := r.large(segment.Partition{Topic: "orders"}, 0, size)
	const path = "/v1/topics/orders/0/segments/0.parquet"
	calls := map[bool]int{}
	for _, zeroCopy := range []bool{true, false} {
		p, base := r.serves(fmt.Sprintf("--zero-copy=%v", zeroCopy))
		fetch(t, base+path, 200, "Range: bytes=0-0") // the connections are made
		before := systemCalls(t, p.cmd.Process.Pid)
		if body := fetch(t, base+path, 200); !bytes.Equal(body, content) {
			t.Errorf("zero copy %v: %d bytes came, and not those of the file", zeroCopy, len(body))
		}
		calls[zeroCopy] = systemCalls(t, p.cmd.Process.Pid) - before
		p.signal(syscall.SIGTERM)
		if code := p.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit code %d: %s", code, p.log())
		}
	}
	t.Logf("reads and writes for 16 MiB: %d by the kernel, %d through the process", calls[true], calls[false])
	// The copying path reads and writes 32 KiB at once: 2 x 512 calls.
	if calls[true] > 200 || calls[false] < 3*calls[true] {
		t.Errorf("%d system calls with zero copy, %d without", calls[true], calls[false])
	}
}

// fetch reads an answer whole; a status of 200 may be 206.
func fetch(t *testing.T, url string, want int, headers ...string) []byte {
	t.Helper()
	q, err := http.NewRequest(http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		q.Header.Set(name, value)
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	body := make([]byte, max(a.ContentLength, 0))
	_, err = io.ReadFull(a.Body, body)
	if err != nil || a.StatusCode != want && (want != http.StatusOK || a.StatusCode != http.StatusPartialContent) {
		t.Fatalf("%s: %s %v %.300s", url, a.Status, err, body)
	}
	return body
}

// Files of a bucket are passed on, or kept in a folder and then sent from there
// without the bucket; the process's memory does not grow with them.
func TestServeFromABucket(t *testing.T) {
	r := newRig(t)
	r.orders(200)
	if _, log, code := r.run("run", "--once"); code != 0 {
		t.Fatal(log)
	}
	content := r.large(segment.Partition{Topic: "large"}, 0, 16<<20)
	paths := map[string][]byte{"/v1/topics/large/0/segments/0.parquet": content}
	for p := range 4 {
		file, err := os.ReadFile(filepath.Join(r.root(), fmt.Sprintf("korvet:storage:local:orders:%d/1.parquet", p)))
		if err != nil {
			t.Fatal(err)
		}
		paths[fmt.Sprintf("/v1/topics/orders/%d/segments/1.parquet", p)] = file
	}
	check := func(base, what string) {
		t.Helper()
		for path, want := range paths {
			if got := fetch(t, base+path, 200); !bytes.Equal(got, want) {
				t.Errorf("%s: %s: %d bytes came, and not those of the object", what, path, len(got))
			}
			for _, at := range []int{0, len(want) - 100} {
				if got := fetch(t, base+path, 206, fmt.Sprintf("Range: bytes=%d-%d", at, at+99)); !bytes.Equal(got, want[at:at+100]) {
					t.Errorf("%s: %s: a range at %d is another", what, path, at)
				}
			}
		}
	}
	for _, args := range [][]string{nil, {"--from-store"}} {
		p, base := r.serves(args...)
		check(base, "passed on")
		if peak := highWater(t, p); peak > 96<<20 {
			t.Errorf("%v: the process took %d MiB", args, peak>>20)
		}
	}
	dir := t.TempDir()
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_CACHE_DIR="+dir)
	p, base := r.serves()
	check(base, "cached")
	kept, err := os.ReadDir(dir)
	if err != nil || len(kept) != len(paths) {
		t.Errorf("%d files are kept, %v", len(kept), err)
	}
	_, byStore := r.serves("--from-store") // another process that shares the folder, and learns the checksums from the store
	check(byStore, "cached, from the store")
	if now, _ := os.ReadDir(dir); len(now) > len(kept)+1 { // the large one was put without a checksum
		t.Errorf("%d files are kept by two processes, %d by one", len(now), len(kept))
	}
	for _, k := range kept { // a file that somebody has changed is fetched anew
		if err := os.Truncate(filepath.Join(dir, k.Name()), 50); err != nil {
			t.Fatal(err)
		}
	}
	check(base, "after the cache was damaged")
	before := systemCalls(t, p.cmd.Process.Pid)
	fetch(t, base+"/v1/topics/large/0/segments/0.parquet", 200)
	if calls := systemCalls(t, p.cmd.Process.Pid) - before; calls > 200 {
		t.Errorf("%d system calls for 16 MiB out of the cache", calls)
	}
	if peak := highWater(t, p); peak > 96<<20 {
		t.Errorf("the process took %d MiB", peak>>20)
	}
}

// highWater is the most memory that a process has had, in bytes.
func highWater(t *testing.T, p *process) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, err := strconv.ParseInt(kb, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// SIGTERM lets an answer end that is under way, and a client that takes nothing
// does not keep the process.
func TestServeStops(t *testing.T) {
	r := newFileRig(t)
	r.large(segment.Partition{Topic: "orders"}, 0, 32<<20)
	p, base := r.serves()
	const ask = "GET /v1/topics/orders/0/segments/0.parquet HTTP/1.1\r\nHost: localhost\r\n\r\n"
	var clients []net.Conn
	for range 2 {
		c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := io.WriteString(c, ask); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	p.signal(syscall.SIGTERM)
	begun := time.Now()
	// One takes the rest; the other takes nothing, and is cut off after 15 s.
	n, err := io.CopyN(io.Discard, clients[0], 31<<20)
	if err != nil {
		t.Errorf("the answer under way was cut off after %d bytes more: %v", n, err)
	}
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit code %d: %s", code, p.log())
	}
	if took := time.Since(begun); took < 10*time.Second {
		t.Errorf("the slow client was cut off after %s", took)
	}
}
