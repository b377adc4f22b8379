package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"korvet-offload/internal/testkit/redisserver"
)

// row is one line of the table.
type row struct {
	what           string
	streams        int
	rate, mb       float64 // messages and MB of fields a second
	out            float64 // bytes of file per message
	peak           float64 // MiB
	cpu            float64 // microseconds per message
	share, against float64 // of the raw limit; times the afternoon script
	note           string
	must, aim      string
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

// series measures the same thing several times.
type series struct{ rate, share, against, out, peak, cpu []float64 }

func (s *series) add(m measured, raw, script float64) {
	s.rate = append(s.rate, m.rate())
	s.share = append(s.share, m.rate()/raw)
	if script > 0 {
		s.against = append(s.against, m.rate()/script)
	}
	s.out = append(s.out, float64(m.out)/float64(m.messages))
	s.peak = append(s.peak, float64(m.peak)/(1<<20))
	s.cpu = append(s.cpu, float64(m.cpu.Microseconds())/float64(m.messages))
}

func (s *series) row(b *bench, what string, n int, must, aim string) row {
	r := row{what: what, streams: n, rate: median(s.rate), share: median(s.share), out: median(s.out), peak: slices.Max(s.peak),
		cpu: median(s.cpu), must: must, aim: aim}
	if len(s.against) > 0 {
		r.against = median(s.against)
	}
	r.mb = r.rate * b.perMsg / 1e6
	return r
}

// speed measures streams to files and to S3, in turn with the raw limit and
// the afternoon script.
func (b *bench) speed() {
	for _, n := range []int{1, streams} {
		if !b.o.only.MatchString("speed") {
			return
		}
		b.prepare()
		var file, s3, script series
		var raws []float64
		for range b.o.runs {
			raw := b.raw(n)
			raws = append(raws, raw)
			sm := b.script(n)
			script.add(sm, raw, 0)
			file.add(b.worker(b.redis, n, b.o.messages, false), raw, sm.rate())
			s3.add(b.worker(b.redis, n, b.o.messages, true), raw, sm.rate())
		}
		rate := median(raws)
		musts := map[int][4]string{1: {"share 0.40, 2.5x", "share 0.60, 6x", "", ""}, streams: {"1.7x", "3.5x", "share 0.35", "share 0.55"}}[n]
		b.rows = append(b.rows,
			row{what: "raw read limit", streams: n, rate: rate, mb: rate * b.perMsg / 1e6, share: 1},
			script.row(b, "afternoon script, to files", n, "", ""),
			file.row(b, "worker, to files", n, musts[0], musts[1]),
			s3.row(b, "worker, to S3", n, musts[2], musts[3]))
	}
}

// memory measures the peak with a segment of 1 GiB.
func (b *bench) memory() {
	if !b.o.large || !b.o.only.MatchString("memory") {
		return
	}
	const messages = 5_360_000
	s := redisserver.Start(b.t)
	b.load(s, 0, messages)
	m := b.worker(s, 1, messages, false)
	s.Stop()
	b.rows = append(b.rows, row{what: "worker, 1 GiB segment to a file", streams: 1, rate: m.rate(), mb: m.rate() * b.perMsg / 1e6,
		out: float64(m.out) / float64(m.messages), peak: float64(m.peak) / (1 << 20), cpu: float64(m.cpu.Microseconds()) / float64(m.messages),
		must: "peak 96 MiB", aim: "peak 48 MiB"})
}

// allocations counts what the worker allocates, from inside.
func (b *bench) allocations() {
	if !b.o.only.MatchString("allocations") {
		return
	}
	b.prepare()
	b.seal(b.redis, 1, b.o.messages, 1)
	self, err := os.Executable()
	b.must(err)
	out, _ := b.process(nil, self, "child", "allocations", b.redis.URI(), b.t.TempDir())
	var perMessage float64
	b.must(json.Unmarshal(out, &perMessage))
	b.rows = append(b.rows, row{what: "worker, allocations per message", note: fmt.Sprintf("%.4f", perMessage), must: "12", aim: "0.05"})
}

// print writes two tables: the rows that move messages, and the others.
func (b *bench) print() {
	moved := [][]string{{"what", "streams", "msg/s", "MB/s in", "B/msg out", "CPU us/msg", "peak MiB", "share of raw", "x script", "must", "aim"}}
	noted := [][]string{{"what", "measured", "must", "aim"}}
	number := func(format string, v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	for _, r := range b.rows {
		if r.note != "" {
			noted = append(noted, []string{r.what, r.note, r.must, r.aim})
			continue
		}
		moved = append(moved, []string{r.what, fmt.Sprint(r.streams), number("%.0f", r.rate), number("%.0f", r.mb), number("%.1f", r.out),
			number("%.2f", r.cpu), number("%.0f", r.peak), number("%.2f", r.share), number("%.1f", r.against), r.must, r.aim})
	}
	printTable(moved, tabwriter.AlignRight)
	printTable(noted, 0)
}

func printTable(lines [][]string, flags uint) {
	if len(lines) == 1 {
		return
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', flags)
	for _, cells := range lines {
		fmt.Fprintln(w, strings.Join(cells, "\t")+"\t")
	}
	_ = w.Flush()
	fmt.Println()
}
