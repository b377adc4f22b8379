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

// A problem's line has its reason, and says once what it is about.
func TestProblemLine(t *testing.T) {
	for want, p := range map[string]offload.Problem{
		"segment orders:0/1: [source_missing] source stream missing: x": {Topic: "orders", Segment: "1", Reason: offload.ReasonSourceMissing, Err: errors.New("source stream missing: x")},
		`topic "orders": [topic_setting] want a hash`:                   {Topic: "orders", Partition: -1, Reason: offload.ReasonTopicSetting, Err: errors.New("topic orders: want a hash")},
		`topic "a\x00": [topic_name] no`:                                {Topic: "a\x00", Partition: -1, Reason: offload.ReasonTopicName, Err: errors.New(`topic "a\x00": no`)},
		"partition orders:0: [manifest_unsteady] no":                    {Topic: "orders", Reason: offload.ReasonTorn, Err: errors.New("partition orders:0: no")},
		"registry: [registry_doubt] topic : is empty":                   {Partition: -1, Reason: offload.ReasonRegistry, Err: errors.New("topic : is empty")},
	} {
		if got := problemLine(p); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
