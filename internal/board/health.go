package board

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"korvet-offload/internal/words"
)

// Level is how bad things are.
type Level string

// The levels, from the best to the worst.
const (
	LevelGood    Level = "good"
	LevelWaiting Level = "waiting" // nothing is wrong, and nothing is done: starting, standing by, paused, switched off
	LevelWarning Level = "warning" // something is stuck; all else goes on
	LevelBad     Level = "bad"     // behind, down, or data seems to be lost
)

// Health is one plain sentence on how things are.
type Health struct {
	Level Level  `json:"level"`
	Text  string `json:"text"`
	Ready bool   `json:"ready"` // nothing that is needed is down
	Alive bool   `json:"alive"` // no restart is needed
}

// health finds what a person has to know first.
func (s *Status) health(c Config, alive error, now time.Time) Health {
	h := Health{Ready: len(s.Outages) == 0, Alive: alive == nil}
	switch {
	case alive != nil:
		h.Level, h.Text = LevelBad, "A restart is needed: "+alive.Error()+"."
	case len(s.Outages) > 0:
		o := s.Outages[0]
		h.Level, h.Text = LevelBad, fmt.Sprintf("No work can be done, for %s now: %s.", Ago(now.Sub(o.Since)), strings.TrimRight(o.Text, "."))
	case !c.Enabled:
		h.Level, h.Text = LevelWaiting, "Offloading is switched off by korvet.storage.offload.enabled."
	case s.Role == Following:
		h.Level, h.Text = LevelWaiting, "Another instance leads; this one waits to take over."
	case s.ScannedAt == nil:
		h.Level, h.Text = LevelWaiting, "Starting: the first scan is not done yet."
	case s.Role == Starting:
		h.Level, h.Text = LevelWaiting, "This instance has lost the lead, and asks for it again."
	default:
		h.Level, h.Text = s.work()
		if s.shares() {
			h.Text = strings.TrimSuffix(h.Text, ".") + ". This is about this instance's share; the others show theirs."
		}
	}
	return h
}

// shares says whether other instances do a part of the work.
func (s *Status) shares() bool {
	return slices.ContainsFunc(s.Members, func(m Member) bool { return m.Self && m.Of > 1 && len(m.Shards) < m.Of })
}

// work judges the state of the segments.
func (s *Status) work() (Level, string) {
	all := slices.ContainsFunc(s.pauses, func(p Pause) bool { return p.Scope == ScopeAll })
	switch {
	case s.Problems.Loss > 0:
		return LevelBad, fmt.Sprintf("Data seems to be lost, or out of every reader's sight: see %s below.", words.Count(s.Problems.Loss, "problem"))
	case all:
		return LevelWaiting, "Everything is paused; what is not copied yet stays in Redis."
	case s.Lag.SLA == SLABroken:
		return LevelBad, fmt.Sprintf("Behind: the oldest sealed segment has waited %s, and %s are allowed.", Ago(seconds(s.Lag.OldestSeconds)), Ago(seconds(s.Lag.SLASeconds)))
	case s.Problems.Total > 0:
		return LevelWarning, fmt.Sprintf("Working, but %s stuck; all else goes on.", are(s.Problems.Total, "thing"))
	case s.Counts.Topics == 0:
		return LevelWarning, "There is nothing to offload: no topic has remote.storage.enable, and no plain stream is named."
	case s.Lag.Unknown == 0 && s.Lag.SLA == SLAUnknown:
		return LevelWarning, "Working, but not everything could be read."
	case s.Lag.SLA == SLAUnknown:
		return LevelWarning, fmt.Sprintf("Working; of %s nobody has written down since when they wait.", words.Count(s.Lag.Unknown, "segment"))
	case s.PausedTotal > 0:
		return LevelWaiting, fmt.Sprintf("Working, with %s paused.", words.Count(s.PausedTotal, "topic"))
	case s.Lag.Segments > 0:
		return LevelGood, fmt.Sprintf("All is well: %s to be copied, within what is allowed.", waits(s.Lag.Segments))
	}
	return LevelGood, "All is well: every sealed segment is on the store."
}

func waits(n int) string {
	if n == 1 {
		return "1 segment waits"
	}
	return words.Count(n, "segment") + " wait"
}

func are(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " is"
	}
	return words.Count(n, noun) + " are"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Ago is a duration as a person says it, in one or two units.
func Ago(d time.Duration) string {
	switch d = max(0, d); {
	case d > 0 && d < time.Millisecond:
		return "<1 ms"
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
