package metrics

import "time"

const (
	// fillWindow is over how long the speed is taken at which memory fills.
	fillWindow = 10 * time.Minute
	// fillLeast is below what time apart two looks say nothing of it.
	fillLeast = 30 * time.Second
)

// fill follows how a Redis server's memory fills.
type fill struct {
	node  string
	most  int64 // that it may use; 0 = no limit
	looks []usage
}

// usage is one look at the memory.
type usage struct {
	at   time.Time
	used int64
}

// look takes another look. One at another server begins anew.
func (f *fill) look(node string, used, most int64, now time.Time) {
	if node != f.node {
		*f = fill{node: node}
	}
	f.most = most
	for len(f.looks) > 0 && now.Sub(f.looks[0].at) > fillWindow {
		f.looks = f.looks[1:]
	}
	f.looks = append(f.looks, usage{now, used})
}

// used is the memory at the last look; false before the first.
func (f *fill) used() (int64, bool) {
	if len(f.looks) == 0 {
		return 0, false
	}
	return f.looks[len(f.looks)-1].used, true
}

// left is how long it takes until the memory is full, in seconds, if it goes on
// filling as it did; false if it has no limit, or does not fill.
func (f *fill) left() (float64, bool) {
	used, ok := f.used()
	if !ok || f.most <= 0 {
		return 0, false
	}
	if used >= f.most {
		return 0, true
	}
	first, last := f.looks[0], f.looks[len(f.looks)-1]
	apart, more := last.at.Sub(first.at), last.used-first.used
	if apart < fillLeast || more <= 0 {
		return 0, false
	}
	return float64(f.most-used) / (float64(more) / apart.Seconds()), true
}
