package scrub

import (
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// The ranges of a plain stream lie in one stream, in which not all has to be there.
func TestPlainStreams(t *testing.T) {
	w := newWorld(t, false)
	p := segment.Partition{Topic: "events", Plain: true}
	w.add("events", 17)
	for range 4 {
		w.pass()
	}
	remote := 0
	for _, e := range w.entries(p) {
		if e.Tier == segment.Remote {
			remote++
		}
	}
	if remote != 3 {
		t.Fatalf("%d segments were copied: %v", remote, w.entries(p))
	}
	clean := func(what string, notes ...string) {
		t.Helper()
		s, r := w.scrub(Options{CompareLocal: true})
		w.want("findings "+what, s.findings)
		w.want("notes "+what, s.notes, notes...)
		if r.Read < 3 || r.Partitions != 1 {
			t.Errorf("%s: %+v", what, r)
		}
	}
	object := func(n segment.Number) string { return segment.ObjectPath("events", n, 0, "") }
	clean("at first")
	w.server.Exec("XDEL", "events", w.entries(p)[1].FirstID.String())
	clean("after XDEL", "stream_differs events/1 "+object(1))
	w.server.Exec("XTRIM", "events", "MINID", w.entries(p)[1].LastID.String())
	clean("after a trim", "stream_differs events/0 "+object(0), "stream_differs events/1 "+object(1))

	// Made anew, with the same ids and other messages.
	commands := redisserver.AppendCommand(nil, "DEL", "events")
	for _, n := range []int{0, 1, 2} {
		e := w.entries(p)[n]
		commands = redisserver.AppendCommand(commands, "XADD", "events", e.FirstID.String(), "value", "forged")
	}
	w.server.Pipe(commands)
	s, _ := w.scrub(Options{CompareLocal: true})
	w.want("findings after it was made anew", s.findings, "stream_differs events/0 "+object(0), "stream_differs events/1 "+object(1), "stream_differs events/2 "+object(2))

	w.change(p, 2, func(e *segment.Entry) { *e, _ = e.Recopy() })
	s, _ = w.scrub(Options{})
	w.want("findings of a short source", s.findings, "source_missing events/2")
	w.server.Exec("DEL", "events")
	if s, _ = w.scrub(Options{}); strings.Join(s.findings, " ") != "source_missing events/2" {
		t.Errorf("without a source: %q", s.findings)
	}
}
