package repair

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

func TestWhatIsLeftOpen(t *testing.T) {
	if (Report{}).Open() {
		t.Error("nothing was found, and something is left")
	}
	want := map[Result]bool{Left: true, LostRace: true, Failed: true}
	for _, one := range Results() {
		if got := (Report{Steps: map[Result]int64{one: 1}}).Open(); got != want[one] {
			t.Errorf("%s: something is left: %t", one, got)
		}
	}
}

// away is a Redis that does not answer.
type away struct{ Streams }

func (away) StreamInfo(context.Context, string) (segment.StreamInfo, error) {
	return segment.StreamInfo{}, fmt.Errorf("%w: on purpose", offload.ErrRedisDown)
}

func TestARedisThatIsDownIsNoDamage(t *testing.T) {
	r, found := suspected(t, 5)
	redis := r.dump()
	ports := r.ports
	ports.Streams = away{r.redis}
	steps, err := r.try(ports, Options{Yes: true}, found...)
	if !errors.Is(err, offload.ErrRedisDown) || len(steps) != maxOutages || steps[0].Result != Failed {
		t.Errorf("%v, %s", err, say(steps))
	}
	r.wantUntouched(redis)
}

// The stream that a flip leaves behind is looked at next, when there was a flip.
func TestWhatFollowsAFlip(t *testing.T) {
	flip := func(d Deed, r Result, held *Held, e segment.Entry) Step {
		return Step{Action: Action{Deed: d, Partition: segment.Partition{Topic: "orders"}, Segment: 1, held: held, entry: e}, Result: r}
	}
	var remote, shared segment.Entry
	ofRange(&shared)
	some := holding(22, 24, 2)
	for name, c := range map[string]struct {
		step Step
		want int
	}{
		"some of the stream is there": {flip(Reflip, Done, some, remote), 1},
		"nothing is there":            {flip(Reflip, Done, &Held{}, remote), 0},
		"nobody looked":               {flip(Reflip, Done, nil, remote), 0},
		"a range":                     {flip(Reflip, Done, some, shared), 0},
		"a dry run":                   {flip(Reflip, Would, some, remote), 0},
		"it lost the race":            {flip(Reflip, LostRace, some, remote), 0},
		"it failed":                   {flip(Reflip, Failed, some, remote), 0},
		"another deed":                {flip(Repoint, Done, some, remote), 0},
	} {
		next := c.step.follows()
		if len(next) != c.want || c.want == 1 && (next[0].Kind != scrub.StrayStream || next[0].Segment != 1 || !next[0].HasSegment || next[0].Partition != c.step.Partition) {
			t.Errorf("%s: %v", name, next)
		}
	}
}
