package test

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// A store that misbehaves in a way that one pass gets over: every segment is
// moved, each by one object.
func TestOnePassGetsOverIt(t *testing.T) {
	for name, misbehave := range map[string]func(f *front){
		//fault:store | A look just after the put finds nothing | A proxy answers 404 to the first two looks at each file that was put | Every segment is moved in the same pass, nothing is put twice
		"404 after the put": func(f *front) {
			put, looks := map[string]bool{}, times{}
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "PUT file" {
					put[r.URL.Path] = true
				}
				late := kind(r) == "HEAD file" && put[r.URL.Path] && looks.first(2, r.URL.Path)
				if late {
					w.WriteHeader(http.StatusNotFound)
				}
				return late
			}
		},
		//fault:store | The store answers 409 ConditionalRequestConflict, then 200 | A proxy answers so to the first put of each file | Every segment is moved in the same pass, nothing is put twice
		"409 then 200": func(f *front) {
			puts := times{}
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				conflict := kind(r) == "PUT file" && puts.first(1, r.URL.Path)
				if conflict {
					refuse(w, r, http.StatusConflict, "ConditionalRequestConflict")
				}
				return conflict
			}
		},
		//fault:store | The store answers 500 to every request at first | A proxy answers so to the first request about each path by each method | Every segment is moved in the same pass, nothing is put twice
		"500 then 200": func(f *front) {
			asked := times{}
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				broken := asked.first(1, r.Method+r.URL.Path)
				if broken {
					refuse(w, r, http.StatusInternalServerError, "InternalError")
				}
				return broken
			}
		},
		//fault:network | The store resets every connection once | A proxy does so after 200 bytes of the first body of each file, and before the first answer to all else | Every segment is moved in the same pass, nothing is put twice
		"reset": func(f *front) {
			asked := times{}
			f.before = func(_ http.ResponseWriter, r *http.Request) bool {
				if asked.first(1, r.Method+r.URL.Path) {
					_, _ = io.CopyN(io.Discard, r.Body, 200)
					panic(http.ErrAbortHandler)
				}
				return false
			}
		},
		//fault:store | The ETag in the answer to a look is another one each time | A proxy changes it | What counts is size and checksum, every segment is moved
		"another ETag each time": func(f *front) {
			n := 0
			f.after = func(res *http.Response) {
				n++
				res.Header.Set("ETag", fmt.Sprintf(`"etag-%d"`, n))
			}
		},
		//fault:store | The store keeps no checksums and no metadata | A proxy removes both from every answer | Each file is read back before its segment is flipped
		"no checksum": func(f *front) { f.after = withoutChecksums },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.orders(30)
			f := newFront(t, r)
			f.change(misbehave)
			if _, stderr, code := r.run("run", "--once"); code != 0 {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			r.mustBeDone()
			r.mustNotPutTwice()
			if name == "no checksum" && f.seen("GET file") < 12 {
				t.Errorf("%d files were read back", f.seen("GET file"))
			}
		})
	}
}

func withoutChecksums(res *http.Response) {
	for name := range res.Header {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-checksum") || strings.HasPrefix(low, "x-amz-meta") {
			res.Header.Del(name)
		}
	}
}

