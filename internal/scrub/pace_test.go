package scrub

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPace(t *testing.T) {
	at := time.Unix(1000, 0)
	p := pace{rate: 1 << 20, now: func() time.Time { return at }, sleep: func(_ context.Context, d time.Duration) error {
		at = at.Add(d)
		return nil
	}}
	begun := at
	r := pacedReader{t.Context(), strings.NewReader(strings.Repeat("x", 3<<20)), &p, func(int) {}}
	if n, err := io.Copy(io.Discard, r); n != 3<<20 || err != nil {
		t.Fatal(n, err)
	}
	if took := at.Sub(begun); took < 2800*time.Millisecond || took > 3200*time.Millisecond {
		t.Errorf("3 MiB at 1 MiB/s took %s", took)
	}
	at = at.Add(time.Hour) // what was not read then is not made up for
	begun = at
	if err := p.wait(t.Context(), 1<<20); err != nil || at.Sub(begun) < 800*time.Millisecond {
		t.Errorf("%s, %v", at.Sub(begun), err)
	}
	p.sleep = func(context.Context, time.Duration) error { return errInjected }
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	r.from = strings.NewReader(strings.Repeat("x", 1<<20))
	if _, err := io.Copy(io.Discard, r); !errors.Is(err, errInjected) {
		t.Error(err)
	}
}
