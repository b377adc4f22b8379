package board

import (
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"korvet-offload/offload"
)

// upload is an Upload that is under way.
type upload struct {
	object string
	size   int64
	begun  time.Time
	sent   atomic.Int64
}

// Ports makes the board see the uploads that go through ports.
func (b *Board) Ports(p offload.Ports) offload.Ports {
	p.Store = seenStore{p.Store, b}
	return p
}

type seenStore struct {
	offload.Store
	board *Board
}

func (s seenStore) Put(ctx context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	u := &upload{object: o.Path, size: o.Size, begun: s.board.now().UTC()}
	s.board.begins(u)
	defer s.board.ends(u)
	o.Body = seenBody{o.Body, u}
	return s.Store.Put(ctx, o)
}

// seenBody counts what is read of a body. What is sent again counts again.
type seenBody struct {
	io.ReaderAt
	of *upload
}

func (s seenBody) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.ReaderAt.ReadAt(p, off)
	s.of.sent.Add(int64(n))
	return n, err
}

func (b *Board) begins(u *upload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uploads = append(b.uploads, u)
}

func (b *Board) ends(u *upload) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uploads = slices.DeleteFunc(b.uploads, func(o *upload) bool { return o == u })
}

// uploadViews are the uploads under way as they are shown.
func uploadViews(all []*upload) []Upload {
	views := make([]Upload, len(all))
	for i, u := range all {
		views[i] = Upload{Object: u.object, StartedAt: u.begun, Bytes: u.size, Sent: min(u.size, u.sent.Load())}
	}
	return views
}