// A store that does not show what it was given, or shows something else: no
// entry is flipped on it, and none is lost. Once it shows the objects, those
// that are whole are adopted and not put again.
func TestNothingIsFlippedOnALie(t *testing.T) {
	for name, lie := range map[string]func(f *front){
		//fault:store | Looks find nothing for long after the put | A proxy answers 404 to every look at a file | No segment is flipped or put twice, once looks work the objects are adopted
		"404 for long": func(f *front) {
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "HEAD file" {
					w.WriteHeader(http.StatusNotFound)
				}
				return kind(r) == "HEAD file"
			}
		},
		//fault:store | The store stores what it answers 503 to | A proxy passes every put of a file on and answers 503 | No segment is flipped or put twice, in the next pass the objects are adopted
		"stored but answered 503": func(f *front) {
			f.after = func(res *http.Response) {
				if kind(res.Request) == "PUT file" {
					res.StatusCode, res.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
					res.Header.Del("ETag")
				}
			}
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "HEAD file" { // and shows it later
					w.WriteHeader(http.StatusNotFound)
				}
				return kind(r) == "HEAD file"
			}
		},
		//fault:network | A file that is read back is cut | A store without checksums, and a proxy that cuts the answer to every read of a file | No segment is flipped or put twice, once reads work the objects are adopted
		"read back is cut": func(f *front) {
			f.after = func(res *http.Response) {
				withoutChecksums(res)
				if kind(res.Request) == "GET file" {
					res.Body = struct {
						io.Reader
						io.Closer
					}{io.MultiReader(io.LimitReader(res.Body, 100), broken{}), res.Body}
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.orders(30)
			f := newFront(t, r)
			f.change(lie)
			for range 2 { // the second finds what the first has put
				_, stderr, code := r.run("run", "--once")
				if code != 1 || !strings.Contains(stderr, "s3://bucket/korvet/korvet:storage:local:orders:") {
					t.Errorf("exit %d\n%s", code, stderr)
				}
			}
			if n := r.mustBeRight(); n != 0 {
				t.Errorf("%d segments were flipped", n)
			}
			r.mustNotPutTwice()
			put := len(r.objects())
			f.change((*front).behave)
			stdout, stderr, code := r.run("run", "--once")
			if code != 0 || put == 0 || !strings.Contains(stdout, "12 of 12 sealed segments moved") {
				t.Errorf("afterwards, with %d objects: exit %d\n%s%s", put, code, stdout, stderr)
			}
			r.mustBeDone()
			r.mustNotPutTwice()
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { panic(http.ErrAbortHandler) }

// An object that is not what was put is left where it is, and the segment goes
// to the next path.
func TestWhatIsNotWholeIsLeftAlone(t *testing.T) {
	for name, lie := range map[string]func(f *front){
		//fault:store | The store keeps half of a body and answers 200 | A proxy writes the half where the server keeps its objects | Not flipped, the half stays where it is, the next pass puts the whole at the next path
		"half of the body": func(f *front) {
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if kind(r) == "PUT file" {
					f.keepHalf(w, r)
				}
				return kind(r) == "PUT file"
			}
		},
		//fault:store | The checksum that a look shows is another one | A proxy changes it | Not flipped, the object stays where it is
		"wrong checksum": func(f *front) {
			f.after = func(res *http.Response) {
				if kind(res.Request) == "HEAD file" && res.StatusCode == http.StatusOK {
					res.Header.Set("X-Amz-Checksum-Sha256", base64.StdEncoding.EncodeToString(make([]byte, 32)))
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.orders(30)
			f := newFront(t, r)
			f.change(lie)
			_, stderr, code := r.run("run", "--once")
			if code != 1 || !strings.Contains(stderr, "bytes and SHA-256") {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			if n := r.mustBeRight(); n != 0 {
				t.Errorf("%d segments were flipped", n)
			}
			before := r.contents()
			f.change((*front).behave)
			if _, stderr, code := r.run("run", "--once"); code != 0 {
				t.Errorf("afterwards: exit %d\n%s", code, stderr)
			}
			if n := r.mustBeRight(); n != 12 {
				t.Errorf("%d segments were moved", n)
			}
			for path, body := range before {
				if r.contents()[path] != body {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
}

// contents are the bodies of all objects.
func (r *rig) contents() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	for _, path := range r.objects() {
		body, err := os.ReadFile(filepath.Join(r.root(), path))
		if err != nil {
			r.t.Fatal(err)
		}
		all[path] = string(body)
	}
	return all
}

// A store without conditional puts, or one that takes the condition and does
// not obey it, is found out, and every attempt has a path of its own. So a put
// that comes late replaces nothing.
func TestStoresWithoutConditions(t *testing.T) {
	for name, misbehave := range map[string]func(f *front){
		//fault:store | The store answers 501 to conditional puts | A proxy does | Found out, and every attempt has a path of its own
		"501": func(f *front) {
			f.before = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("If-None-Match") != "" {
					refuse(w, r, http.StatusNotImplemented, "NotImplemented")
				}
				return r.Header.Get("If-None-Match") != ""
			}
		},
		//fault:store | The store takes the condition of a put and does not obey it | A proxy removes what is there before it passes a put on | Found out by the owner marker, and every attempt has a path of its own
		"ignored": func(f *front) {
			f.before = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodPut {
					_ = os.Remove(f.file(r))
				}
				return false
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.orders(30)
			newFront(t, r).change(misbehave)
			if _, stderr, code := r.run("run", "--once"); code != 0 {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			r.mustBeDone()
			for _, path := range r.objects() {
				if base := filepath.Base(path); len(base) < len("0-0123456789abcdef.parquet") {
					t.Errorf("%s is no path of one attempt alone", path)
				}
			}
		})
	}
}

// What is at the path already is adopted if it is this very file, and left
// alone if it is another.
//
//fault:leaders | An object is at the path already, the same or another | Objects of a run before whose entries were set back, one of them changed | 412 or not, the same is adopted and not put again, beside the other the next path is taken
func TestWhatIsThereAlready(t *testing.T) {
	r := newRig(t)
	r.orders(30)
	raw := map[string]string{}
	for key, w := range r.ledger {
		raw[key] = strings.TrimSpace(r.redis.Exec("HGET", r.layout.ManifestKey(w.partition), w.number.String()))
	}
	r.pass(0)
	for key, w := range r.ledger {
		r.redis.Exec("HSET", r.layout.ManifestKey(w.partition), w.number.String(), raw[key])
	}
	other := r.objects()[0]
	r.stored(other, []byte("somebody else's"))
	f := newFront(t, r)
	looks := times{}
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		late := kind(r) == "HEAD file" && looks.first(1, r.URL.Path) // the put meets it
		if late {
			w.WriteHeader(http.StatusNotFound)
		}
		return late
	})
	r.pass(0)
	if n := r.mustBeRight(); n != 12 {
		t.Errorf("%d segments were moved", n)
	}
	if got := r.objects(); len(got) != 13 || r.contents()[other] != "somebody else's" {
		t.Errorf("objects: %q", got)
	}
}

// The objects of all attempts, answered 503, appear two seconds later.
//
//fault:store | The store stores objects 2 s after it answered 503 to them | A proxy passes puts on 2 s later, behind the program's back, for a while | A daemon goes on by itself, every segment has one object, which is whole
func TestStoredLaterButAnswered503(t *testing.T) {
	r := newRig(t)
	r.orders(30)
	f := newFront(t, r)
	var ghosts []func()
	f.set(func(w http.ResponseWriter, r *http.Request) bool {
		if kind(r) != "PUT file" {
			return false
		}
		ghost, err := f.again(r)
		if err == nil && len(ghosts) < 20 {
			ghosts = append(ghosts, ghost)
		}
		refuse(w, r, http.StatusServiceUnavailable, "ServiceUnavailable")
		return true
	})
	r.quick(closedPort(t))
	p := r.start("run")
	await(t, "puts were refused", 30*time.Second, func() bool { return f.seen("PUT file") >= 20 })
	f.set(nil)
	for _, ghost := range ghosts {
		ghost()
	}
	await(t, "all segments are remote", time.Minute, r.allRemote)
	p.kill()
	r.mustBeDone()
	r.mustNotPutTwice()
}

func (r *rig) allRemote() bool {
	for _, e := range r.entries() {
		if e.Tier != segment.Remote {
			return false
		}
	}
	return true
}
