package restore

import (
	"context"
	"fmt"
	"io"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/segment"
)

// A batch is what is written in one step, during which the server does nothing
// else: a millisecond or two.
const (
	batchEntries = 512
	batchBytes   = 256 << 10
)

// filling is a stream on its way to hold some files' messages. What is there
// already is compared with them first; from its end on they are written.
type filling struct {
	r   *Restorer
	key string

	there segment.PageReader // nil = all of it was compared
	page  segment.Page       // of there
	at    int                // in page

	length int64      // what the stream holds, of what was compared or written
	last   segment.ID // and its last id
	begun  segment.StreamInfo

	batch   segment.Page
	digest  uint32 // of all messages so far
	written int64
}

// fill begins with a stream that gets messages up to an id. The caller closes it.
func (r *Restorer) fill(ctx context.Context, key string, last segment.ID) (*filling, error) {
	is, err := r.Streams.StreamInfo(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("look at stream %s: %w", key, err)
	}
	if err := fits(key, is, last); err != nil {
		return nil, err
	}
	f := &filling{r: r, key: key, begun: is}
	if is.Length > 0 {
		f.there = r.Streams.Pages(key, segment.ID{}, segment.ID{})
	}
	return f, nil
}

// ahead is how many messages are there that were not compared yet.
func (f *filling) ahead() int64 {
	if f.there == nil {
		return 0
	}
	return f.begun.Length - f.length
}

func (f *filling) close() {
	if f.there != nil {
		_ = f.there.Close() // it was only read
	}
}

// add takes the messages of a file that are in a range.
func (f *filling) add(ctx context.Context, file *parquetfile.File, b parquetfile.Between) error {
	return file.ReadBetween(ctx, b, func(p *segment.Page, lo, hi int) error {
		for i := lo; i < hi; i++ {
			if err := f.message(ctx, p, i); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *filling) message(ctx context.Context, p *segment.Page, i int) error {
	same, err := f.isThere(ctx, p, i)
	if err != nil {
		return err
	}
	alone := f.r.Streams.Alone(p, i)
	if alone || f.batch.Len() >= batchEntries || f.batch.Bytes() >= batchBytes { // it is empty while messages are compared
		if err := f.flush(ctx); err != nil {
			return err
		}
	}
	if err := copyEntry(&f.batch, p, i); err != nil {
		return err
	}
	if same {
		f.compared()
	} else if alone {
		return f.flush(ctx)
	}
	return nil
}

// isThere compares a message with what is there in its place. False means that
// nothing is there any more, and that it has to be written.
func (f *filling) isThere(ctx context.Context, p *segment.Page, i int) (bool, error) {
	if f.there == nil {
		return false, nil
	}
	more, err := f.next(ctx)
	switch {
	case err != nil:
		return false, err
	case !more:
		return false, f.reached()
	}
	if id := f.page.ID(f.at); id != p.ID(i) || !f.page.SameFields(f.at, p, i) {
		return false, refuse("stream %s: it holds message %s where %s would be written, or one with other fields: it is not the beginning of what is to be restored; choose another key", f.key, id, p.ID(i))
	}
	f.at++
	return true, nil
}

// next makes the next message that is there the one at f.at.
func (f *filling) next(ctx context.Context) (bool, error) {
	if f.at < f.page.Len() {
		return true, nil
	}
	f.at = 0
	err := f.there.Next(ctx, &f.page)
	if err == io.EOF { //nolint:errorlint // the bare io.EOF is the end; one inside another error is a broken connection
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read stream %s: %w", f.key, err)
	}
	return f.page.Len() > 0, nil
}

// reached ends the comparison: from here on messages are written, if the stream
// ends where it did in the beginning.
func (f *filling) reached() error {
	err := f.there.Close()
	f.there = nil
	if err == nil && (f.length != f.begun.Length || f.last != f.begun.LastID) {
		err = refuse("stream %s: %d messages up to %s were compared, and it has %d and has had some up to %s: somebody else writes there, or has deleted some; choose another key",
			f.key, f.length, f.last, f.begun.Length, f.begun.LastID)
	}
	return err
}

// compared counts the message in the batch, which needs no writing.
func (f *filling) compared() {
	f.digest = f.batch.Digest(f.digest)
	f.length++
	f.last = f.batch.ID(0)
	f.batch.Reset()
}

// flush writes the batch.
func (f *filling) flush(ctx context.Context) error {
	n := f.batch.Len()
	if n == 0 {
		return nil
	}
	if err := f.r.Pace(ctx, f.batch.Bytes()); err != nil {
		return err
	}
	ok, err := f.r.Streams.Append(ctx, f.key, f.length, f.last, &f.batch)
	if err != nil {
		return fmt.Errorf("write to stream %s: %w; the same call goes on with it", f.key, err)
	}
	if !ok {
		return refuse("stream %s: it is not what was written so far, %d messages up to %s: somebody else writes there; choose another key, or stop that and call again", f.key, f.length, f.last)
	}
	f.digest = f.batch.Digest(f.digest)
	f.length += int64(n)
	f.written += int64(n)
	f.last = f.batch.ID(n - 1)
	f.batch.Reset()
	return nil
}

// finish writes what is left, and reads the stream back. What it returns is the
// stream that holds all that was added and nothing else.
func (f *filling) finish(ctx context.Context) (segment.StreamInfo, error) {
	if err := f.flush(ctx); err != nil {
		return segment.StreamInfo{}, err
	}
	count, digest, err := f.readBack(ctx)
	if err != nil {
		return segment.StreamInfo{}, err
	}
	after, err := f.r.Streams.StreamInfo(ctx, f.key)
	switch {
	case err != nil:
		return after, fmt.Errorf("look at stream %s: %w", f.key, err)
	case count != f.length || digest != f.digest || after.Length != f.length || after.LastID != f.last:
		return after, refuse("stream %s: read back it has %d messages up to %s, and the %d up to %s that were to be there are not just those: somebody else writes there",
			f.key, after.Length, after.LastID, f.length, f.last)
	}
	return after, nil
}

func (f *filling) readBack(ctx context.Context) (count int64, digest uint32, err error) {
	r := f.r.Streams.Pages(f.key, segment.ID{}, segment.ID{})
	defer r.Close()
	for {
		err := r.Next(ctx, &f.page)
		if err == io.EOF { //nolint:errorlint // as in next
			return count, digest, nil
		}
		if err != nil {
			return 0, 0, fmt.Errorf("read stream %s back: %w", f.key, err)
		}
		digest = f.page.Digest(digest)
		count += int64(f.page.Len())
	}
}

func copyEntry(to, from *segment.Page, i int) error {
	to.Entry(from.ID(i))
	for lo, hi := from.Fields(i); lo < hi; lo++ {
		if err := to.Field(from.Name(lo), from.Value(lo)); err != nil {
			return err
		}
	}
	return nil
}
