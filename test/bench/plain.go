package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// usage measures MEMORY USAGE of a long stream, as rolling by size asks for it.
func (b *bench) usage() {
	if !b.o.only.MatchString("usage") {
		return
	}
	const messages, times = 2_000_000, 100
	s := redisserver.Start(b.t)
	b.load(s, 0, messages)
	audit := b.auditor(s)
	audit.slow()
	for range times {
		b.must(audit.client.MemoryUsage(b.ctx, key(0), 5).Err())
	}
	var took []float64
	for _, c := range audit.singles() {
		if c.Args[0] == "memory" {
			took = append(took, float64(c.Duration.Microseconds()))
		}
	}
	s.Stop()
	b.rows = append(b.rows, row{what: fmt.Sprintf("MEMORY USAGE SAMPLES 5, stream of %d", messages), must: "2ms",
		note: fmt.Sprintf("at most %.0fus, %d times", slices.Max(took), len(took))})
}

// plainRuns bounds the passes that a plain stream takes from adoption to trim.
const plainRuns = 30

// trim measures what it costs the server to free a plain stream, against what
// one reading of it costs.
func (b *bench) trim() {
	if !b.o.only.MatchString("trim") {
		return
	}
	s := redisserver.Start(b.t)
	audit := b.auditor(s)
	var trim, whole, longest []float64
	var read, sum time.Duration
	var trims []time.Duration
	for range b.o.runs {
		b.load(s, 0, b.o.messages)
		before := audit.command("xrange")
		b.worker(s, 1, b.o.messages, false) // a topic's segment is read once
		read = seconds((audit.command("xrange") - before) / 1e6)
		var all time.Duration
		trims, all = b.plainLife(s, audit)
		sum = 0
		for _, t := range trims {
			sum += t
		}
		trim, whole = append(trim, float64(sum)/float64(read)), append(whole, float64(all)/float64(read))
		longest = append(longest, trims[len(trims)-1].Seconds())
	}
	s.Stop()
	perEntry := func(d time.Duration) float64 { return d.Seconds() * 1e6 / float64(b.o.messages) }
	b.rows = append(b.rows,
		row{what: "trimming a plain stream / reading it once: redis time", note: fmt.Sprintf("%.2fx (the last %.2fus / %.2fus an entry)",
			median(trim), perEntry(sum), perEntry(read))},
		row{what: "  with sealing, copying and counting it", note: fmt.Sprintf("%.2fx", median(whole))},
		row{what: "  the longest single script", aim: "5ms", note: fmt.Sprintf("%s of %d; 99%% up to %s, median %s",
			short(seconds(median(longest))), len(trims), short(trims[len(trims)*99/100]), short(trims[len(trims)/2]))})
}

// plainLife has a stream adopted, copied and freed, and returns what single
// trims took of the server, the shortest first, and what everything did.
func (b *bench) plainLife(s *redisserver.Server, audit *auditor) (trims []time.Duration, all time.Duration) {
	for _, k := range []string{"plain", segment.DefaultLayout().ManifestKey(segment.Partition{Topic: "plain", Plain: true})} {
		s.Exec("DEL", k) // of the run before
	}
	s.Exec("RENAME", key(0), "plain")
	settings := b.plainSettings(s)
	audit.slow()
	for left, runs := "", 0; left != "0"; runs++ {
		if runs == plainRuns {
			b.t.Fatalf("%s entries are left in the plain stream after %d passes", left, runs)
		}
		b.process(nil, b.bin, "run", "--once", "--config", settings)
		left = s.Exec("XLEN", "plain")
	}
	for _, c := range audit.singles() {
		if c.ClientAddr == calledByScript {
			continue
		}
		all += c.Duration
		if strings.EqualFold(c.Args[0], "evalsha") && len(c.Args) > 3 && c.Args[3] == "plain" {
			trims = append(trims, c.Duration)
		}
	}
	slices.Sort(trims)
	return trims, all
}

// calledByScript is the address of what a script calls: the script's own time
// has it in it.
const calledByScript = "?:0"

// plainSettings tells the program to cut, copy and free the stream at once.
func (b *bench) plainSettings(s *redisserver.Server) string {
	dir := b.t.TempDir()
	file := filepath.Join(dir, "settings.yml")
	b.must(os.WriteFile(file, fmt.Appendf(nil, `korvet:
  redis:
    uri: %s
  storage:
    remote-path: file://%s/root
    offload:
      seal-grace: 0s
  streams:
    - key: plain
      segment-time: 1s
      local-retention-time: 1s
`, s.URI(), dir), 0o600))
	return file
}
