package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

func TestTopicsAndStreams(t *testing.T) {
	w := newWorld(t)
	s := w.start(func(*Config) {})
	if a := s.get("/v1/topics"); string(a.body) != `{"topics":[{"name":"a","partitions":[0,3]},{"name":"b","partitions":[0]}]}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get("/v1/streams"); string(a.body) != `{"streams":[{"key":"s/1","segments":"/v1/streams/s%2F1/segments"}]}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	w.down = errors.New("away") // what was heard lately is still told
	if a := s.get("/v1/topics"); a.status != 200 {
		t.Error(a.status)
	}
}

func TestOneSegmentAsJSON(t *testing.T) {
	w := newWorld(t)
	plain := segment.Partition{Topic: "s/1 ü", Plain: true}
	o := w.put(plain, 7, bytesOf(10))
	w.enter(plain, 8, segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount})
	s := w.start(func(*Config) {})
	const base = "/v1/streams/s%2F1%20%C3%BC/segments"
	want := fmt.Sprintf(`{"segment":7,"state":"SEALED","tier":"REMOTE","local":"GONE","first_id":"1-1","last_id":"2-10","count":7,"bytes":10,"sha256":"%s","remote_at":"2023-11-14T22:13:20.123Z","file":"%s/7.parquet"}`, o.SHA256, base)
	if a := s.get(base + "/7"); string(a.body) != want+"\n" {
		t.Errorf("%d %s, want %s", a.status, a.body, want)
	}
	if a := s.get(base + "/8"); string(a.body) != `{"segment":8,"state":"OPEN","tier":"LOCAL"}`+"\n" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get(base + "/7.parquet"); a.status != 200 || len(a.body) != 10 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.get(base); a.status != 200 || !strings.Contains(string(a.body), want) {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// The list comes in pages, in the order of the numbers, and holds a page at a time.
func TestSegmentsInPages(t *testing.T) {
	w := newWorld(t)
	for n := range segment.Number(250) {
		state := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: int64(n)}
		if n%50 == 0 {
			state.State, state.DeletingAt = segment.Deleting, 1
		}
		w.enter(orders, n, state)
	}
	w.raw(orders, "1000", "nonsense")
	w.raw(orders, "alien", "{}")
	s := w.start(func(*Config) {})
	var seen []string
	path, pages := "/v1/topics/orders/0/segments?limit=100", 0
	for path != "" {
		a := s.get(path)
		var v segmentsView
		if err := json.Unmarshal(a.body, &v); err != nil || a.status != 200 {
			t.Fatalf("%d %v %s", a.status, err, a.body)
		}
		if v.Illegal != 1 || len(v.Segments) > 100 {
			t.Errorf("%d unreadable, %d segments", v.Illegal, len(v.Segments))
		}
		for _, one := range v.Segments {
			seen = append(seen, one.Segment.String())
		}
		path = v.Next
		pages++
	}
	if pages != 3 || len(seen) != 245 || seen[0] != "1" || seen[244] != "249" || seen[99] != "102" {
		t.Errorf("%d pages, %d segments: %v", pages, len(seen), seen)
	}
	for path, want := range map[string]int{
		"?limit=0": 400, "?limit=10001": 400, "?limit=x": 400, "?from=x": 400, "?from=-1": 400, "?form=3": 400, "?from=1&from=2": 400, "?from=%zz": 400, "?from=9999": 200,
	} {
		if a := s.get("/v1/topics/orders/0/segments" + path); a.status != want {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	if a := s.get("/v1/topics/orders/1/segments"); a.status != 404 {
		t.Error(a.status)
	}
	w.down = errors.New("away")
	if a := s.get("/v1/topics/orders/0/segments"); a.status != 503 {
		t.Error(a.status)
	}
}

// A manifest's field may come twice while it is read; the last value counts.
func TestFieldsThatComeTwice(t *testing.T) {
	for _, most := range []int{2, 3, 100} {
		s := smallest{most: most}
		for round := range int64(3) {
			for n := range segment.Number(5) {
				s.add(segmentView{Segment: 4 - n, Bytes: round})
			}
		}
		s.cut()
		if len(s.all) != min(most, 5) {
			t.Fatalf("%d: %v", most, s.all)
		}
		for i, v := range s.all {
			if v.Segment != segment.Number(i) || v.Bytes != 2 {
				t.Errorf("%d: %v", most, s.all)
			}
		}
	}
}

func TestMessages(t *testing.T) {
	w := newWorld(t)
	var asked Query
	w.read = func(_ context.Context, p segment.Partition, q Query, line func([]byte) error) error {
		asked = q
		if p.Number == 9 {
			return fmt.Errorf("%s: %w", p, ErrNoPartition)
		}
		if q.Decompress == "bad" {
			return fmt.Errorf("decompress: there is no bad: %w", ErrQuestion)
		}
		for i := range 10_000 {
			if err := line(fmt.Appendf(nil, `{"id":"%d-0"}`+"\n", i)); err != nil {
				return err
			}
		}
		return nil
	}
	s := w.start(func(*Config) {})
	const base = "/v1/topics/orders/0/messages"
	a := s.get(base)
	if lines := strings.Split(string(a.body), "\n"); a.err != nil || len(lines) != 10_001 || lines[9999] != `{"id":"9999-0"}` || a.header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("%v %d lines %v", a.err, len(lines), a.header)
	}
	if a := s.ask(http.MethodHead, base); a.status != 200 || asked.Limit != 1 {
		t.Errorf("HEAD: %d %+v", a.status, asked)
	}
	const most = 1<<64 - 1
	for query, want := range map[string]Query{
		"":                         {Tier: "remote"},
		"?from=5-3&to=7-1&limit=2": {Tier: "remote", From: segment.ID{Ms: 5, Seq: 3}, To: segment.ID{Ms: 7, Seq: 1}, Limit: 2},
		"?from=5&to=7":             {Tier: "remote", From: segment.ID{Ms: 5}, To: segment.ID{Ms: 6, Seq: most}}, // a time excludes its end
		"?to=7-0":                  {Tier: "remote", To: segment.ID{Ms: 7}},                                     // an id includes it
		"?after=5-3":               {Tier: "remote", From: segment.ID{Ms: 5, Seq: 4}},
		"?after=5":                 {Tier: "remote", From: segment.ID{Ms: 6}},
		"?from=2026-01-31T12:00:00Z&to=2026-01-31":                    {Tier: "remote", From: segment.ID{Ms: 1769860800000}, To: segment.ID{Ms: 1769817599999, Seq: most}},
		"?from=2026-01-31T12:00:00%2B01:00":                           {Tier: "remote", From: segment.ID{Ms: 1769857200000}},
		"?from=2026-01-31T12:00:00+01:00":                             {Tier: "remote", From: segment.ID{Ms: 1769857200000}},
		"?from=2026-01-31T12:00Z":                                     {Tier: "remote", From: segment.ID{Ms: 1769860800000}},
		"?tier=both&reverse=true&skip=3&envelope=true&decompress=lz4": {Tier: "both", Reverse: true, Skip: 3, Envelope: true, Decompress: "lz4"},
		"?reverse=false&tier=local":                                   {Tier: "local"},
	} {
		if a := s.get(base + query); a.status != 200 || asked != want {
			t.Errorf("%s: %d %+v, want %+v", query, a.status, asked, want)
		}
	}
	for query, want := range map[string]string{
		"?from=x":                `from: \"x\": want a time such as 2026-01-31 (UTC), `,
		"?to=1-x":                `to: \"1-x\": want a time such as `,
		"?to=0-0":                `to: \"0-0\": there is no message up to this id`,
		"?to=0":                  `to: \"0\": there is no message before this time`,
		"?after=x":               `after: \"x\": want a time such as `,
		"?from=2026-01-31T12:00": "of which zone? add Z for UTC, or +02:00",
		"?after=1&from=1":        "after: it stands beside from",
		"?after=18446744073709551615-18446744073709551615": "no id follows",
		"?limit=0":         "limit: want a number from 1",
		"?skip=-1":         "skip: want",
		"?reverse=1":       "reverse: want true or false",
		"?envelope=x":      "envelope: want",
		"?tier=REMOTE":     "tier: want",
		"?form=1":          `there is no parameter`,
		"?limit=1&limit=2": "limit: it stands there twice",
		"?decompress=bad":  `{"error":"read the messages of orders:0: decompress: there is no bad"}`,
		"?a;b":             "can't be read",
	} {
		if a := s.get(base + query); a.status != 400 || !strings.Contains(string(a.body), want) {
			t.Errorf("%s: %d %s, want %s", query, a.status, a.body, want)
		}
	}
	if a := s.get("/v1/topics/orders/9/messages"); a.status != 404 {
		t.Error(a.status)
	}
}

// What goes wrong before the first line is a status; after it, the answer is cut
// off, so that it can't be taken for a whole one.
func TestMessagesThatCantBeRead(t *testing.T) {
	w := newWorld(t)
	var lines int
	failure := fmt.Errorf("segment orders:0/3: %w", ErrDamaged)
	w.read = func(_ context.Context, _ segment.Partition, _ Query, line func([]byte) error) error {
		for range lines {
			if err := line([]byte(strings.Repeat("x", 1000) + "\n")); err != nil {
				return err
			}
		}
		return failure
	}
	s := w.start(func(*Config) {})
	const path = "/v1/topics/orders/0/messages"
	if a := s.get(path); a.status != 502 || strings.Contains(string(a.body), "orders:0/3") {
		t.Errorf("%d %s", a.status, a.body)
	}
	failure = errors.New("no route to host 10.0.0.7")
	if a := s.get(path); a.status != 503 || strings.Contains(string(a.body), "10.0.0.7") {
		t.Errorf("%d %s", a.status, a.body)
	}
	lines = 1000
	if a := s.get(path); a.status != 200 || a.err == nil {
		t.Errorf("%d %v, %d bytes", a.status, a.err, len(a.body))
	}
	if f := w.failures(); strings.Count(f, "10.0.0.7") != 2 || strings.Count(f, "orders:0/3") != 1 {
		t.Error(f)
	}
}

// So many read at once, and the others are sent away.
func TestReadingsAtOnce(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	w.read = func(context.Context, segment.Partition, Query, func([]byte) error) error {
		entered <- struct{}{}
		<-leave
		return nil
	}
	s := w.start(func(*Config) {})
	answers := make(chan got, readingsAtOnce)
	for range readingsAtOnce {
		go func() { answers <- s.get("/v1/topics/orders/0/messages") }()
		<-entered
	}
	if a := s.get("/v1/topics/orders/0/messages"); a.status != 503 || a.header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.status, a.body)
	}
	close(leave)
	for range readingsAtOnce {
		if a := <-answers; a.status != 200 {
			t.Error(a.status)
		}
	}
}

func TestRecent(t *testing.T) {
	now, looks := time.Unix(0, 0), 0
	var failure error
	r := NewRecent(time.Second, 2, func(_ context.Context, key string) (string, error) {
		looks++
		return fmt.Sprint(key, looks), failure
	})
	r.now = func() time.Time { return now }
	ask := func(key, want string) {
		t.Helper()
		now = now.Add(time.Millisecond)
		if got, err := r.Get(t.Context(), key); got != want || !errors.Is(err, failure) {
			t.Errorf("%s: %s %v, want %s", key, got, err, want)
		}
	}
	ask("a", "a1")
	ask("a", "a1")
	now = now.Add(time.Second)
	ask("a", "a2")
	ask("b", "b3")
	ask("a", "a2")
	ask("c", "c4") // b goes
	ask("a", "a2")
	ask("b", "b5")
	failure = errors.New("away")
	now = now.Add(time.Second)
	ask("a", "a6")
	failure = nil
	ask("a", "a7")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a := r.answer("x")
	a.turn <- struct{}{}
	if _, err := r.Get(ended, "x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
