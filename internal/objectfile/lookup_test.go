package objectfile_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const remoteKey = "korvet:storage:local:lookup:0/7.parquet"

// remote is a segment on an S3 server that tells what it sent.
type remote struct {
	log   *s3server.AccessLog
	store s3sink.Store
	size  int64
	ids   []segment.ID // every 1000th
}

// putSegment makes a file of at least so many bytes of messages, before they
// are compressed, or of so many bytes of file.
func putSegment(t testing.TB, valueBytes int, enough func(messages, file int64) bool) *remote {
	t.Helper()
	server := s3server.Start(t, s3server.Options{})
	r := &remote{log: server.LogAccess(t)}
	path := filepath.Join(server.Dir, remoteKey)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	w := parquetfile.NewWriter(file, parquetfile.FileID{StreamKey: "korvet:storage:local:lookup:0", Segment: 7})
	g, page, messages := dataset.New(1, valueBytes), new(segment.Page), int64(0)
	for !enough(messages, r.size) {
		page.Reset()
		if err := g.Fill(page, 1000); err != nil {
			t.Fatal(err)
		}
		r.ids = append(r.ids, page.ID(len(r.ids)%1000))
		messages += int64(page.Bytes())
		if err := w.Write(page); err != nil {
			t.Fatal(err)
		}
		r.size = sizeOf(t, file)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r.size = sizeOf(t, file)
	r.store, err = s3sink.Open(s3sink.Config{URL: "s3://" + server.Bucket, Endpoint: r.log.Endpoint, Region: server.Region,
		AccessKeyID: server.Access, SecretAccessKey: server.Secret}, s3sink.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.store.Close)
	return r
}

func sizeOf(t testing.TB, f *os.File) int64 {
	t.Helper()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// lookup reads one message, as a process does that has just begun.
func (r *remote) lookup(t testing.TB, id segment.ID, back bool, opts ...objectfile.Option) objectfile.Stats {
	t.Helper()
	object := objectfile.New(t.Context(), r.store, remoteKey, r.size, opts...)
	defer object.Close()
	f, err := parquetfile.Open(object, r.size)
	if err != nil {
		t.Fatal(err)
	}
	read := f.ReadBetween
	if back {
		read = f.ReadBack
	}
	found := 0
	err = read(t.Context(), parquetfile.Between{From: id, To: id}, func(p *segment.Page, lo, hi int) error {
		if found += hi - lo; p.ID(lo) != id {
			return fmt.Errorf("id %s", p.ID(lo))
		}
		return nil
	})
	if err != nil || found != 1 {
		t.Fatalf("look up %s: %d messages, %v", id, found, err)
	}
	return object.Stats()
}

// One message out of a segment of 128 MiB takes three requests and 1.5 MB, and
// what the reader counts is what the server sent.
func TestLookupOverS3(t *testing.T) {
	const most, mostBytes = 3, 1_500_000
	r := putSegment(t, 1024, func(messages, _ int64) bool { return messages >= 128<<20 })
	for i := 0; i < len(r.ids); i += 17 {
		r.log.Take()
		counted := r.lookup(t, r.ids[i], i%2 == 1)
		requests, sent := sumOf(t, r.log, counted)
		if requests > most || sent > mostBytes {
			t.Errorf("%s: %d requests, %d bytes", r.ids[i], requests, sent)
		}
		t.Logf("%s out of a file of %d bytes: %d requests, %d bytes", r.ids[i], r.size, requests, sent)
	}
	tails := objectfile.NewTails(4 << 20)
	r.lookup(t, r.ids[0], false, objectfile.WithTails(tails, "v"))
	if s := r.lookup(t, r.ids[1], false, objectfile.WithTails(tails, "v")); s.Requests > most-1 {
		t.Errorf("with the tail at hand: %+v", s)
	}
}

// sumOf takes the log, which must agree with what the reader counted.
func sumOf(t testing.TB, log *s3server.AccessLog, counted objectfile.Stats) (requests int, sent int64) {
	t.Helper()
	log.Wait(t, int(counted.Requests))
	for _, a := range log.Take() {
		requests++
		sent += a.Sent
		if a.Range == "" || a.Status != 206 {
			t.Errorf("%+v", a)
		}
	}
	if int64(requests) != counted.Requests || sent != counted.Bytes {
		t.Errorf("%+v, and the server counts %d requests, %d bytes", counted, requests, sent)
	}
	return requests, sent
}

// A full scan reads each byte once.
func TestScanOverS3(t *testing.T) {
	r := putSegment(t, 1024, func(_, file int64) bool { return file >= 10<<20 })
	for _, ranged := range []bool{false, true} {
		r.log.Take()
		object := objectfile.New(t.Context(), r.store, remoteKey, r.size)
		f, err := parquetfile.Open(object, r.size)
		if err != nil {
			t.Fatal(err)
		}
		rows := int64(0)
		extra := int64(0)
		if ranged {
			extra = 512 << 10 // the gaps between the columns, in each of the first steps
			err = f.ReadBetween(t.Context(), parquetfile.Between{}, func(_ *segment.Page, lo, hi int) error { rows += int64(hi - lo); return nil })
		} else {
			err = f.Read(t.Context(), func(p *segment.Page) error { rows += int64(p.Len()); return nil })
		}
		if err != nil || rows != f.Rows() {
			t.Fatalf("%d of %d rows, %v", rows, f.Rows(), err)
		}
		requests, sent := sumOf(t, r.log, object.Stats())
		if sent < r.size-4 || sent > r.size+extra || requests > 20 {
			t.Errorf("%d requests, %d bytes of %d", requests, sent, r.size)
		}
		t.Logf("%d requests, %d bytes of %d", requests, sent, r.size)
		if err := object.Close(); err != nil {
			t.Error(err)
		}
	}
}

// BenchmarkOverS3 measures a file of 128 MiB.
func BenchmarkOverS3(b *testing.B) {
	for _, value := range []int{100, 1024} {
		b.Run(fmt.Sprintf("%dB", value), func(b *testing.B) {
			r := putSegment(b, value, func(_, file int64) bool { return file >= 128<<20 })
			b.Run("lookup", func(b *testing.B) {
				var sum objectfile.Stats
				for i := 0; b.Loop(); i++ {
					s := r.lookup(b, r.ids[i*31%len(r.ids)], i%2 == 1)
					sum.Requests, sum.Bytes = sum.Requests+s.Requests, sum.Bytes+s.Bytes
				}
				b.ReportMetric(float64(sum.Requests)/float64(b.N), "requests/op")
				b.ReportMetric(float64(sum.Bytes)/float64(b.N), "sent-B/op")
			})
			for name, of := range map[string]func() io.ReaderAt{
				"scan":  func() io.ReaderAt { return objectfile.New(b.Context(), r.store, remoteKey, r.size) },
				"whole": func() io.ReaderAt { return r.download(b) },
			} {
				b.Run(name, func(b *testing.B) {
					b.SetBytes(r.size)
					for b.Loop() {
						source := of()
						f, err := parquetfile.Open(source, r.size)
						if err == nil {
							err = f.Read(b.Context(), func(*segment.Page) error { return nil })
						}
						if c, ok := source.(io.Closer); ok {
							_ = c.Close()
						}
						if err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		})
	}
}

// download is the usual way: the object into a file, and then from there.
func (r *remote) download(b *testing.B) io.ReaderAt {
	b.Helper()
	body, err := r.store.Open(b.Context(), remoteKey)
	if err != nil {
		b.Fatal(err)
	}
	defer body.Close()
	f, err := os.Create(filepath.Join(b.TempDir(), "file"))
	if err == nil {
		_, err = io.Copy(f, body)
	}
	if err != nil {
		b.Fatal(err)
	}
	return f
}
