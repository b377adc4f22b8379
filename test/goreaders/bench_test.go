package goreaders

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/xitongsys/parquet-go/common"
	"github.com/xitongsys/parquet-go/layout"
	"github.com/xitongsys/parquet-go/schema"
	"github.com/xitongsys/parquet-go/writer"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// BenchmarkWriters compares this project's writer with the usual ways of two
// libraries, on the same messages and schema, all with SNAPPY. An operation is
// one file of benchMessages; the metrics are per message: CPU time of the
// process, allocations, bytes out; and the file's peak of live and dead heap.
// docs/decisions/0001-parquet-library.md cites its table.
func BenchmarkWriters(b *testing.B) {
	for _, size := range []int{100, 1024} {
		pages := dataset.Pages(dataset.Envelope(1, size, benchMessages), 1000)
		for _, w := range []struct {
			name  string
			write func(io.Writer, []*segment.Page) error
		}{
			{"korvet-offload", writeOurs},
			{"parquet-go/usual", writeParquetGo},
			{"xitongsys/usual", writeXitongsys},
			{"xitongsys/MarshalFunc", writeXitongsysMarshal},
		} {
			b.Run(fmt.Sprintf("%s/%dB", w.name, size), func(b *testing.B) {
				benchmarkWriter(b, func(out io.Writer) error { return w.write(out, pages) })
			})
		}
	}
}

const benchMessages = 200_000

func benchmarkWriter(b *testing.B, write func(io.Writer) error) {
	var out counter
	runtime.GC()
	peak := watchHeap()
	before, cpu := mallocs(), cpuTime()
	for b.Loop() {
		if err := write(&out); err != nil {
			b.Fatal(err)
		}
	}
	messages := float64(b.N) * benchMessages
	b.ReportMetric(float64(cpuTime()-cpu)/messages, "cpu-ns/msg")
	b.ReportMetric(float64(mallocs()-before)/messages, "allocs/msg")
	b.ReportMetric(float64(out)/messages, "out-B/msg")
	b.ReportMetric(float64(peak())/(1<<20), "heap-MiB")
	b.ReportMetric(0, "ns/op")
}

type counter int64

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

// watchHeap samples the heap above what it is now until the returned function
// is called, which gives the peak.
func watchHeap() (peak func() uint64) {
	base, highest := heap(), uint64(0)
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				highest = max(highest, heap())
			}
		}
	})
	return func() uint64 {
		close(stop)
		done.Wait()
		return max(highest, base) - base
	}
}

func heap() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func writeOurs(out io.Writer, pages []*segment.Page) error {
	w := parquetfile.NewWriter(out, parquetfile.FileID{StreamKey: "bench", Segment: 1})
	for _, p := range pages {
		if err := w.Write(p); err != nil {
			return err
		}
	}
	_, err := w.Close()
	return err
}

// record is an entry the way the libraries' documentation proposes it. A Go
// map loses duplicate names.
type record struct {
	ID     string            `parquet:"id"`
	Fields map[string][]byte `parquet:"fields"`
}

func writeParquetGo(out io.Writer, pages []*segment.Page) error {
	w := parquet.NewGenericWriter[record](out, parquet.Compression(&parquet.Snappy))
	batch := make([]record, 1)
	for _, p := range pages {
		for i := range p.Len() {
			batch[0] = record{ID: p.ID(i).String(), Fields: make(map[string][]byte)}
			lo, hi := p.Fields(i)
			for j := lo; j < hi; j++ {
				batch[0].Fields[string(p.Name(j))] = p.Value(j)
			}
			if _, err := w.Write(batch); err != nil {
				return err
			}
		}
	}
	return w.Close()
}

type xitongsysRecord struct {
	ID     string            `parquet:"name=id, type=BYTE_ARRAY, convertedtype=UTF8"`
	Fields map[string]string `parquet:"name=fields, type=MAP, convertedtype=MAP, keytype=BYTE_ARRAY, keyconvertedtype=UTF8, valuetype=BYTE_ARRAY"`
}

