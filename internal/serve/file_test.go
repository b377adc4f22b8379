package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/segment"
)

const file7 = "/v1/topics/orders/0/segments/7.parquet"

// Every kind of question about a file, where files lie on this machine and are
// sent by the kernel, where they are copied, and where they come from a store.
func TestFilesAndRanges(t *testing.T) {
	content := bytesOf(pieceSize + 12345)
	size := len(content)
	for _, kind := range []string{"kernel", "copied", "store"} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			o := w.put(orders, 7, content)
			w.away = kind == "store"
			s := w.start(func(c *Config) { c.ZeroCopy = kind == "kernel" })
			tag := `"` + o.SHA256 + `"`
			for _, tt := range []struct {
				headers string
				status  int
				lo, hi  int // of the content that come
			}{
				{"", 200, 0, size},
				{"Range: bytes=0-0", 206, 0, 1},
				{"Range: bytes=0-", 206, 0, size},
				{"Range: bytes=10-19", 206, 10, 20},
				{"Range: bytes=-8", 206, size - 8, size},
				{fmt.Sprintf("Range: bytes=%d-%d", pieceSize-1, pieceSize+99), 206, pieceSize - 1, pieceSize + 100},
				{fmt.Sprintf("Range: bytes=%d-", size-1), 206, size - 1, size},
				{fmt.Sprintf("Range: bytes=5-%d", 10*size), 206, 5, size},
				{fmt.Sprintf("Range: bytes=-%d", 10*size), 206, 0, size},
				{fmt.Sprintf("Range: bytes=%d-", size), 416, 0, 0},
				{"Range: bytes=9-8", 416, 0, 0},
				{"Range: bytes=x", 416, 0, 0},
				{"Range: lines=1-2", 416, 0, 0},
				{"Range: bytes=0-1,5-6", 200, 0, size}, // several are answered by the whole
				{"If-None-Match: " + tag, 304, 0, 0},
				{`If-None-Match: "other", ` + tag, 304, 0, 0},
				{"If-None-Match: *", 304, 0, 0},
				{`If-None-Match: "other"`, 200, 0, size},
				{"If-Match: " + tag, 200, 0, size},
				{`If-Match: "other"`, 412, 0, 0},
				{"If-Match: " + tag + "|Range: bytes=1-2", 206, 1, 3},
				{"If-Range: " + tag + "|Range: bytes=1-2", 206, 1, 3},
				{`If-Range: "other"|Range: bytes=1-2`, 200, 0, size},
				{"If-Range: W/" + tag + "|Range: bytes=1-2", 200, 0, size},
				{"If-Range: Tue, 14 Nov 2023 22:13:20 GMT|Range: bytes=1-2", 200, 0, size},
				{"If-Modified-Since: Tue, 14 Nov 2023 22:13:20 GMT", 304, 0, 0},
				{"If-Unmodified-Since: Tue, 14 Nov 2023 22:13:19 GMT", 412, 0, 0},
			} {
				headers := strings.Split(tt.headers, "|")
				if tt.headers == "" {
					headers = nil
				}
				for _, method := range []string{http.MethodGet, http.MethodHead} {
					a := s.ask(method, file7, headers...)
					want := content[tt.lo:tt.hi]
					if a.status != tt.status || a.err != nil {
						t.Errorf("%s %s: %d %v, want %d", method, tt.headers, a.status, a.err, tt.status)
						continue
					}
					if a.status >= 300 {
						continue
					}
					if a.header.Get("Content-Length") != fmt.Sprint(len(want)) || a.header.Get("ETag") != tag || a.header.Get("Accept-Ranges") != "bytes" ||
						a.header.Get("Content-Type") != contentType || !strings.HasPrefix(a.header.Get("Repr-Digest"), "sha-256=:") {
						t.Errorf("%s %s: %v", method, tt.headers, a.header)
					}
					if a.status == 206 && a.header.Get("Content-Range") != fmt.Sprintf("bytes %d-%d/%d", tt.lo, tt.hi-1, size) {
						t.Errorf("%s %s: %s", method, tt.headers, a.header.Get("Content-Range"))
					}
					if method == http.MethodGet && !bytes.Equal(a.body, want) {
						t.Errorf("%s: %d bytes came, and not those of the file", tt.headers, len(a.body))
					}
				}
			}
			if f := w.failures(); f != "[]" {
				t.Error(f)
			}
		})
	}
}

