package tieredlog

import (
	"context"
	"fmt"
	"time"

	"korvet-offload/segment"
)

// Found is an object that lies on the store, by a listing.
type Found struct {
	segment.ObjectName
	Bytes int64
	ETag  string
	At    time.Time // when it was put, by the store's clock
}

// FromListing makes manifests of what lies on the store, for when there is no
// Redis: every segment that has objects, with the highest copy of it, the newest
// of several. Whether that is whole, and what it holds, only the file itself can
// tell; Log.Read checks it. A partition without objects has no manifest.
func FromListing(list func(context.Context, segment.Partition) ([]Found, error)) Manifests {
	return listing{list}
}

type listing struct {
	list func(context.Context, segment.Partition) ([]Found, error)
}

func (l listing) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	best, err := l.best(ctx, p)
	for n, raw := range best {
		take(n.String(), raw)
	}
	return int64(len(best)), err
}

func (l listing) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	answers := make([]segment.Peeked, len(q))
	for i, one := range q {
		best, err := l.best(ctx, one.Partition)
		answers[i] = segment.Peeked{Raw: make([]string, len(one.Numbers)), Fields: int64(len(best)), Err: err}
		for k, n := range one.Numbers {
			answers[i].Raw[k] = best[n]
		}
	}
	return answers, nil
}

// best makes an entry of the best object of each segment.
func (l listing) best(ctx context.Context, p segment.Partition) (map[segment.Number]string, error) {
	all, err := l.list(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("list the segments of %s: %w", p, err)
	}
	best := map[segment.Number]Found{}
	for _, f := range all {
		if was, there := best[f.Segment]; !there || f.Copy > was.Copy || f.Copy == was.Copy && f.At.After(was.At) {
			best[f.Segment] = f
		}
	}
	entries := make(map[segment.Number]string, len(best))
	for n, f := range best {
		e := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Count: segment.NoCount, Copy: f.Copy,
			Object: &segment.Object{Path: f.Path(), Bytes: f.Bytes, ETag: f.ETag}}
		entries[n] = string(e.Encode())
	}
	return entries, nil
}
