package s3sink

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"
)

//fault:network | A download stands still in the middle | A stub that stops writing | It is cut off after the time without progress
func TestDownloadThatStandsStill(t *testing.T) {
	b := newBench(t, Limits{NoProgress: 50 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		hang(t)(w, r)
	})
	body, err := b.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); string(got) != "half" || ClassOf(err) != ClassTimeout {
		t.Errorf("read %q, %v", got, err)
	}
}

//fault:network | A download is cut before its length | A stub | An error, never a short object
func TestDownloadThatIsCutShort(t *testing.T) {
	b := newBench(t, Limits{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	body, err := b.Open(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) || ClassOf(err) != ClassUnavailable {
		t.Errorf("got %v", err)
	}
}

//fault:time | The program is told to stop during a download | The context ends | The read ends at once
func TestDownloadEndsWithContext(t *testing.T) {
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		w.Header().Set("Content-Length", "100")
		_ = http.NewResponseController(w).Flush()
		hang(t)(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	body, err := b.Open(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	cancel()
	if _, err := io.ReadAll(body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
