package redisstore

import (
	"context"
	"errors"
	"io"
	"strconv"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/rawread"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

const benchMessages = 200_000

func benchServer(b *testing.B, streams int) *redisserver.Server {
	s := redisserver.Start(b)
	for i := range streams {
		s.Pipe(messages("s"+strconv.Itoa(i), benchMessages))
	}
	return s
}

// cpu is what this process has used so far.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func report(b *testing.B, messages int, used time.Duration) {
	total := float64(messages) * float64(b.N)
	b.ReportMetric(total/b.Elapsed().Seconds()/1e6, "Mmsg/s")
	b.ReportMetric(float64(used)/total, "cpu-ns/msg")
	b.ReportMetric(0, "ns/op")
}

func BenchmarkRaw(b *testing.B) {
	for _, streams := range []int{1, 4} {
		for _, count := range []int{250, 500, 1000, 2000, 5000} {
			b.Run(strconv.Itoa(streams)+"/"+strconv.Itoa(count), func(b *testing.B) { benchRaw(b, streams, count) })
		}
	}
}

func benchRaw(b *testing.B, streams, count int) {
	s := benchServer(b, streams)
	var plans []*rawread.Plan
	for i := range streams {
		p, err := rawread.NewPlan(b.Context(), s.Addr, "s"+strconv.Itoa(i), count)
		if err != nil {
			b.Fatal(err)
		}
		plans = append(plans, p)
	}
	used := cpu()
	b.ResetTimer()
	for range b.N {
		if _, err := rawread.Read(b.Context(), s.Addr, plans...); err != nil {
			b.Fatal(err)
		}
	}
	report(b, streams*benchMessages, cpu()-used)
}

func BenchmarkPages(b *testing.B) {
	for _, reader := range []string{ReaderDirect, ReaderClient} {
		for _, streams := range []int{1, 4} {
			b.Run(reader+"/"+strconv.Itoa(streams), func(b *testing.B) { benchPages(b, reader, streams, drain) })
			b.Run(reader+"-ahead/"+strconv.Itoa(streams), func(b *testing.B) { benchPages(b, reader, streams, drainAhead) })
		}
	}
}

func benchPages(b *testing.B, reader string, streams int, drain func(context.Context, segment.PageReader) (int, int, error)) {
	server := benchServer(b, streams)
	c := config(server)
	c.Reader = reader
	s := open(b, c)
	b.ReportAllocs()
	used, pages := cpu(), 0
	b.ResetTimer()
	for range b.N {
		done := make(chan error, streams)
		counts := make([]int, streams)
		for i := range streams {
			go func() {
				r := s.Pages("s"+strconv.Itoa(i), segment.ID{}, segment.ID{})
				defer r.Close()
				n, np, err := drain(b.Context(), r)
				if err == nil && n != benchMessages {
					err = errors.New(strconv.Itoa(n) + " messages")
				}
				counts[i] = np
				done <- err
			}()
		}
		for range streams {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		for _, n := range counts {
			pages += n
		}
	}
	report(b, streams*benchMessages, cpu()-used)
	b.ReportMetric(float64(streams*benchMessages*b.N)/float64(pages), "msg/page")
}

func drain(ctx context.Context, r segment.PageReader) (n, pages int, err error) {
	var p segment.Page
	for {
		switch err := r.Next(ctx, &p); {
		case errors.Is(err, io.EOF):
			return n, pages, nil
		case err != nil:
			return n, pages, err
		}
		n += p.Len()
		pages++
	}
}

// drainAhead reads the next page while the last one is looked at, as the
// worker does.
func drainAhead(ctx context.Context, r segment.PageReader) (n, pages int, err error) {
	full, empty := make(chan *segment.Page, 1), make(chan *segment.Page, 2)
	empty <- new(segment.Page)
	empty <- new(segment.Page)
	end := make(chan error, 1)
	go func() {
		defer close(full)
		for p := range empty {
			if err := r.Next(ctx, p); err != nil {
				end <- err
				return
			}
			full <- p
		}
	}()
	for p := range full {
		n += p.Len()
		pages++
		empty <- p
	}
	if err := <-end; !errors.Is(err, io.EOF) {
		return n, pages, err
	}
	return n, pages, nil
}
