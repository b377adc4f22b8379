package command

import (
	"fmt"
	"time"

	"korvet-offload/internal/words"
)

// setStanding keeps whether this instance leads or follows, and says whether it
// followed before.
func (j *journal) setStanding(leads, follows bool) (followed bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	followed = j.following
	j.leading, j.following, j.scanned = leads, follows, false
	return followed
}

// waitsForRedis writes down why the program can't start yet.
func (j *journal) waitsForRedis(err error) {
	j.fails(partRedis, "waiting for redis", err)
	j.waits("redis")
}

// standing is one line on what this instance does, and why it can't work; ""
// where it can.
func (j *journal) standing() (text, notReady string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.standingText(), j.downBecause()
}

func (j *journal) standingText() string {
	switch {
	case j.following:
		return "follows: another instance leads"
	case !j.leading:
		return "asks for the lease"
	case !j.scanned:
		return "leads: looks for what is to be done"
	case j.lag.Segments == 0:
		return "leads: every sealed segment was copied at the last look"
	}
	return fmt.Sprintf("leads: %s to copy at the last look, the oldest sealed %s before", words.Count(j.lag.Segments, "segment"), j.lag.Oldest.Round(time.Second))
}
