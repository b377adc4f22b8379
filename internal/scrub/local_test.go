package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"korvet-offload/segment"
)

// broken is a stream whose connection ends in the middle.
type broken struct{}

func (broken) Next(context.Context, *segment.Page) error { return fmt.Errorf("read: %w", io.EOF) }
func (broken) Close() error                              { return nil }

// A connection that breaks is not the end of a stream: what was not read would be
// told as lacking.
func TestABrokenConnectionIsNotTheEndOfTheStream(t *testing.T) {
	c := &comparison{ctx: t.Context(), local: broken{}}
	if more, err := c.next(); more || !errors.Is(err, io.EOF) || c.ended {
		t.Errorf("%t %v, ended %t", more, err, c.ended)
	}
}
