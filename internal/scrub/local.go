package scrub

import (
	"context"
	"errors"
	"fmt"
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// compareLocal compares the messages of an object with those of the stream that
// it was copied from. What came behind the last copied one is late, and what the
// server says was deleted may lack in the stream; both are as they may be.
func (r *round) compareLocal(ctx context.Context, w row, f *parquetfile.File) (*Finding, error) {
	e, key := w.entry, r.key(w)
	info, err := r.run.ports.Streams.StreamInfo(ctx, key)
	switch {
	case errors.Is(err, segment.ErrWrongType):
		return r.wrong(StreamDiffers, w, "key %s holds no stream", key), nil
	case err != nil:
		return nil, fmt.Errorf("look at stream %s: %w", key, err)
	case !info.Exists:
		return nil, nil //nolint:nilnil // nothing is wrong: all is in the object
	}
	from, to := segment.ID{}, segment.MaxID()
	if e.Shared() {
		from, to = e.From, e.To
	} else if e.Source != nil && !e.Source.LastID.IsZero() {
		to = e.Source.LastID
	}
	c := &comparison{ctx: ctx, local: r.run.ports.Streams.Pages(key, from, to)}
	defer c.local.Close()
	switch err := c.all(f); {
	case err != nil:
		return nil, fmt.Errorf("compare stream %s with object %s: %w", key, e.Object.Path, err)
	case c.differs != "":
		return r.wrong(StreamDiffers, w, "%s: stream %s against object %s", c.differs, key, e.Object.Path), nil
	case c.lacking > 0:
		out := r.wrong(StreamDiffers, w, "%d messages of the object are not in stream %s, the first being %s", c.lacking, key, c.first)
		out.Note = e.Shared() || offload.HasLost(e, info)
		return out, nil
	}
	return nil, nil //nolint:nilnil // nothing is wrong
}

// comparison goes through a file and a stream side by side.
type comparison struct {
	ctx   context.Context
	local segment.PageReader
	page  segment.Page
	at    int  // in the page
	ended bool // the stream has no further entries

	lacking int64      // messages of the file that the stream does not have
	first   segment.ID // of these
	differs string     // what differs otherwise; "" = nothing
}

// errDiffers ends a comparison early.
var errDiffers = errors.New("differs")

func (c *comparison) all(f *parquetfile.File) error {
	err := f.Read(c.ctx, func(p *segment.Page) error {
		for i := range p.Len() {
			if err := c.message(p, i); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		var more bool
		if more, err = c.next(); more {
			c.differs = fmt.Sprintf("message %s is in the stream, and not in the object", c.page.ID(c.at))
		}
	}
	if errors.Is(err, errDiffers) {
		return nil
	}
	return err
}

// message looks for a message of the file in the stream.
func (c *comparison) message(p *segment.Page, i int) error {
	more, err := c.next()
	if err != nil {
		return err
	}
	order := -1
	if more {
		order = p.ID(i).Compare(c.page.ID(c.at))
	}
	switch {
	case order < 0:
		if c.lacking++; c.lacking == 1 {
			c.first = p.ID(i)
		}
		return nil
	case order > 0:
		c.differs = fmt.Sprintf("message %s is in the stream, and not in the object", c.page.ID(c.at))
		return errDiffers
	case !p.SameFields(i, &c.page, c.at):
		c.differs = fmt.Sprintf("message %s has other fields", p.ID(i))
		return errDiffers
	}
	c.at++
	return nil
}

// next says whether the stream has a further entry, which is at then.
func (c *comparison) next() (bool, error) {
	for !c.ended && c.at >= c.page.Len() {
		c.page.Reset()
		c.at = 0
		if err := c.local.Next(c.ctx, &c.page); err == io.EOF { //nolint:errorlint // the bare io.EOF is the end; one inside another error is a broken connection
			c.ended = true
		} else if err != nil {
			return false, err
		}
	}
	return !c.ended, nil
}
