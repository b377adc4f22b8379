package page

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"

	"korvet-offload/internal/board"
	"korvet-offload/segment"
)

const (
	apiLimit   = 100  // partitions, and topics, where nothing is said
	apiMost    = 1000 // at most
	mostReason = 500  // bytes of why something is paused
)

// apiStatus answers /api/v1/status.
func (s *Site) apiStatus(w http.ResponseWriter, r *http.Request) {
	q, err := parseQuery(r.URL.Query())
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, r, s.o.Board.Status(q))
}

// parseQuery reads what of the status is asked for.
func parseQuery(v url.Values) (board.Query, error) {
	q := board.Query{Topic: v.Get("topic"), Only: board.Only(v.Get("only")), Sort: board.Sort(v.Get("sort"))}
	var errs []error
	for _, f := range []struct {
		name        string
		to          *int
		usual, most int
	}{{"offset", &q.Offset, 0, 1 << 31}, {"limit", &q.Limit, apiLimit, apiMost},
		{"topics_offset", &q.TopicOffset, 0, 1 << 31}, {"topics_limit", &q.TopicLimit, apiLimit, apiMost}} {
		*f.to = f.usual
		if text := v.Get(f.name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || n > f.most {
				errs = append(errs, fmt.Errorf("%s %q: want 0 to %d", f.name, text, f.most))
			}
			*f.to = n
		}
	}
	switch q.Only {
	case board.Every, board.Behind, board.Stuck:
	default:
		errs = append(errs, fmt.Errorf("only %q: want %s or %s", q.Only, board.Behind, board.Stuck))
	}
	switch q.Sort {
	case board.ByName, board.ByLag, board.BySize, board.ByStuck:
	default:
		errs = append(errs, fmt.Errorf("sort %q: want %s, %s or %s", q.Sort, board.ByLag, board.BySize, board.ByStuck))
	}
	return q, errors.Join(errs...)
}

// onePartition is one partition as the API has it.
type onePartition struct {
	board.Partition
	Problems []board.Problem `json:"problem_list"`
}

// apiPartition answers /api/v1/partitions/{topic}/{number}.
func (s *Site) apiPartition(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("number"))
	if err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("partition %q: want a number", r.PathValue("number")))
		return
	}
	s.one(w, r, segment.Partition{Topic: r.PathValue("topic"), Number: n})
}

// apiStream answers /api/v1/streams?key=...
func (s *Site) apiStream(w http.ResponseWriter, r *http.Request) {
	s.one(w, r, segment.Partition{Topic: r.URL.Query().Get("key"), Plain: true})
}

func (s *Site) one(w http.ResponseWriter, r *http.Request, id segment.Partition) {
	p, found, known := s.o.Board.Partition(id)
	if !known {
		refuse(w, http.StatusNotFound, fmt.Errorf("%q is not known here: it is not offloaded, or another instance leads", id))
		return
	}
	writeJSON(w, r, onePartition{p, append([]board.Problem{}, found...)})
}

// order is the body of pause and resume.
type order struct {
	Topic  string `json:"topic"`
	Stream string `json:"stream"`
	All    bool   `json:"all"`
	Reason string `json:"reason"` // of a pause only
}

// scope is what an order is about.
func (o order) scope() (segment.Scope, error) {
	n := 0
	for _, said := range []bool{o.Topic != "", o.Stream != "", o.All} {
		if said {
			n++
		}
	}
	if n != 1 {
		return segment.Scope{}, errors.New(`say one of "topic", "stream" and "all"`)
	}
	if o.Topic != "" {
		if err := segment.ValidateTopic(o.Topic); err != nil {
			return segment.Scope{}, err
		}
	}
	if len(o.Reason) > mostReason {
		return segment.Scope{}, fmt.Errorf("the reason has %d bytes, %d at most", len(o.Reason), mostReason)
	}
	return segment.Scope{Topic: o.Topic, Stream: o.Stream}, nil
}

// apiPause answers POST /api/v1/pause.
func (s *Site) apiPause(w http.ResponseWriter, r *http.Request) {
	s.change(w, r, func(ctx context.Context, p Pauser, o order, at segment.Scope) error {
		_, err := p.Pause(ctx, at, "http client "+r.RemoteAddr, o.Reason)
		return err
	})
}

// apiResume answers POST /api/v1/resume.
func (s *Site) apiResume(w http.ResponseWriter, r *http.Request) {
	s.change(w, r, func(ctx context.Context, p Pauser, _ order, at segment.Scope) error {
		return p.Resume(ctx, at)
	})
}

// change carries out an order, and answers with all that is paused then.
func (s *Site) change(w http.ResponseWriter, r *http.Request, do func(context.Context, Pauser, order, segment.Scope) error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if kind != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, errors.New("send JSON: Content-Type: application/json"))
		return
	}
	var o order
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	err := d.Decode(&o)
	if err == nil && d.Decode(&struct{}{}) != io.EOF {
		err = errors.New("one object, and nothing behind it")
	}
	scope := segment.Scope{}
	if err == nil {
		scope, err = o.scope()
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	p := s.o.Pauser()
	if p == nil {
		refuse(w, http.StatusServiceUnavailable, errors.New("redis has not answered yet; try again"))
		return
	}
	if err = do(r.Context(), p, o, scope); err == nil {
		var all segment.Pauses
		if all, err = p.Paused(r.Context()); err == nil {
			s.o.Board.SetPaused(all)
		}
	}
	if err != nil {
		refuse(w, http.StatusServiceUnavailable, err)
		return
	}
	now := s.o.Board.Overview()
	writeJSON(w, r, struct {
		Paused []board.Pause `json:"paused"` // the first 100 of them
		Total  int           `json:"paused_total"`
	}{now.Paused, now.PausedTotal})
}

// refuse answers that something can't be done.
func refuse(w http.ResponseWriter, status int, err error) {
	raw, _ := json.Marshal(struct { // plain values always have a JSON form
		Error string `json:"error"`
	}{err.Error()})
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client is gone; nobody to tell
}

// writeJSON answers with a value, or says that it is what the client has.
func writeJSON(w http.ResponseWriter, r *http.Request, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		refuse(w, http.StatusInternalServerError, fmt.Errorf("encode the answer: %w", err))
		return
	}
	sum := sha256.Sum256(raw)
	tag := `"` + hex.EncodeToString(sum[:12]) + `"`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-cache, private")
	w.Header().Set("ETag", tag)
	if r.Method == http.MethodGet && r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(append(raw, '\n')) // the client is gone; nobody to tell
}
