package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestSizes(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	for i := range 3 {
		server.Exec("XADD", "s", fmt.Sprintf("%d-1", i+1), "f", strings.Repeat("x", 1000))
	}
	server.Exec("SET", "text", "x")
	got, err := s.Sizes(t.Context(), []segment.SizeQuery{{Key: "s"}, {Key: "s", Memory: true}, {Key: "text", Memory: true}, {Key: "absent"}, {Key: "absent", Memory: true}})
	if err != nil || len(got) != 5 {
		t.Fatalf("%v, %v", got, err)
	}
	if got[0] != (segment.StreamSize{Length: 3, Bytes: -1}) || got[1].Length != 3 || got[1].Bytes < 3000 || got[1].Bytes > 6000 {
		t.Errorf("%+v, %+v", got[0], got[1])
	}
	if ClassOf(got[2].Err) != WrongType || !strings.Contains(got[2].Err.Error(), "XLEN text") {
		t.Errorf("of a text: %v", got[2].Err)
	}
	if got[3] != (segment.StreamSize{Bytes: -1}) || got[4] != (segment.StreamSize{}) {
		t.Errorf("absent: %+v, %+v", got[3], got[4])
	}
}

// usecPerCall is what a command has cost the server since CONFIG RESETSTAT, by
// its own account.
func usecPerCall(t testing.TB, server *redisserver.Server, command string) float64 {
	t.Helper()
	_, rest, found := strings.Cut(server.Exec("INFO", "commandstats"), "cmdstat_"+command+":")
	_, rest, _ = strings.Cut(rest, "usec_per_call=")
	text, _, _ := strings.Cut(rest, ",")
	usec, err := strconv.ParseFloat(text, 64)
	if !found || err != nil {
		t.Fatalf("commandstats of %s: %v", command, err)
	}
	return usec
}

// TestTheSizeOfMillionsIsCheap holds the question to its rule by the server's
// own measure.
func TestTheSizeOfMillionsIsCheap(t *testing.T) {
	const n, step = 2_000_000, 100_000
	server := redisserver.Start(t)
	for from := 1; from <= n; from += step {
		server.Exec("EVAL", `for i = tonumber(ARGV[1]), tonumber(ARGV[2]) do redis.call('XADD', KEYS[1], string.format('%d-1', i), 'f', 'v') end`,
			"1", "s", fmt.Sprint(from), fmt.Sprint(from+step-1))
	}
	s := open(t, config(server))
	server.Exec("CONFIG", "RESETSTAT")
	got, err := s.Sizes(t.Context(), []segment.SizeQuery{{Key: "s", Memory: true}})
	if err != nil || got[0].Err != nil || got[0].Length != n || got[0].Bytes < n {
		t.Fatalf("%+v, %v", got, err)
	}
	usec := usecPerCall(t, server, "memory|usage")
	t.Logf("%d entries, %d bytes: MEMORY USAGE took %.0f us", n, got[0].Bytes, usec)
	if usec > 2000 {
		t.Errorf("MEMORY USAGE held the server for %.0f us, want 2000 at most", usec)
	}
}
