package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/message"
	"korvet-offload/internal/tieredlog"
	"korvet-offload/segment"
)

// printBuffer is how many bytes are printed at once.
const printBuffer = 64 << 10

// print prints what read gives. Whoever reads stdout may stop when he has
// enough, as head does: that ends the reading, and is no error.
func (t *catting) print(read func(func(*segment.Page, int) error) error) error {
	encoder, err := message.NewEncoder(t.format)
	if err != nil {
		return cmdline.UsageError{Err: err}
	}
	defer encoder.Close()
	defer noticePipes()()
	out := &printer{to: t.Stdout, buffer: make([]byte, 0, printBuffer+printBuffer/4)}
	err = read(func(p *segment.Page, i int) error {
		var err error
		if out.buffer, err = encoder.Append(out.buffer, p, i); err != nil {
			return err
		}
		t.counted.messages++
		if len(out.buffer) < printBuffer {
			return nil
		}
		return out.flush()
	})
	ferr := out.flush()
	t.counted.printed = out.printed
	if err == nil && !errors.Is(ferr, tieredlog.Stop) {
		err = ferr
	}
	return err
}

// printer collects what is to be printed.
type printer struct {
	to      io.Writer
	buffer  []byte
	printed int64
	closed  bool // nobody reads any more
}

// flush prints what was collected; tieredlog.Stop where nobody wants it.
func (w *printer) flush() error {
	if w.closed {
		return tieredlog.Stop
	}
	n, err := w.to.Write(w.buffer)
	w.printed += int64(n)
	w.buffer = w.buffer[:0]
	if cap(w.buffer) > 4<<20 { // of one huge message
		w.buffer = make([]byte, 0, printBuffer)
	}
	switch {
	case errors.Is(err, syscall.EPIPE), errors.Is(err, os.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		w.closed = true
		return tieredlog.Stop
	case err != nil:
		return fmt.Errorf("print messages: %w", err)
	}
	return nil
}

// noticePipes makes a write to a pipe that nobody reads fail, instead of ending the
// program, until the function that it returns is called.
func noticePipes() func() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGPIPE)
	return func() { signal.Stop(c) }
}