// What is answered without the content does not open the file: it might have to be
// fetched for it.
func TestConditionalQuestionsOpenNothing(t *testing.T) {
	w := newWorld(t)
	o := w.put(orders, 7, bytesOf(100))
	s := w.start(func(*Config) {})
	s.get(file7, `If-None-Match: "`+o.SHA256+`"`)
	s.get(file7, `If-Match: "other"`)
	s.get(file7, "Range: bytes=100-")
	s.get("/v1/topics/orders/0/segments/7")
	if len(w.opened) != 0 {
		t.Error(w.opened)
	}
	w.away = true
	s.get(file7, "Range: bytes=7-10")
	s.ask(http.MethodHead, file7)
	if got, want := fmt.Sprint(w.opened), fmt.Sprintf("[%[1]s %[1]s 7+4 %[1]s 99+2]", o.Path); got != want {
		t.Errorf("opened %s, want %s", got, want)
	}
}

// Only what the manifest names as a file of that segment is served.
func TestOnlyWhatTheManifestNames(t *testing.T) {
	w := newWorld(t)
	o := w.put(orders, 7, bytesOf(100))
	w.put(segment.Partition{Topic: "other"}, 7, bytesOf(50))
	secret := filepath.Join(w.dir, "secret.parquet")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	remote := func(path string) segment.Entry {
		return segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 1, FirstID: segment.ID{Ms: 1}, LastID: segment.ID{Ms: 1}, Object: &segment.Object{Path: path, Bytes: 6}}
	}
	w.enter(orders, 0, segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount})
	w.enter(orders, 1, segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: 3})
	w.enter(orders, 2, remote("secret.parquet"))
	w.enter(orders, 3, remote("../../etc/passwd"))
	w.enter(orders, 4, remote(w.layout.Folder(segment.Partition{Topic: "other"})+"/7.parquet"))
	w.enter(orders, 5, remote(w.layout.Folder(orders)+"/7.parquet"))
	e := remote(segment.ObjectPath(w.layout.Folder(orders), 6, 0, ""))
	e.State, e.DeletingAt = segment.Deleting, 1
	w.enter(orders, 6, e)
	w.raw(orders, "8", "nonsense")
	s := w.start(func(*Config) {})
	for path, want := range map[string]int{
		"/v1/topics/orders/0/segments/7.parquet":                       200,
		"/v1/topics/orders/0/segments/0.parquet":                       404,
		"/v1/topics/orders/0/segments/1.parquet":                       404,
		"/v1/topics/orders/0/segments/2.parquet":                       502,
		"/v1/topics/orders/0/segments/3.parquet":                       502,
		"/v1/topics/orders/0/segments/4.parquet":                       502,
		"/v1/topics/orders/0/segments/5.parquet":                       502,
		"/v1/topics/orders/0/segments/6.parquet":                       404,
		"/v1/topics/orders/0/segments/6":                               404,
		"/v1/topics/orders/0/segments/8.parquet":                       502,
		"/v1/topics/orders/0/segments/9.parquet":                       404,
		"/v1/topics/orders/0/segments/07.parquet":                      404,
		"/v1/topics/orders/0/segments/+7.parquet":                      404,
		"/v1/topics/orders/0/segments/7-1.parquet":                     404,
		"/v1/topics/orders/0/segments/7.parquet.parquet":               404,
		"/v1/topics/orders/0/segments/..%2f0%2f7.parquet":              404,
		"/v1/topics/orders/0/segments/..%2f..%2fsecret":                404,
		"/v1/topics/orders/00/segments/7.parquet":                      404,
		"/v1/topics/orders/-1/segments/7.parquet":                      404,
		"/v1/topics/orders/1/segments/7.parquet":                       404,
		"/v1/topics/../orders/0/segments/7.parquet":                    404,
		"/v1/topics/%2e%2e/0/segments/7.parquet":                       404,
		"/v1/topics/orders%2f0/0/segments/7.parquet":                   404,
		"/v1/topics/orders%00/0/segments/7.parquet":                    404,
		"/v1/topics/orders:0/0/segments/7.parquet":                     404,
		"/v1/topics/korvet:storage:local:orders/0/segments/7":          404,
		"/v1/streams/..%2fsecret/segments/7.parquet":                   404,
		"/v1/streams/%2e%2e/segments/7.parquet":                        404,
		"/v1/streams/" + strings.Repeat("x", 2000) + "/segments/7":     404,
		"/v1/streams/korvet:storage:local:orders:0/segments/7.parquet": 404,
		"//v1/topics/orders/0/segments/7.parquet":                      200, // after a redirect
		"/" + o.Path:        404,
		"/secret.parquet":   404,
		"/v1/topics/orders": 404,
		"/v1":               404,
		"/":                 404,
	} {
		w.opened = nil
		a := s.get(path)
		if a.status != want || bytes.Contains(a.body, []byte("secret\n")) || string(a.body) == "secret" {
			t.Errorf("%s: %d %.200s, want %d", path, a.status, a.body, want)
		}
		if want != 200 && len(w.opened) > 0 {
			t.Errorf("%s: opened %s", path, w.opened)
		}
	}
}

