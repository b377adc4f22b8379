package command

import (
	"net/url"
	"strings"
	"testing"
)

// A range is the same to cat, restore and serve: a time excludes its end, an id
// includes it.
func TestARangeIsTheSameEverywhere(t *testing.T) {
	r := newRig(t)
	r.server.Exec("DEL", "korvet:storage:local:orders:0:0")
	for _, id := range []string{"1000-0", "1000-1", "1001-0", "1002-0", "1002-7", "1003-0"} {
		r.server.Exec("XADD", "korvet:storage:local:orders:0:0", id, "value", id)
	}
	r.server.Exec("DEL", "korvet:storage:manifest:orders:0")
	r.server.Exec("HSET", "korvet:storage:manifest:orders:0", "0", `{"v":1,"state":"SEALED","tier":"LOCAL","sealedAt":1}`, "1", `{"v":1,"state":"OPEN","tier":"LOCAL"}`)
	r.server.Exec("DEL", "korvet:storage:local:orders:0:1", "korvet:storage:local:orders:0:2")
	mustCall(t, r.environ, exitDone, "run", "--once")
	s := startServing(t, r.environ)
	for i, c := range []struct{ from, to, want string }{
		{"", "", "1000-0 1000-1 1001-0 1002-0 1002-7 1003-0"},
		{"1000", "1002", "1000-0 1000-1 1001-0"},
		{"1970-01-01T00:00:01Z", "1970-01-01T01:00:01.002+01:00", "1000-0 1000-1 1001-0"},
		{"1000-1", "1002-0", "1000-1 1001-0 1002-0"},
		{"1000-1", "1002-6", "1000-1 1001-0 1002-0"},
		{"1002-1", "", "1002-7 1003-0"},
		{"1001", "1001-0", "1001-0"},
		{"", "1970-01-02", "1000-0 1000-1 1001-0 1002-0 1002-7 1003-0"},
	} {
		args, query := []string{"cat", "orders:0", "--format", "value", "--separator", " "}, url.Values{"envelope": {"true"}}
		into := string(rune('a' + i))
		restore := []string{"restore", "orders:0", "--to-key", into, "--yes"}
		if c.from != "" {
			args, restore = append(args, "--from", c.from), append(restore, "--from", c.from)
			query.Set("from", c.from)
		}
		if c.to != "" {
			args, restore = append(args, "--to", c.to), append(restore, "--to", c.to)
			query.Set("to", c.to)
		}
		if got := strings.TrimSpace(mustCall(t, r.environ, exitDone, args...).stdout); got != c.want {
			t.Errorf("cat %q to %q: %s, want %s", c.from, c.to, got, c.want)
		}
		mustCall(t, r.environ, exitDone, restore...)
		var restored []string
		for i, line := range strings.Split(r.server.Exec("XRANGE", into, "-", "+"), "\n") {
			if i%3 == 0 {
				restored = append(restored, line)
			}
		}
		if got := strings.Join(restored, " "); got != c.want {
			t.Errorf("restore %q to %q: %s, want %s", c.from, c.to, got, c.want)
		}
		code, body := s.get("/v1/topics/orders/0/messages?" + query.Encode())
		var served []string
		for line := range strings.Lines(body) {
			_, rest, _ := strings.Cut(line, `"id":"`)
			id, _, _ := strings.Cut(rest, `"`)
			served = append(served, id)
		}
		if got := strings.Join(served, " "); code != 200 || got != c.want {
			t.Errorf("serve %q to %q: %d %s, want %s", c.from, c.to, code, got, c.want)
		}
	}
	if code, body := s.get("/v1/topics/orders/0/messages?to=2026-01-31T08:00"); code != 400 || !strings.Contains(body, "of which zone? add Z for UTC, or +02:00") {
		t.Errorf("%d %s", code, body)
	}
}
