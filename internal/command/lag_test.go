package command

import (
	"slices"
	"testing"
	"time"

	"korvet-offload/offload"
)

func TestLagForAPerson(t *testing.T) {
	for _, tt := range []struct {
		lag  offload.Lag
		want string
		room []string
	}{
		{offload.Lag{}, "lag: 0 segments, the oldest waits -; SLA of 1m0s met; 0 segments past a retention", nil},
		{offload.Lag{Segments: 1, Bytes: 2048, Oldest: time.Hour, Local: offload.Headroom{Limited: true}, Total: offload.Headroom{Limited: true, Left: time.Second}},
			"lag: 1 segment (2.0 KiB), the oldest waits 1h0m; SLA of 1m0s BROKEN; 0 segments past a retention",
			[]string{"local retention has reached data that is not copied yet", "total retention reaches data that is not copied yet in 1s"}},
		{offload.Lag{Segments: 3, Unknown: 1, Overdue: 2, Total: offload.Headroom{Limited: true, Left: -time.Hour}},
			"lag: 3 segments (0 B), the oldest waits -; SLA of 1m0s not known; 2 segments past a retention",
			[]string{"total retention has reached data that is not copied yet 1h0m ago"}},
	} {
		v := makeLag(offload.Plan{Lag: tt.lag}, time.Minute)
		if got := v.String(); got != tt.want || !slices.Equal(v.headroom(), tt.room) {
			t.Errorf("%q and %q, want %q and %q", got, v.headroom(), tt.want, tt.room)
		}
	}
}