func writeXitongsys(out io.Writer, pages []*segment.Page) error {
	w, err := writer.NewParquetWriterFromWriter(out, new(xitongsysRecord), 1)
	if err != nil {
		return err
	}
	for _, p := range pages {
		for i := range p.Len() {
			r := xitongsysRecord{ID: p.ID(i).String(), Fields: make(map[string]string)}
			lo, hi := p.Fields(i)
			for j := lo; j < hi; j++ {
				r.Fields[string(p.Name(j))] = string(p.Value(j))
			}
			if err := w.Write(r); err != nil {
				return err
			}
		}
	}
	return w.WriteStop()
}

// rowRef is an entry of a page, for the writer's own list of objects.
type rowRef struct {
	page *segment.Page
	row  int
}

// writeXitongsysMarshal feeds the library's tables directly, past its
// reflection: the fastest way that it offers.
func writeXitongsysMarshal(out io.Writer, pages []*segment.Page) error {
	w, err := writer.NewParquetWriterFromWriter(out, new(xitongsysRecord), 1)
	if err != nil {
		return err
	}
	w.PageSize = 256 << 10
	w.MarshalFunc = marshal
	for _, p := range pages {
		for i := range p.Len() {
			w.Objs = append(w.Objs, rowRef{p, i})
		}
		w.ObjsSize += int64(p.Bytes())
		if w.ObjsSize >= w.PageSize {
			if err := w.Flush(false); err != nil {
				return err
			}
			w.Objs, w.ObjsSize = w.Objs[:0], 0
		}
	}
	return w.WriteStop()
}

func marshal(objs []any, h *schema.SchemaHandler) (*map[string]*layout.Table, error) {
	tables := make(map[string]*layout.Table)
	var leaves []*layout.Table
	for _, path := range h.ValueColumns {
		t := layout.NewEmptyTable()
		t.Path = common.StrToPath(path)
		t.MaxDefinitionLevel, _ = h.MaxDefinitionLevel(t.Path)
		t.MaxRepetitionLevel, _ = h.MaxRepetitionLevel(t.Path)
		at := h.MapIndex[path]
		t.Schema, t.Info = h.SchemaElements[at], h.Infos[at]
		t.RepetitionType = t.Schema.GetRepetitionType()
		tables[path] = t
		leaves = append(leaves, t)
	}
	for _, o := range objs {
		ref := o.(rowRef)
		put(leaves[0], ref.page.ID(ref.row).String(), 0, 0)
		lo, hi := ref.page.Fields(ref.row)
		for j := lo; j < hi; j++ {
			put(leaves[1], string(ref.page.Name(j)), int32(min(j-lo, 1)), 1)
			put(leaves[2], string(ref.page.Value(j)), int32(min(j-lo, 1)), 1)
		}
	}
	return &tables, nil
}

func put(t *layout.Table, value string, repetition, definition int32) {
	t.Values = append(t.Values, value)
	t.RepetitionLevels = append(t.RepetitionLevels, repetition)
	t.DefinitionLevels = append(t.DefinitionLevels, definition)
}

// TestBenchmarkWriters checks that what is compared holds the same messages.
func TestBenchmarkWriters(t *testing.T) {
	entries := dataset.Envelope(1, 100, 3000)
	pages := dataset.Pages(entries, 1000)
	for name, write := range map[string]func(io.Writer, []*segment.Page) error{
		"korvet-offload": writeOurs, "xitongsys/MarshalFunc": writeXitongsysMarshal,
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := write(&out, pages); err != nil {
				t.Fatal(err)
			}
			path := t.TempDir() + "/file.parquet"
			writeBytes(t, path, out.Bytes())
			compare(t, readArrow(t, path), rowsOf(entries))
		})
	}
}
