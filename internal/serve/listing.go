package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"korvet-offload/segment"
)

type topicsView struct {
	Topics []topicView `json:"topics"`
}

type topicView struct {
	Name       string `json:"name"`
	Partitions []int  `json:"partitions"`
}

type streamsView struct {
	Streams []streamView `json:"streams"`
}

type streamView struct {
	Key      string `json:"key"`
	Segments string `json:"segments"` // path
}

type segmentsView struct {
	Segments []segmentView `json:"segments"`
	Next     string        `json:"next,omitempty"`       // path of those that follow
	Illegal  int           `json:"unreadable,omitempty"` // entries of the whole manifest
}

// segmentView is a segment as the manifest has it. What is not known is left out.
type segmentView struct {
	Segment  segment.Number `json:"segment"`
	State    segment.State  `json:"state"`
	Tier     segment.Tier   `json:"tier"`
	Local    string         `json:"local,omitempty"` // what is in Redis of a REMOTE one
	FirstID  string         `json:"first_id,omitempty"`
	LastID   string         `json:"last_id,omitempty"`
	Count    *int64         `json:"count,omitempty"`
	Bytes    int64          `json:"bytes,omitempty"` // of the file
	SHA256   string         `json:"sha256,omitempty"`
	SealedAt *time.Time     `json:"sealed_at,omitempty"`
	RemoteAt *time.Time     `json:"remote_at,omitempty"`
	File     string         `json:"file,omitempty"` // path
}

func viewOf(p segment.Partition, n segment.Number, e segment.Entry) segmentView {
	v := segmentView{Segment: n, State: e.State, Tier: e.Tier, Local: string(e.Local), SealedAt: timeOf(e.SealedAt), RemoteAt: timeOf(e.RemoteAt)}
	if !e.FirstID.IsZero() {
		v.FirstID = e.FirstID.String()
	}
	if !e.LastID.IsZero() {
		v.LastID = e.LastID.String()
	}
	if e.Count != segment.NoCount {
		v.Count = &e.Count
	}
	if e.Tier == segment.Remote && e.Object != nil {
		v.Bytes, v.SHA256 = e.Object.Bytes, e.Object.SHA256
		v.File = fmt.Sprintf("%s/segments/%s.parquet", pathOf(p), n)
	}
	return v
}

func timeOf(ms int64) *time.Time {
	if ms == 0 {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

func writeJSON(w *reply, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(text, '\n')) // the client is gone; nobody to tell
	return nil
}

func (s *server) topics(w *reply, r *http.Request) error {
	all, err := s.partitions.Get(r.Context(), struct{}{})
	if err != nil {
		return err
	}
	v := topicsView{Topics: []topicView{}}
	for _, p := range all {
		last := len(v.Topics) - 1
		switch {
		case p.Plain:
		case last >= 0 && v.Topics[last].Name == p.Topic:
			v.Topics[last].Partitions = append(v.Topics[last].Partitions, p.Number)
		default:
			v.Topics = append(v.Topics, topicView{p.Topic, []int{p.Number}})
		}
	}
	return writeJSON(w, v)
}

func (s *server) streams(w *reply, r *http.Request) error {
	all, err := s.partitions.Get(r.Context(), struct{}{})
	if err != nil {
		return err
	}
	v := streamsView{Streams: []streamView{}}
	for _, p := range all {
		if p.Plain {
			v.Streams = append(v.Streams, streamView{p.Topic, pathOf(p) + "/segments"})
		}
	}
	return writeJSON(w, v)
}

// The limit of segments in one answer.
const (
	usualSegments = 1000
	mostSegments  = 10_000
)

// segments lists those of a partition.
func (s *server) segments(w *reply, r *http.Request, p segment.Partition) error {
	q, err := parameters(r, "from", "limit")
	if err != nil {
		return err
	}
	limit, err := number(q, "limit", usualSegments, 1, mostSegments)
	if err != nil {
		return err
	}
	from, err := segment.ParseNumber(firstOf(q, "from", "0"))
	if err != nil {
		return refused{http.StatusBadRequest, "from: want the number of a segment"}
	}
	leave, err := s.listings.take(r.Context(), w)
	if err != nil {
		return err
	}
	defer leave()
	v, err := s.list(r.Context(), p, from, int(limit))
	if err != nil {
		return err
	}
	return writeJSON(w, v)
}

// smallest keeps the first segments of many, in memory for twice as many at most.
type smallest struct {
	most int
	all  []segmentView
}

func (s *smallest) add(v segmentView) {
	if s.all = append(s.all, v); len(s.all) >= 2*s.most {
		s.cut()
	}
}

// cut sorts, and throws away what is too much, and of what came twice what came
// first.
func (s *smallest) cut() {
	slices.Reverse(s.all)
	slices.SortStableFunc(s.all, func(a, b segmentView) int { return cmp.Compare(a.Segment, b.Segment) })
	s.all = slices.CompactFunc(s.all, func(a, b segmentView) bool { return a.Segment == b.Segment })
	s.all = s.all[:min(len(s.all), s.most)]
}

func (s *server) list(ctx context.Context, p segment.Partition, from segment.Number, limit int) (segmentsView, error) {
	found, v, came := smallest{most: limit + 1}, segmentsView{Segments: []segmentView{}}, int64(0)
	want, err := s.parts.Manifests.Each(ctx, p, func(field, value string) {
		came++
		n, err := segment.ParseNumber(field)
		if err != nil || n < from {
			return
		}
		switch e, err := segment.ParseEntry([]byte(value)); {
		case err != nil:
			v.Illegal++
		case e.State != segment.Deleting:
			found.add(viewOf(p, n, e))
		}
	})
	if err != nil {
		return v, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	if came < want {
		return v, refused{http.StatusServiceUnavailable, fmt.Sprintf("the manifest of %s has changed while it was read; ask again", p)}
	}
	if came == 0 {
		return v, fmt.Errorf("%s: %w", p, ErrNoPartition)
	}
	found.cut()
	if len(found.all) > limit {
		v.Next = fmt.Sprintf("%s/segments?from=%s&limit=%d", pathOf(p), found.all[limit].Segment, limit)
		found.all = found.all[:limit]
	}
	v.Segments = append(v.Segments, found.all...)
	return v, nil
}
