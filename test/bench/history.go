package main

import (
	"fmt"
	"strconv"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// A long history: what a tick costs must not grow with what was ever done.
const (
	historyEntries  = 1_000_000
	historyLocal    = 10 // sealed, not due yet
	historyTicks    = 50 // measured
	historyInterval = 100 * time.Millisecond
)

// history compares ticks over manifests with a million REMOTE entries with
// ticks over the LOCAL ones alone, both in the same time.
func (b *bench) history() {
	if !b.o.only.MatchString("history") {
		return
	}
	none := b.historyServer(0, 0)
	for _, present := range []int{1000, historyEntries} {
		long := b.historyServer(historyEntries, present)
		var redis, network, first, firstRedis []float64
		var few, many *ticks
		for range b.o.runs {
			few, many = b.ticking(none, historyInterval), b.ticking(long, historyInterval)
			measureTicks(historyTicks, few, many)
			redis = append(redis, many.redis.usec/few.redis.usec)
			network = append(network, many.redis.network/few.redis.network)
			first = append(first, many.first.Seconds())
			firstRedis = append(firstRedis, many.firstRedis.usec/1e6)
		}
		long.Stop()
		b.rows = append(b.rows,
			row{what: fmt.Sprintf("a tick over %d REMOTE entries, %d with a local copy / over none: redis time", historyEntries, present), must: "2x",
				note: fmt.Sprintf("%.2fx (the last %.0fus / %.0fus; the worker's CPU %s / %s)",
					median(redis), many.redis.usec, few.redis.usec, short(seconds(many.cpu)), short(seconds(few.cpu)))},
			row{what: "  network", must: "2x", note: fmt.Sprintf("%.2fx (%.0f / %.0f bytes, %.0f / %.0f commands)",
				median(network), many.redis.network, few.redis.network, many.redis.commands, few.redis.commands)},
			row{what: "  the first pass over them", note: fmt.Sprintf("%s, redis time %s, network %.0f MiB, the worker's peak %d MiB (%d MiB over none)",
				short(seconds(median(first))), short(seconds(median(firstRedis))), many.firstRedis.network/(1<<20), many.peak>>20, few.peak>>20)})
	}
	none.Stop()
}

// historyServer starts a server with one partition: so many REMOTE segments,
// the last of them with a local copy, then LOCAL ones, then the OPEN one.
func (b *bench) historyServer(remote, present int) *redisserver.Server {
	s := redisserver.Start(b.t)
	b.topic(s, 1)
	p, now := piping{s: s}, time.Now()
	fields := []string{"HSET", segment.DefaultLayout().ManifestKey(part(0))}
	for n := range remote {
		e := remoteEntry(part(0), n, n >= remote-present)
		fields = append(fields, strconv.Itoa(n), string(e.Encode()))
		if len(fields) >= 2000 {
			p.send(fields...)
			fields = fields[:2]
		}
	}
	for n := remote; n < remote+historyLocal; n++ {
		fields = append(fields, strconv.Itoa(n), string(sealedEntry(now).Encode()))
		p.send("XADD", segment.DefaultLayout().SegmentKey(part(0), segment.Number(n)), "*", "value", "1")
	}
	last := remote + historyLocal
	fields = append(fields, strconv.Itoa(last), string(segment.NewOpen("", now.UnixMilli()).Encode()))
	p.send(fields...)
	p.send("XADD", segment.DefaultLayout().SegmentKey(part(0), segment.Number(last)), "*", "value", "1")
	p.flush()
	return s
}

// topic registers the topic. Its messages are old, and stay.
func (b *bench) topic(s *redisserver.Server, partitions int) {
	s.Exec("DEL", "korvet:topic:bench")
	s.Exec("HSET", "korvet:topic:bench", "remote.storage.enable", "true", "retention.ms", "-1", "partitions", strconv.Itoa(partitions))
	s.Exec("SADD", "korvet:topics", "bench")
}

// remoteEntry is the entry of a segment as the worker leaves it behind.
func remoteEntry(p segment.Partition, n int, present bool) segment.Entry {
	at := int64(1_708_956_789_000) + int64(n)*60_000
	e := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Rev: 5, Local: segment.Gone,
		FirstID: segment.ID{Ms: uint64(at)}, LastID: segment.ID{Ms: uint64(at) + 59_999}, Count: 10_000,
		OpenedAt: at, SealedAt: at + 60_000, RemoteAt: at + 65_000,
		Object: &segment.Object{Path: segment.ObjectPath(segment.DefaultLayout().Folder(p), segment.Number(n), 0, ""), Bytes: 480_000 + int64(n%1000),
			ETag: fmt.Sprintf("%032x", n), SHA256: fmt.Sprintf("%064x", n)},
		Source: &segment.Source{LastID: segment.ID{Ms: uint64(at) + 59_999}, Added: 10_000}}
	if present {
		e.Rev, e.Local = 3, segment.Present
	}
	return e
}

func sealedEntry(at time.Time) segment.Entry {
	return segment.Entry{State: segment.Sealed, Tier: segment.Local, Rev: 2, Count: 1, OpenedAt: at.UnixMilli(), SealedAt: at.UnixMilli()}
}

// piping sends many commands in few goes.
type piping struct {
	s    *redisserver.Server
	cmds []byte
}

func (p *piping) send(args ...string) {
	if p.cmds = redisserver.AppendCommand(p.cmds, args...); len(p.cmds) > 16<<20 {
		p.flush()
	}
}

func (p *piping) flush() {
	if len(p.cmds) > 0 {
		p.s.Pipe(p.cmds)
	}
	p.cmds = p.cmds[:0]
}

// Many partitions in which nothing is to be done.
const (
	quietPartitions = 10_000
	quietEntries    = 10 // of each open stream
	quietTicks      = 5
	quietInterval   = 3 * time.Second
)

// quiet measures ticks over many partitions.
func (b *bench) quiet() {
	if !b.o.only.MatchString("quiet") {
		return
	}
	s := b.quietServer()
	var took, first []float64
	var last *ticks
	for range b.o.runs {
		last = b.ticking(s, quietInterval)
		measureTicks(quietTicks, last)
		took, first = append(took, last.took.Seconds()), append(first, last.first.Seconds())
	}
	s.Stop()
	b.rows = append(b.rows,
		row{what: fmt.Sprintf("a tick over %d partitions, nothing to do", quietPartitions), must: "2s",
			note: fmt.Sprintf("%s, the first %s", short(seconds(median(took))), short(seconds(median(first))))},
		row{what: "  what it asks", note: fmt.Sprintf("%.0f commands in %.0f reads of the server, %.0f KiB",
			last.redis.commands, last.redis.reads, last.redis.network/1024)},
		row{what: "  CPU", note: fmt.Sprintf("redis %s (%s in commands), %.0f%% of one core for the tick; the worker %s",
			short(seconds(last.redis.cpu)), short(seconds(last.redis.usec/1e6)), 100*last.redis.cpu/last.took.Seconds(), short(seconds(last.cpu)))})
}

func (b *bench) quietServer() *redisserver.Server {
	s := redisserver.Start(b.t)
	b.topic(s, quietPartitions)
	p, now, layout := piping{s: s}, time.Now(), segment.DefaultLayout()
	for n := range quietPartitions {
		p.send("HSET", layout.ManifestKey(part(n)), "0", string(remoteEntry(part(n), 0, false).Encode()),
			"1", string(segment.NewOpen("", now.UnixMilli()).Encode()))
		for range quietEntries {
			p.send("XADD", layout.SegmentKey(part(n), 1), "*", "key", "customer-000001", "value", "0123456789")
		}
	}
	p.flush()
	return s
}
