package offload

import (
	"context"
	"errors"
	"testing"

	"korvet-offload/segment"
)

func TestCopyNowCopiesOneSegment(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 3)
	w.sealed(orders0, 1, 3)
	w.change(orders0, 1, func(e *segment.Entry) { e.SealedAt = w.now.UnixMilli() }) // no grace counts
	gate := &shutter{open: 1}
	worker := w.worker()
	worker.ports.Gate = gate
	out, err := worker.CopyNow(t.Context(), orders0, 1)
	if err != nil || out.Result != Copied || out.Contents.Count != 3 || gate.inside != 0 {
		t.Fatalf("%+v, %v; inside %d", out, err, gate.inside)
	}
	if a, b := w.entry(orders0, 0), w.entry(orders0, 1); a.Tier != segment.Local || b.Tier != segment.Remote || b.Object.Path != out.Path {
		t.Errorf("the entries are %s and %s", a.Encode(), b.Encode())
	}
}

func TestCopyNowDoesNothingWithWhatIsNotToBeCopied(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.remote(orders0, 0, 3, w.now)
	w.put(orders0, "1", string(segment.NewOpen("", 1).Encode()))
	w.put(orders0, "2", `{"state":"odd"}`)
	w.sealed(orders0, 3, 3)
	before := w.life(orders0)
	worker := w.worker()
	for n := range segment.Number(2) {
		if out, err := worker.CopyNow(t.Context(), orders0, n); err != nil || out.Result != Nothing {
			t.Errorf("segment %s: %+v, %v", n, out, err)
		}
	}
	if out, err := worker.CopyNow(t.Context(), orders0, 7); err != nil || out.Result != Nothing {
		t.Errorf("no segment: %+v, %v", out, err)
	}
	if _, err := worker.CopyNow(t.Context(), orders0, 2); !errors.Is(err, segment.ErrIllegalEntry) {
		t.Errorf("an illegal entry: %v", err)
	}
	worker.ports.Gate = &shutter{}
	if _, err := worker.CopyNow(t.Context(), orders0, 3); !errors.Is(err, ErrPaused) {
		t.Errorf("a closed gate: %v", err)
	}
	if now := w.life(orders0); now != before {
		t.Errorf("it was %s, and is %s", before, now)
	}
}

func TestCopyNowLooksAtTheStreamAsAPassDoes(t *testing.T) {
	w := newWorld(t)
	w.topic("orders", 1)
	w.sealed(orders0, 0, 3)
	delete(w.streams, segment.DefaultLayout().SegmentKey(orders0, 0))
	w.forgiven[segment.DefaultLayout().SegmentKey(orders0, 0)] = true
	if _, err := w.worker().CopyNow(t.Context(), orders0, 0); !errors.Is(err, segment.ErrSourceMissing) {
		t.Errorf("%v", err)
	}
	if e := w.entry(orders0, 0); !errors.Is(CheckSource(e, "k", StreamInfo{}), segment.ErrSourceMissing) {
		t.Error("CheckSource takes a stream that is not there")
	}
	shared := segment.Entry{State: segment.Sealed, Tier: segment.Local, From: segment.ID{Ms: 1}, To: segment.ID{Ms: 9}, Count: 3}
	if err := CheckSource(shared, "k", StreamInfo{Exists: true, LastID: segment.ID{Ms: 8}}); !errors.Is(err, segment.ErrShortStream) {
		t.Errorf("%v", err)
	}
	if err := CheckSource(shared, "k", StreamInfo{Exists: true, LastID: segment.ID{Ms: 9}}); err != nil {
		t.Error(err)
	}
}

// unread is a manifest that can't be read.
type unread struct {
	Manifests
	err error
}

func (u unread) Peek(context.Context, []segment.Peek) ([]segment.Peeked, error) {
	return []segment.Peeked{{Raw: []string{""}, Err: u.err}}, nil
}

// A manifest that can't be read is not one without the entry.
func TestCopyNowOfAManifestThatCantBeRead(t *testing.T) {
	w := newWorld(t)
	worker := w.worker()
	broken := errors.New("broken")
	worker.ports.Manifests = unread{w, broken}
	if out, err := worker.CopyNow(t.Context(), orders0, 0); !errors.Is(err, broken) {
		t.Errorf("%+v, %v", out, err)
	}
}
