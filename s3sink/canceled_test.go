package s3sink_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

// stuckBody passes on the first MiB of a request's body, ends the client's
// context, and is stuck until the client has given up.
type stuckBody struct {
	io.ReadCloser
	left   int
	cancel context.CancelFunc
	gone   chan struct{}
}

func (b *stuckBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.cancel()
		<-b.gone
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), 1024)])
	b.left -= n
	return n, err
}

//fault:network | The program is told to stop while the network passes nothing on | A proxy that is stuck in the middle of a body before a real server | No object appears
func TestCanceledSinglePutLeavesNothing(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	front := forward(t, server, func(p *httputil.ProxyRequest) {
		if p.In.Method == http.MethodPut {
			p.Out.Body = &stuckBody{p.Out.Body, 1 << 20, cancel, gone}
		}
	}, nil)
	front.MultipartThreshold = s3sink.MaxPartSize
	store := mustOpen(t, front, s3sink.Options{})
	_, err := store.Put(ctx, storetest.Upload("k", storetest.Body(1, 32<<20))) // more than sockets buffer
	close(gone)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("put: %v", err)
	}
	if _, err := store.Stat(t.Context(), "k"); !errors.Is(err, s3sink.ErrMissing) {
		t.Errorf("stat: %v", err)
	}
}

// TestCanceledMultipartIsAborted: the context ends while the parts are on
// their way, and yet they are cleared away.
//
//fault:store | The program is told to stop in the middle of a multipart upload | The context ends when the second part is answered, a real server | The parts are removed under a context of its own
func TestCanceledMultipartIsAborted(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	front := forward(t, server, func(*httputil.ProxyRequest) {}, func(res *http.Response) error {
		if res.Request.URL.Query().Get("partNumber") == "2" {
			cancel()
		}
		return nil
	})
	store := mustOpen(t, front, s3sink.Options{})
	_, err := store.Put(ctx, storetest.Upload("k", storetest.Body(1, 31<<20)))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("put: %v", err)
	}
	if n := server.Requests(t)["AbortMultipartUpload"]; n == 0 {
		t.Errorf("%d aborts", n)
	}
	if left := unfinished(t, server); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := store.Stat(t.Context(), "k"); !errors.Is(err, s3sink.ErrMissing) {
		t.Errorf("stat: %v", err)
	}
}

// A store that answers nothing any more, not even the abort, must not keep a
// program that was told to stop from giving its lease back in time.
//
//fault:network | The store hangs, the abort of an upload too | A proxy that does not answer any more | The put returns within 15 s
func TestCanceledMultipartOnAStoreThatHangs(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	front := forward(t, server, func(*httputil.ProxyRequest) {}, func(res *http.Response) error {
		if res.Request.URL.Query().Get("partNumber") == "2" || res.Request.Method == http.MethodDelete {
			cancel()
			<-res.Request.Context().Done() // until whoever asked gives up
		}
		return nil
	})
	store := mustOpen(t, front, s3sink.Options{})
	begun := time.Now()
	_, err := store.Put(ctx, storetest.Upload("k", storetest.Body(1, 31<<20)))
	if took := time.Since(begun); !errors.Is(err, context.Canceled) || took > 15*time.Second {
		t.Errorf("after %s: %v", took, err)
	}
}

// TestLostAnswers: the server does what it is asked, and the answers to a
// part and to the end of the upload are lost. Both are asked for again.
//
//fault:network | The answers to a part and to the end of a multipart upload are lost | A proxy that does what is asked and breaks the connection | Both are asked for again, the object is whole, no parts are left
func TestLostAnswers(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	var mu sync.Mutex
	lost := map[string]bool{}
	front := forward(t, server, func(*httputil.ProxyRequest) {}, func(res *http.Response) error {
		mu.Lock()
		defer mu.Unlock()
		q := res.Request.URL.Query()
		what := res.Request.Method + q.Get("partNumber")
		if (what == "PUT1" || what == "POST" && q.Has("uploadId")) && !lost[what] {
			lost[what] = true
			return errors.New("lost")
		}
		return nil
	})
	store := mustOpen(t, front, s3sink.Options{})
	u := storetest.Upload("k", storetest.Body(1, 11<<20))
	// S3 lets an upload be completed twice; other stores say that it is gone.
	if _, err := store.Put(t.Context(), u); err != nil && !errors.Is(err, s3sink.ErrExists) {
		t.Errorf("put: %v", err)
	}
	if len(lost) != 2 {
		t.Errorf("lost: %v", lost)
	}
	if info, err := store.Stat(t.Context(), "k"); err != nil || info.SHA256 != u.SHA256 || info.Size != u.Size {
		t.Errorf("stat: %+v, %v", info, err)
	}
	if left := unfinished(t, server); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