// A file that is not there, or not as large as its entry says, is an error before
// the first byte; one that ends too soon cuts the answer off.
func TestFilesThatAreNotWhatTheyShouldBe(t *testing.T) {
	for _, away := range []bool{false, true} {
		w := newWorld(t)
		o := w.put(orders, 7, bytesOf(200_000))
		w.away = away
		file := filepath.Join(w.dir, o.Path)
		s := w.start(func(*Config) {})
		if err := os.Truncate(file, 100_000); err != nil {
			t.Fatal(err)
		}
		if a := s.ask(http.MethodHead, file7); a.status != 502 {
			t.Errorf("away %v: HEAD of a short file: %d", away, a.status)
		}
		a := s.get(file7)
		if !away && (a.status != 502 || a.header.Get("ETag") != "" || a.header.Get("Repr-Digest") != "") {
			t.Errorf("a short file: %d %v %s", a.status, a.header, a.body)
		}
		if away && (a.status != 200 || a.err == nil) {
			t.Errorf("a short object: %d, %d bytes, %v", a.status, len(a.body), a.err)
		}
		if a := s.get(file7, "Range: bytes=150000-150009"); a.status != 502 {
			t.Errorf("away %v: a range behind the end: %d", away, a.status)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			if a := s.ask(method, file7); a.status != 502 {
				t.Errorf("away %v: %s of a file that is gone: %d", away, method, a.status)
			}
		}
		if f := w.failures(); !strings.Contains(f, o.Path) {
			t.Error(f)
		}
		w.down = errors.New("redis is away")
		if a := s.get(file7); a.status != 503 || a.header.Get("Retry-After") == "" || bytes.Contains(a.body, []byte("away")) {
			t.Errorf("without Redis: %d %s", a.status, a.body)
		}
		w.down = nil
	}
}

// swapped changes the manifest when its file is opened.
type swapped struct {
	*world
	change func()
}

func (s swapped) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := s.world.Peek(ctx, q)
	s.change()
	return a, err
}

// An object that goes between the look at the entry and its first byte is no
// damage.
func TestEntriesThatChangeMeanwhile(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world, segment.Object)
		want   int
	}{
		"deleted": {func(w *world, _ segment.Object) { w.raw(orders, "7", "") }, 404},
		"another copy": {func(w *world, o segment.Object) {
			o.Path = segment.ObjectPath(w.layout.Folder(orders), 7, 1, "")
			w.enter(orders, 7, segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: 1, FirstID: segment.ID{Ms: 1}, LastID: segment.ID{Ms: 1}, Object: &o})
		}, 503},
		"the same": {func(*world, segment.Object) {}, 502},
	} {
		w := newWorld(t)
		o := w.put(orders, 7, bytesOf(1000))
		if err := os.Remove(filepath.Join(w.dir, o.Path)); err != nil {
			t.Fatal(err)
		}
		s := w.start(func(*Config) {}, func(s *server) {
			s.parts.Manifests = swapped{w, func() { tt.change(w, o) }}
		})
		if a := s.get(file7); a.status != tt.want {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// A content is sent by the reply; whatever else would read it is found out.
func TestContentIsNotReadBehindTheReply(t *testing.T) {
	c := &content{}
	if _, err := c.Read(nil); err == nil || c.failed == nil {
		t.Error(err)
	}
	if _, err := c.Seek(-1, 0); err == nil {
		t.Error("it went to before the beginning")
	}
}
