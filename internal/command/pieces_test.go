package command

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// slowStreams takes almost the stall-timeout for each call.
type slowStreams struct {
	offload.Streams
	calls int
	fails bool
}

func (s *slowStreams) Sizes(_ context.Context, q []segment.SizeQuery) (a []segment.StreamSize, err error) {
	s.calls++
	if len(q) > pieceStep {
		return nil, errors.New("too many questions at once")
	}
	<-time.After(stallLimit - time.Second)
	if s.fails {
		return nil, errors.New("no answer")
	}
	for _, one := range q {
		a = append(a, segment.StreamSize{Length: int64(len(one.Key))})
	}
	return a, nil
}

// A scan of very many streams is one call of a port, and must not look like one
// that hangs.
func TestManyQuestionsAreAskedInPieces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dog, slow := newWatchdog(stallLimit), &slowStreams{}
		streams := dog.watch(offload.Ports{Streams: slow}).Streams
		q := make([]segment.SizeQuery, 2*pieceStep+1)
		q[len(q)-1].Key = "last"
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			a, err := streams.Sizes(t.Context(), q)
			if err != nil || len(a) != len(q) || a[len(a)-1].Length != 4 || slow.calls != 3 {
				t.Errorf("%d answers in %d calls, %v", len(a), slow.calls, err)
			}
		}()
		for range 14 {
			time.Sleep(time.Minute)
			if err := dog.stalled(); err != nil {
				t.Error(err)
			}
		}
		<-ended
		slow.fails = true
		if a, err := streams.Sizes(t.Context(), q); err == nil || a != nil {
			t.Errorf("a piece that fails: %d answers, %v", len(a), err)
		}
	})
}
