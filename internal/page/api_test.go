package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/board"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// decoded is the JSON of an answer that must be of a status.
func decoded[T any](t *testing.T, w *httptest.ResponseRecorder, status int) (v T) {
	t.Helper()
	if w.Code != status || w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s %s", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestStatusAsJSON(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rrbso", "o"}, "payments": {"rro"}}).lead()
	s := decoded[board.Status](t, r.ask(http.MethodGet, "/api/v1/status?limit=1&offset=1&topics_limit=1&sort=size", ""), http.StatusOK)
	if s.Partitions.Total != 3 || s.Partitions.Items[0].Topic != "payments" || s.Topics.Items[0].Topic != "orders" || s.Health.Level != board.LevelGood || s.Counts.Partitions != 3 {
		t.Errorf("%+v", s)
	}
	s = decoded[board.Status](t, r.ask(http.MethodGet, "/api/v1/status?topic=orders&only=behind", ""), http.StatusOK)
	if s.Partitions.Total != 1 || s.Partitions.Limit != apiLimit || s.Partitions.Items[0].Runs[2].State != "sealed" || s.Topics.Total != 1 {
		t.Errorf("%+v", s.Partitions)
	}
	for _, q := range []string{"limit=1001", "limit=-1", "offset=x", "topics_limit=1e3", "only=all", "sort=name", "limit=99999999999999999999"} {
		got := decoded[struct{ Error string }](t, r.ask(http.MethodGet, "/api/v1/status?"+q, ""), http.StatusBadRequest)
		if name, _, _ := strings.Cut(q, "="); !strings.HasPrefix(got.Error, name+" ") {
			t.Errorf("%s: %q", q, got.Error)
		}
	}
}

// Lists are lists and never null, whatever is not known.
func TestListsAreNeverNull(t *testing.T) {
	r := newRig(t, nil)
	for _, body := range []string{r.ask(http.MethodGet, "/api/v1/status", "").Body.String()} {
		for _, list := range []string{"members", "paused", "outages", "warnings", "removed", "passes", "settings", "items", "list"} {
			if !strings.Contains(body, fmt.Sprintf("%q:[]", list)) {
				t.Errorf("%s is no empty list in %s", list, body)
			}
		}
	}
}

func TestOnePartitionAsJSON(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rrbso", "o"}, "clicks:raw": {"bo"}}).lead()
	r.board.Failed(offload.Problem{Topic: "orders", Partition: 0, Segment: "3", Reason: offload.ReasonStore, Err: errors.New("x")})
	r.board.Failed(offload.Problem{Topic: "orders", Partition: 1, Segment: "0", Reason: offload.ReasonStore, Err: errors.New("y")})
	p := decoded[onePartition](t, r.ask(http.MethodGet, "/api/v1/partitions/orders/0", ""), http.StatusOK)
	if p.Topic != "orders" || p.Both != 1 || len(p.Problems) != 1 || p.Problems[0].Text != "x" || p.Runs[2].State != "parked" {
		t.Errorf("%+v", p)
	}
	if p = decoded[onePartition](t, r.ask(http.MethodGet, "/api/v1/streams?key=clicks:raw", ""), http.StatusOK); !p.Plain || p.Problems == nil {
		t.Errorf("%+v", p)
	}
	for path, status := range map[string]int{"/api/v1/partitions/orders/2": 404, "/api/v1/partitions/orders/x": 400, "/api/v1/partitions/none/0": 404, "/api/v1/streams": 404, "/api/v1/streams?key=orders": 404} {
		decoded[struct{ Error string }](t, r.ask(http.MethodGet, path, ""), status)
	}
}

func TestWhatIsTheSameIsNotSentAgain(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"rso"}}).lead()
	first := r.ask(http.MethodGet, "/api/v1/status", "")
	tag := first.Header().Get("ETag")
	if tag == "" {
		t.Fatal("no ETag")
	}
	if w := r.ask(http.MethodGet, "/api/v1/status", "", "If-None-Match", tag); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	r.board.Finished(offload.Outcome{Partition: segment.Partition{Topic: "orders"}, Segment: 1, Result: offload.Copied})
	if w := r.ask(http.MethodGet, "/api/v1/status", "", "If-None-Match", tag); w.Code != http.StatusOK || w.Header().Get("ETag") == tag {
		t.Errorf("%d %s", w.Code, w.Header().Get("ETag"))
	}
}

