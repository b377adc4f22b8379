package parquetfile

import (
	"io"
	"syscall"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/compress/snappy"
	"github.com/parquet-go/parquet-go/format"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

type counter int64

func (c *counter) Write(b []byte) (int, error) { *c += counter(len(b)); return len(b), nil }

var _ io.Writer = new(counter)

func BenchmarkWriter(b *testing.B) {
	b.Run("100B", func(b *testing.B) { benchmarkWriter(b, 100, new(codec)) })
	b.Run("1KiB", func(b *testing.B) { benchmarkWriter(b, 1024, new(codec)) })
}

// BenchmarkCodecs compares the encoders of Snappy blocks.
func BenchmarkCodecs(b *testing.B) {
	for _, c := range []struct {
		name  string
		codec compress.Codec
	}{
		{"chosen", new(codec)},
		{"library", new(snappy.Codec)},
		{"fast", encoder(s2.EncodeSnappy)},
		{"best", encoder(s2.EncodeSnappyBest)},
	} {
		b.Run(c.name+"/100B", func(b *testing.B) { benchmarkWriter(b, 100, c.codec) })
		b.Run(c.name+"/1KiB", func(b *testing.B) { benchmarkWriter(b, 1024, c.codec) })
	}
}

// encoder is a codec of one of s2's encoders.
type encoder func(dst, src []byte) []byte

func (encoder) String() string                            { return "SNAPPY" }
func (encoder) CompressionCodec() format.CompressionCodec { return format.Snappy }
func (e encoder) Encode(dst, src []byte) ([]byte, error)  { return e(dst[:cap(dst)], src), nil }
func (encoder) Decode(dst, src []byte) ([]byte, error)    { return s2.Decode(dst[:cap(dst)], src) }

// benchmarkWriter writes files of 200,000 messages; an operation is one message.
func benchmarkWriter(b *testing.B, size int, c compress.Codec) {
	const perFile, perPage = 200_000, 1000
	pages := make([]*segment.Page, 0, perFile/perPage)
	g := dataset.New(1, size)
	for range cap(pages) {
		p := new(segment.Page)
		if err := g.Fill(p, perPage); err != nil {
			b.Fatal(err)
		}
		pages = append(pages, p)
	}
	var out counter
	w := newWriter(&out, FileID{"bench", 0}, c)
	messages := 0
	b.ReportAllocs()
	cpu := cpuTime(b)
	for b.Loop() {
		i := messages / perPage % len(pages)
		if messages%perPage == 0 {
			if err := w.Write(pages[i]); err != nil {
				b.Fatal(err)
			}
			if i == len(pages)-1 {
				if _, err := w.Close(); err != nil {
					b.Fatal(err)
				}
				w = newWriter(&out, FileID{"bench", 0}, c)
			}
		}
		messages++
	}
	b.ReportMetric(float64(cpuTime(b)-cpu)/float64(messages), "cpu-ns/op")
	b.ReportMetric(float64(out)/float64(messages), "out-B/op")
}

// cpuTime is less disturbed by other processes than the clock.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func BenchmarkOneEntry(b *testing.B) {
	p := dataset.Page(dataset.Envelope(1, 100, 1)...)
	b.ReportAllocs()
	for b.Loop() {
		w := NewWriter(io.Discard, goldenID)
		if err := w.Write(p); err != nil {
			b.Fatal(err)
		}
		if _, err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
