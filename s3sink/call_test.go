package s3sink

import (
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"
)

// callers notes what a store tells of its attempts.
type callers struct {
	mu    sync.Mutex
	calls []Call
}

func (c *callers) told(call Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
}

// ops are the operations with what came of them.
func (c *callers) ops() (ops []string) {
	for _, call := range c.calls {
		op := call.Op
		if call.Class != "" {
			op += " " + string(call.Class)
		}
		ops = append(ops, op)
	}
	return ops
}

func TestEveryAttemptIsTold(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(500, "InternalError", "m"), s3Error(503, "SlowDown", "m", "Retry-After", "7"), ok, s3Error(404, "NoSuchKey", "m"))
	var c callers
	b.opt.OnCall = c.told
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(t.Context(), "other"); ClassOf(err) != ClassMissing {
		t.Error(err)
	}
	if want := []string{"put unavailable", "put throttled", "put", "get missing"}; !slices.Equal(c.ops(), want) {
		t.Errorf("%q, want %q", c.ops(), want)
	}
	for _, call := range c.calls {
		if call.Took <= 0 || call.Took > time.Minute || call.Waited < 0 {
			t.Errorf("%+v", call)
		}
	}
}

// The time until a request may begin is not that of the request.
func TestTheWaitForATurnIsTold(t *testing.T) {
	b := newBench(t, Limits{BackoffCap: time.Nanosecond}, ok)
	var c callers
	b.opt.OnCall = c.told
	b.throttle.fewer(0, 20*time.Second) // another request was told to wait
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if len(c.calls) != 1 || c.calls[0].Waited < 19*time.Second || c.calls[0].Took > 10*time.Second {
		t.Errorf("%+v", c.calls)
	}
}

func TestStepsOfAnUploadAreTold(t *testing.T) {
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			_, _ = w.Write([]byte("<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>"))
		case r.Method == http.MethodPost:
			s3Error(403, "AccessDenied", "m")(w, r)
		case r.Method == http.MethodDelete:
			s3Error(404, "NoSuchUpload", "m")(w, r)
		default:
			ok(w, r)
		}
	})
	b.trustParts()
	var c callers
	b.opt.OnCall = c.told
	if _, err := b.Put(t.Context(), upload("k", make([]byte, 7<<20))); ClassOf(err) != ClassDenied {
		t.Fatal(err)
	}
	if want := []string{"begin", "part", "part", "complete denied", "abort other"}; !slices.Equal(c.ops(), want) {
		t.Errorf("%q, want %q", c.ops(), want)
	}
	for _, call := range c.calls {
		if !slices.Contains(Operations(), call.Op) {
			t.Errorf("%s is not listed", call.Op)
		}
	}
}

func TestClassesAreWhole(t *testing.T) {
	tree, err := parser.ParseFile(token.NewFileSet(), "errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var consts []Class
	ast.Inspect(tree, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && v.Type != nil {
			if of, ok := v.Type.(*ast.Ident); ok && of.Name == "Class" {
				text, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				consts = append(consts, Class(text))
			}
		}
		return true
	})
	if !slices.Equal(consts, Classes()) {
		t.Errorf("the constants are %q, and %q are listed", consts, Classes())
	}
}
