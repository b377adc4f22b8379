package s3sink

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// metered notes what goes out, and takes a time for each piece.
type metered struct {
	takes time.Duration
	bytes atomic.Int64
	calls atomic.Int64
}

func (m *metered) pace(ctx context.Context, n int) error {
	m.bytes.Add(int64(n))
	m.calls.Add(1)
	return sleep(ctx, m.takes)
}

// pacedStores are a bucket and a folder with a pace.
func pacedStores(t *testing.T, m *metered, limits Limits, answers ...http.HandlerFunc) map[string]Store {
	t.Helper()
	b := newBench(t, limits, answers...)
	b.opt.Pace = m.pace
	dir, err := Open(Config{URL: "file://" + t.TempDir()}, Options{Owner: Owner{Namespace: "korvet"}, Pace: m.pace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dir.Close)
	return map[string]Store{"s3": b.bucket, "file": dir}
}

// What is held back on purpose is not slow: neither the deadline of the attempt
// nor the one between two bytes ends it.
//
//fault:store | An upload is slower than any deadline, because of upload-rate | A stub, and waits that are longer than each limit | It is finished at the first attempt
func TestAPacedUploadIsNotSlow(t *testing.T) {
	m := &metered{takes: 120 * time.Millisecond}
	for name, s := range pacedStores(t, m, Limits{Request: 100 * time.Millisecond, MinRate: 1 << 40, NoProgress: 60 * time.Millisecond, Attempts: 1}, ok) {
		m.bytes.Store(0)
		body := bytes.Repeat([]byte("x"), 100<<10)
		if _, err := s.Put(t.Context(), upload("k", body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := m.bytes.Load(); got != int64(len(body)) {
			t.Errorf("%s: %d bytes were paced, want %d", name, got, len(body))
		}
	}
}

// TestEveryByteThatGoesOutIsPaced: those of parts, each once although they are
// hashed before, and those of attempts that failed.
func TestEveryByteThatGoesOutIsPaced(t *testing.T) {
	m := new(metered)
	size := int64(3*MinPartSize + 1)
	b := newBench(t, Limits{}, uploads(ok))
	b.opt.Pace = m.pace
	if _, err := b.putParts(t.Context(), request{op: "put", key: "k"}, upload("k", make([]byte, size))); err != nil || m.bytes.Load() != size {
		t.Errorf("in parts: %d of %d bytes, %v", m.bytes.Load(), size, err)
	}
	m = new(metered)
	s := pacedStores(t, m, Limits{}, s3Error(http.StatusInternalServerError, "InternalError", ""), ok)["s3"]
	if _, err := s.Put(t.Context(), upload("k", make([]byte, 1000))); err != nil || m.bytes.Load() != 2000 {
		t.Errorf("at the second attempt: %d bytes, want 2000, %v", m.bytes.Load(), err)
	}
}

// uploads answers the requests of a multipart upload.
func uploads(part http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost && r.URL.Query().Has("uploads"):
			_, _ = w.Write([]byte(`<InitiateMultipartUploadResult><UploadId>id</UploadId></InitiateMultipartUploadResult>`))
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte(`<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>k</Key><ETag>"etag"</ETag></CompleteMultipartUploadResult>`))
		default:
			part(w, r)
		}
	}
}

// A context that ends, ends the wait.
func TestAPacedUploadIsCancelled(t *testing.T) {
	m := &metered{takes: time.Hour}
	for name, s := range pacedStores(t, m, Limits{}, ok) {
		m.calls.Store(0)
		ctx, cancel := context.WithCancel(t.Context())
		var putting sync.WaitGroup
		var err error
		putting.Go(func() { _, err = s.Put(ctx, upload("k", make([]byte, 1000))) })
		for m.calls.Load() == 0 {
			<-time.After(time.Millisecond)
		}
		cancel()
		putting.Wait()
		if !errors.Is(err, context.Canceled) || ClassOf(err) == ClassInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestDeadline: the clock runs but while it is held, and does not begin anew.
func TestDeadline(t *testing.T) {
	ctx, d, stop := withDeadline(t.Context(), time.Minute)
	defer stop()
	goOn := d.hold()
	if d.left > time.Minute || d.left < 50*time.Second || d.timer.Stop() {
		t.Errorf("held with %s left", d.left)
	}
	d.left = 0
	goOn()
	<-ctx.Done()
	if context.Cause(ctx) != context.DeadlineExceeded { //nolint:errorlint // it is the bare one
		t.Error(context.Cause(ctx))
	}
	d.hold()() // too late: it stays as it is
}
