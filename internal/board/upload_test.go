package board

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// putting is a store that calls back in the middle of an upload.
type putting struct {
	offload.Store
	during func(body io.ReaderAt)
}

func (p putting) Put(_ context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	p.during(o.Body)
	return offload.ObjectInfo{}, errors.New("refused")
}

// An upload is seen while it goes on, and only then.
func TestUploadsUnderWay(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}})
	r.lead()
	var seen []string
	look := func() {
		text := "none"
		for _, u := range r.board.Overview().Current.Uploads {
			text = fmt.Sprintf("%s %d/%d %s", u.Object, u.Sent, u.Bytes, u.StartedAt.Sub(start()))
		}
		seen = append(seen, text)
	}
	look()
	store := r.board.Ports(offload.Ports{Store: putting{during: func(body io.ReaderAt) {
		look()
		for range 3 {
			_, _ = body.ReadAt(make([]byte, 4), 0)
			look()
		}
	}}}).Store
	_, err := store.Put(t.Context(), offload.Upload{Path: "a/0.parquet", Body: strings.NewReader("12345678"), Size: 8})
	look()
	if want := "none, a/0.parquet 0/8 0s, a/0.parquet 4/8 0s, a/0.parquet 8/8 0s, a/0.parquet 8/8 0s, none"; strings.Join(seen, ", ") != want || err == nil {
		t.Errorf("%q, %v", seen, err)
	}
}

// What is read shows while a segment is copied, and what was dropped is not stored.
func TestBytesOfAPass(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"bso"}})
	r.board.Advanced(1, 1) // of no pass
	plan := r.lead()
	r.board.Advanced(10, 300)
	r.board.Advanced(10, 200)
	if c := r.board.Overview().Current; c.BytesIn != 500 || c.BytesOut != 0 || c.Uploads == nil {
		t.Errorf("%+v", c)
	}
	done := []offload.Outcome{
		{Partition: orders(0), Segment: 1, Result: offload.Copied, BytesIn: 500, BytesOut: 7},
		{Partition: orders(0), Segment: 0, Result: offload.Dropped, BytesOut: 1000},
		{Partition: orders(0), Segment: 0, Result: offload.Expired, BytesOut: 1000},
	}
	for _, o := range done {
		r.board.Finished(o)
	}
	if c := r.board.Overview().Current; c.BytesIn != 500 || c.BytesOut != 7 || c.Done != 3 {
		t.Errorf("%+v", c)
	}
	r.board.Passed(offload.Report{Plan: plan, Outcomes: done}, nil)
	if p := r.board.Overview().Passes[0]; p.BytesIn != 500 || p.BytesOut != 7 {
		t.Errorf("%+v", p)
	}
}

// However much is paused, some of it is shown, and all of it counts.
func TestPausesAreBounded(t *testing.T) {
	r := newRig(t, map[string][]string{"orders": {"so"}})
	r.lead()
	var all segment.Pauses
	for i := range 10 * maxPauses {
		all.List = append(all.List, segment.Pause{Scope: segment.Scope{Topic: fmt.Sprintf("a%06d", i)}})
	}
	all.List = append(all.List, segment.Pause{Scope: segment.Scope{Topic: "orders"}})
	r.board.SetPaused(all)
	s := r.board.Status(Query{Limit: 1, TopicLimit: 1})
	if len(s.Paused) != maxPauses || s.PausedTotal != 10*maxPauses+1 || !s.Topics.Items[0].Paused || !s.Partitions.Items[0].Paused {
		t.Errorf("%d of %d; %+v", len(s.Paused), s.PausedTotal, s.Topics)
	}
	if p, _, _ := r.board.Partition(orders(0)); !p.Paused {
		t.Errorf("%+v", p)
	}
	if want := "Working, with 1001 topics paused."; s.Health.Text != want {
		t.Errorf("%q", s.Health.Text)
	}
}
