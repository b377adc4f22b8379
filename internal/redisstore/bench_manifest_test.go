package redisstore

import (
	"strconv"
	"sync"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

const remoteEntry = `{"v":1,"rev":4,"state":"SEALED","tier":"REMOTE","firstId":"1708956789000-0","lastId":"1708956799000-41","count":1000,"local":"PRESENT"}`

// benchManifests makes 10,000 manifests of ten segments each.
func benchManifests(b *testing.B, s *redisserver.Server, l segment.Layout) (partitions []segment.Partition) {
	var load []byte
	for i := range 10_000 {
		p := segment.Partition{Topic: "t", Number: i}
		partitions = append(partitions, p)
		for n := range 10 {
			load = redisserver.AppendCommand(load, "HSET", l.ManifestKey(p), strconv.Itoa(n), remoteEntry)
		}
	}
	s.Pipe(load)
	return partitions
}

// BenchmarkManifests scans 10,000 partitions of ten segments each, as a first
// tick does.
func BenchmarkManifests(b *testing.B) {
	const workers = 64
	server := redisserver.Start(b)
	c := config(server)
	partitions := benchManifests(b, server, c.Layout)
	s := open(b, c)
	used := cpu()
	b.ResetTimer()
	for range b.N {
		var wg sync.WaitGroup
		for w := range workers {
			wg.Go(func() {
				for i := w; i < len(partitions); i += workers {
					if m, err := contents(b.Context(), s, partitions[i]); err != nil || len(m) != 10 {
						b.Error(len(m), err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(cpu()-used)/float64(b.N*len(partitions)), "cpu-ns/partition")
}

// BenchmarkPeek asks for three entries of each of 10,000 manifests, as a tick
// with nothing to do does.
func BenchmarkPeek(b *testing.B) {
	server := redisserver.Start(b)
	c := config(server)
	var q []segment.Peek
	for _, p := range benchManifests(b, server, c.Layout) {
		q = append(q, segment.Peek{Partition: p, Numbers: []segment.Number{7, 8, 10}})
	}
	s := open(b, c)
	used := cpu()
	b.ResetTimer()
	for range b.N {
		if got, err := s.Peek(b.Context(), q); err != nil || got[9_999].Raw[1] != remoteEntry {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cpu()-used)/float64(b.N*len(q)), "cpu-ns/partition")
}

// BenchmarkSizes measures 10,000 streams, one in two by its memory.
func BenchmarkSizes(b *testing.B) {
	server := redisserver.Start(b)
	var load []byte
	var q []segment.SizeQuery
	for i := range 10_000 {
		key := "s" + strconv.Itoa(i)
		q = append(q, segment.SizeQuery{Key: key, Memory: i%2 == 0})
		load = redisserver.AppendCommand(load, "XADD", key, "1-1", "f", "v")
	}
	server.Pipe(load)
	s := open(b, config(server))
	b.ResetTimer()
	for range b.N {
		if got, err := s.Sizes(b.Context(), q); err != nil || got[9_999].Length != 1 {
			b.Fatal(err)
		}
	}
}

// BenchmarkLargeManifest reads a million entries of 400 bytes.
func BenchmarkLargeManifest(b *testing.B) {
	const n = 1_000_000
	server := redisserver.Start(b)
	fill(server, ordersKey(), n, 400)
	s := open(b, config(server))
	server.Exec("CONFIG", "RESETSTAT")
	used := cpu()
	b.ResetTimer()
	for range b.N {
		came := 0
		if fields, err := s.Each(b.Context(), orders, func(_, _ string) { came++ }); err != nil || fields != n || came < n {
			b.Fatal(fields, came, err)
		}
	}
	b.ReportMetric(float64(cpu()-used)/float64(b.N*n), "cpu-ns/field")
	b.ReportMetric(usecPerCall(b, server, "hscan"), "server-us/reply")
}

// BenchmarkChange and BenchmarkDurableChange tell what the connection of its
// own costs.
func BenchmarkChange(b *testing.B)        { benchChange(b, false) }
func BenchmarkDurableChange(b *testing.B) { benchChange(b, true) }

func benchChange(b *testing.B, durable bool) {
	server := redisserver.Start(b)
	replica := redisserver.Start(b)
	replica.Exec("REPLICAOF", "127.0.0.1", strconv.Itoa(server.Port))
	eventually(b, "a replica", func() bool { return server.Exec("WAIT", "1", "1000") == "1" })
	c := config(server)
	c.WaitReplicas = 1
	s := open(b, c)
	server.Exec("HSET", ordersKey(), "0", sealed)
	b.ResetTimer()
	for range b.N {
		if ok, err := s.Change(b.Context(), orders, segment.Change{Old: sealed, New: sealed, Durable: durable}); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}
