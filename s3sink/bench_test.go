package s3sink_test

import (
	"fmt"
	"syscall"
	"testing"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

// BenchmarkPut tells the speed, and what a MB costs this process in CPU time.
func BenchmarkPut(b *testing.B) {
	const size = 48 << 20
	for _, opt := range []s3server.Options{{}, {TLS: true}} {
		server := s3server.Start(b, opt)
		for name, threshold := range map[string]int64{"single": s3sink.MaxPartSize, "parts": 1} {
			cfg := s3Config(server, fmt.Sprint(name, opt.TLS))
			cfg.MultipartThreshold, cfg.PartSize = threshold, s3sink.DefaultPartSize
			benchmarkPut(b, fmt.Sprintf("s3/tls=%v/%s", opt.TLS, name), mustOpen(b, cfg, s3sink.Options{}), size)
		}
	}
	benchmarkPut(b, "file", openFiles(b, b.TempDir()+"/root", "korvet"), size)
}

func benchmarkPut(b *testing.B, name string, store s3sink.Store, size int) {
	b.Run(name, func(b *testing.B) {
		u := storetest.Upload("", storetest.Body(1, size))
		b.SetBytes(int64(size))
		before, n := cpu(b), 0
		for b.Loop() {
			n++
			u.Key = fmt.Sprintf("%p/%d", b, n)
			if _, err := store.Put(b.Context(), u); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			if err := store.Delete(b.Context(), []string{u.Key})[0]; err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(cpu(b)-before)/float64(n)/(float64(size)/(1<<20))/1e6, "cpu-ms/MiB")
	})
}

// cpu is what this process has used so far, in nanoseconds.
func cpu(b *testing.B) int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return syscall.TimevalToNsec(u.Utime) + syscall.TimevalToNsec(u.Stime)
}
