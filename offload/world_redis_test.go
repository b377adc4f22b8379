package offload

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"korvet-offload/segment"
)

func (w *world) Now(ctx context.Context) (now time.Time, err error) {
	err = w.call(ctx, "now", func() error { now = w.now; return nil })
	return now, err
}

func (w *world) Topics(ctx context.Context) (topics []segment.Topic, err error) {
	err = w.call(ctx, "topics", func() error { topics = slices.Clone(w.topics); return nil })
	return topics, err
}

func (w *world) Known(ctx context.Context) (known map[string]string, err error) {
	err = w.call(ctx, "known", func() error { known = maps.Clone(w.known); return nil })
	return known, err
}

func (w *world) SwapKnown(ctx context.Context, topic, old, new string) (ok bool, err error) {
	err = w.call(ctx, "swapknown "+topic, func() error {
		if ok = w.known[topic] == old; ok {
			if w.known[topic] = new; new == "" {
				delete(w.known, topic)
			}
		}
		return nil
	})
	return ok, err
}

func (w *world) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (n int64, err error) {
	err = w.call(ctx, "manifest "+p.String(), func() error {
		for field, raw := range w.manifests[p] {
			take(field, raw)
		}
		n = int64(len(w.manifests[p]))
		return nil
	})
	return n, err
}

func (w *world) Peek(ctx context.Context, q []segment.Peek) (a []segment.Peeked, err error) {
	if len(q) == 0 {
		return nil, nil
	}
	err = w.call(ctx, "peek", func() error {
		for _, one := range q {
			p := segment.Peeked{Fields: int64(len(w.manifests[one.Partition]))}
			for _, n := range one.Numbers {
				p.Raw = append(p.Raw, w.manifests[one.Partition][n.String()])
			}
			a = append(a, p)
		}
		return nil
	})
	return a, err
}

func (w *world) Change(ctx context.Context, p segment.Partition, c segment.Change) (ok bool, err error) {
	err = w.call(ctx, fmt.Sprintf("swap %s/%s", p, c.Number), func() error {
		m := w.manifests[p]
		if ok = m[c.Number.String()] == c.Old && (!c.First || len(m) == 0) && (c.Open == "" || m[c.Next.String()] == ""); !ok {
			return nil
		}
		if w.put(p, c.Number.String(), c.New); c.New == "" {
			delete(w.manifests[p], c.Number.String())
		}
		if c.Open != "" {
			w.put(p, c.Next.String(), c.Open)
		}
		if c.Durable && !w.inStep {
			return fmt.Errorf("wait: %w", ErrNotReplicated)
		}
		if c.Durable && w.waits {
			w.replicate()
		}
		return nil
	})
	return ok && err == nil, err
}

// info is what the server tells of a stream.
func (w *world) look(key string) StreamInfo {
	s := w.streams[key]
	if s == nil {
		return StreamInfo{}
	}
	i := StreamInfo{Exists: true, Length: int64(len(s.entries)), LastID: s.last, EntriesAdded: s.added, MaxDeletedID: s.deleted}
	if len(s.entries) > 0 {
		i.FirstID = s.entries[0].ID
	}
	if w.old {
		i.EntriesAdded, i.MaxDeletedID = -1, segment.ID{}
	}
	return i
}

func (w *world) StreamInfo(ctx context.Context, key string) (info StreamInfo, err error) {
	err = w.call(ctx, "info "+key, func() error { info = w.look(key); return nil })
	return info, err
}

// bytesPerEntry is what an entry of the world takes in Redis.
const bytesPerEntry = 100

func (w *world) Sizes(ctx context.Context, q []segment.SizeQuery) (a []segment.StreamSize, err error) {
	if len(q) == 0 {
		return nil, nil
	}
	err = w.call(ctx, "sizes", func() error {
		for _, one := range q {
			n := w.look(one.Key).Length
			s := segment.StreamSize{Length: n, Bytes: -1}
			if one.Memory {
				w.calls = append(w.calls, "memory "+one.Key)
				s.Bytes = n * bytesPerEntry
			}
			a = append(a, s)
		}
		return nil
	})
	return a, err
}

func (w *world) Groups(ctx context.Context, key string) (g []segment.Group, err error) {
	err = w.call(ctx, "groups "+key, func() error { g = slices.Clone(w.groups[key]); return nil })
	return g, err
}

func (w *world) Remove(ctx context.Context, key string, is StreamInfo) (ok bool, err error) {
	err = w.call(ctx, "remove "+key, func() error {
		now := w.look(key)
		now.FirstID = is.FirstID
		if ok = now.Exists && now == is; ok {
			delete(w.streams, key)
		}
		return nil
	})
	return ok, err
}

func (w *world) Trim(ctx context.Context, key string, piece segment.Piece) (ok bool, err error) {
	err = w.call(ctx, "trim "+key, func() error {
		s := w.streams[key]
		if s == nil {
			return nil
		}
		n := 0
		for n < len(s.entries) && s.entries[n].ID.Compare(piece.Last) <= 0 {
			n++
		}
		if ok = int64(n) == piece.Count && n > 0 && s.entries[0].ID == piece.First && s.entries[n-1].ID == piece.Last; ok {
			s.entries = slices.Delete(s.entries, 0, n)
		}
		return nil
	})
	return ok, err
}

func (w *world) Pages(key string, from, to segment.ID) PageReader {
	return &fakePages{w: w, key: key, from: from, to: to}
}

type fakePages struct {
	w      *world
	key    string
	from   segment.ID
	to     segment.ID
	last   segment.ID
	closed bool
}

func (r *fakePages) Next(ctx context.Context, into *segment.Page) error {
	into.Reset()
	err := r.w.call(ctx, "page "+r.key, func() error {
		s := r.w.streams[r.key]
		if s == nil {
			return nil
		}
		for _, e := range s.entries {
			if e.ID.Compare(r.last) <= 0 || e.ID.Compare(r.from) < 0 || e.ID.Compare(r.to) > 0 {
				continue
			}
			if into.Len() == r.w.pageLen {
				break
			}
			into.Entry(e.ID)
			for _, f := range e.Fields {
				if err := into.Field([]byte(f[0]), []byte(f[1])); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if into.Len() == 0 {
		return io.EOF
	}
	r.last = into.ID(into.Len() - 1)
	return nil
}

func (r *fakePages) Close() error {
	if r.closed {
		r.w.t.Errorf("the reader of %s was closed twice", r.key)
	}
	r.closed = true
	return nil
}
