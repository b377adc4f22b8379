package restore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"korvet-offload/segment"
)

// breaking is a Redis whose connection ends in the middle of a stream.
type breaking struct{ *world }

func (breaking) Pages(string, segment.ID, segment.ID) segment.PageReader { return cutPages{} }

type cutPages struct{}

func (cutPages) Next(context.Context, *segment.Page) error { return fmt.Errorf("read: %w", io.EOF) }
func (cutPages) Close() error                              { return nil }

// A connection that breaks is not the end of a stream, and nobody else writes there.
func TestABrokenConnectionIsNotTheEndOfTheStream(t *testing.T) {
	for _, there := range []int{0, 5} {
		w := newWorld(t)
		all := w.three(orders)
		w.add("k", all[:there]...)
		r := w.restorer()
		p, err := r.Plan(t.Context(), toKey(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Streams = breaking{w}
		if err := r.Run(t.Context(), p, func(Done) {}); !errors.Is(err, io.EOF) || errors.Is(err, ErrRefused) {
			t.Errorf("with %d there: %v", there, err)
		}
	}
}
