package command

import (
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"korvet-offload/segment"
)

// pauseView is a pause as --output json prints it.
type pauseView struct {
	Scope  string     `json:"scope"` // all, topic or stream
	Name   string     `json:"name"`  // of the topic, or the stream's key; "" for all
	Since  *time.Time `json:"since"` // by the Redis server's clock; null = not known
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Error  string     `json:"error"` // why the rest is not known; "" = it is
}

func pauseViews(all segment.Pauses) []pauseView {
	views := make([]pauseView, len(all.List))
	for i, p := range all.List {
		views[i] = pauseView{Scope: scopeKind(p.Scope), Name: p.Scope.Topic + p.Scope.Stream, By: p.By, Reason: p.Reason}
		if !p.Since.IsZero() {
			views[i].Since = new(p.Since.UTC())
		}
		if p.Err != nil {
			views[i].Error = p.Err.Error()
		}
	}
	return views
}

// scopeKind is all, topic or stream.
func scopeKind(s segment.Scope) string {
	switch {
	case s.Topic != "":
		return "topic"
	case s.Stream != "":
		return "stream"
	}
	return "all"
}

// pauseLines are what is paused, for a person.
func pauseLines(all segment.Pauses) []string {
	lines := make([]string, len(all.List))
	for i, p := range all.List {
		lines[i] = "paused: " + p.Scope.String()
		if !p.Since.IsZero() {
			lines[i] += " since " + p.Since.UTC().Format(time.RFC3339)
		}
		if p.By != "" {
			lines[i] += " by " + word(p.By)
		}
		if p.Reason != "" {
			lines[i] += ", because of " + strconv.Quote(p.Reason)
		}
		if p.Err != nil {
			lines[i] += fmt.Sprintf(" (%v)", p.Err)
		}
	}
	return lines
}

// whyPaused says why nothing of a partition may be changed; nil = it may.
func whyPaused(all segment.Pauses, p segment.Partition) error {
	of, how := segment.Scope{Topic: p.Topic}, " "+p.Topic
	if p.Plain {
		of, how = segment.Scope{Stream: p.Topic}, " --stream "+p.String()
	}
	pause, paused := all.Of(segment.Scope{})
	if paused {
		how = ""
	} else if pause, paused = all.Of(of); !paused {
		return nil
	}
	return fmt.Errorf("%w: nothing of %s is changed until you end that by korvet-offload resume%s", pausedError{pause}, p, how)
}

// pausedError says what is paused.
type pausedError struct{ pause segment.Pause }

func (e pausedError) Error() string {
	return pauseLines(segment.Pauses{List: []segment.Pause{e.pause}})[0]
}

// pauseLog writes down what begins to be paused, and what ends.
type pauseLog struct {
	log    *zap.Logger
	before segment.Pauses
}

// paused is told what is paused, by one goroutine at a time.
func (l *pauseLog) paused(now segment.Pauses) {
	before := l.before
	l.before = now
	for _, p := range now.List {
		if was, known := before.Of(p.Scope); known && was.Reason == p.Reason && (was.Err == nil) == (p.Err == nil) {
			continue
		}
		l.log.Info("paused: it is looked at, and nothing of it is changed until it is resumed", zap.Stringer("what", p.Scope),
			zap.Time("since", p.Since), zap.String("by", p.By), zap.String("reason", p.Reason), zap.Error(p.Err))
	}
	for _, p := range before.List {
		if _, still := now.Of(p.Scope); !still {
			l.log.Info("resumed: it goes on with the next tick", zap.Stringer("what", p.Scope))
		}
	}
}
