package torture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// What a tally counts beside the kinds of steps.
const (
	Schedules  = "schedules"
	Messages   = "messages"
	Copied     = "segments copied"
	Dropped    = "local copies dropped"
	Expired    = "segments expired"
	Returned   = "topics that came back"
	PointKill  = "workers killed at a point"
	PointStop  = "workers stopped at a point"
	PointCatch = "workers caught at a dangerous point"
	Looks      = "partitions read while things moved"
	Strays     = "late messages that nobody reads"
)

// Tally counts what was done. Safe for concurrent use.
type Tally struct {
	mu    sync.Mutex
	count map[string]int
}

// NewTally has counted nothing.
func NewTally() *Tally { return &Tally{count: map[string]int{}} }

// Add counts.
func (t *Tally) Add(what string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count[what] += n
}

// Never lists what should have happened, and has not.
func (t *Tally) Never() (missing []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	want := []string{Schedules, Messages, Copied, Dropped, Expired, Returned, PointKill, PointStop, PointCatch, Looks}
	for _, k := range Kinds() {
		want = append(want, string(k))
	}
	for _, what := range want {
		if t.count[what] == 0 {
			missing = append(missing, what)
		}
	}
	return missing
}

func (t *Tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(t.count)) {
		lines = append(lines, fmt.Sprintf("%d %s", t.count[what], what))
	}
	return strings.Join(lines, ", ")
}