func TestPauseAndResume(t *testing.T) {
	type answer struct {
		Paused []board.Pause
		Total  int `json:"paused_total"`
	}
	r := newRig(t, map[string][]string{"orders": {"o"}}).lead()
	post := func(path, body string) *httptest.ResponseRecorder {
		return r.ask(http.MethodPost, path, body, "Content-Type", "application/json; charset=utf-8")
	}
	got := decoded[answer](t, post("/api/v1/pause", `{"topic":"orders","reason":"store is moved"}`), http.StatusOK)
	if len(got.Paused) != 1 || got.Paused[0].Name != "orders" || got.Paused[0].Reason != "store is moved" || !strings.HasPrefix(got.Paused[0].By, "http client ") {
		t.Errorf("%+v", got)
	}
	if !r.board.Status(board.Query{Limit: 1}).Partitions.Items[0].Paused {
		t.Error("the board does not show it")
	}
	decoded[answer](t, post("/api/v1/pause", `{"all":true}`), http.StatusOK)
	decoded[answer](t, post("/api/v1/pause", `{"stream":"any key: \u0000"}`), http.StatusOK)
	if got = decoded[answer](t, post("/api/v1/resume", `{"topic":"orders"}`), http.StatusOK); len(got.Paused) != 2 {
		t.Errorf("%+v", got)
	}
	for body, want := range map[string]string{
		``: "EOF", `{}`: "say one of", `{"all":true,"topic":"orders"}`: "say one of", `{"topics":"orders"}`: "unknown field", `{"topic":"a/b"}`: "only a-z",
		`{"all":true} x`: "nothing behind it", `[]`: "cannot unmarshal", `{"all":true,"reason":"` + strings.Repeat("x", 501) + `"}`: "500 at most",
	} {
		if got := decoded[struct{ Error string }](t, post("/api/v1/pause", body), http.StatusBadRequest); !strings.Contains(got.Error, want) {
			t.Errorf("%s: %q, want %q", body, got.Error, want)
		}
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		decoded[struct{ Error string }](t, r.ask(http.MethodPost, "/api/v1/pause", `{"all":true}`, "Content-Type", kind), http.StatusUnsupportedMediaType)
	}
	if w := r.ask(http.MethodGet, "/api/v1/pause", ""); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
	if len(r.paus.all.List) != 2 {
		t.Errorf("what was refused was done: %+v", r.paus.all)
	}
	r.paus.err = errors.New("redis is read-only")
	if got := decoded[struct{ Error string }](t, post("/api/v1/resume", `{"all":true}`), http.StatusServiceUnavailable); got.Error != "redis is read-only" {
		t.Errorf("%q", got.Error)
	}
	r.site.o.Pauser = func() Pauser { return nil }
	decoded[struct{ Error string }](t, post("/api/v1/pause", `{"all":true}`), http.StatusServiceUnavailable)
}

// Ten thousand partitions stay usable: what is sent is a page of them.
func TestTenThousandPartitions(t *testing.T) {
	topics := map[string][]string{}
	for i := range 1000 {
		topics[fmt.Sprintf("topic%04d", i)] = []string{"ro", "ro", "ro", "ro", "ro", "ro", "ro", "ro", "ro", "so"}
	}
	r := newRig(t, topics).lead()
	for path, most := range map[string]int{"/": 200_000, "/?sort=lag&only=behind&p=20": 200_000, "/api/v1/status": 200_000, "/api/v1/status?limit=1000&topics_limit=1000": 2_000_000} {
		begun := time.Now()
		w := r.ask(http.MethodGet, path, "")
		t.Logf("%s: %d bytes in %s", path, w.Body.Len(), time.Since(begun))
		if w.Code != http.StatusOK || w.Body.Len() > most || time.Since(begun) > 10*time.Second {
			t.Errorf("%s: %d, %d bytes (%d at most) in %s", path, w.Code, w.Body.Len(), most, time.Since(begun))
		}
	}
}
