package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// roots are a folder and a bucket, as variables.
func roots(t *testing.T) map[string][]string {
	s3 := s3server.Start(t, s3server.Options{})
	return map[string][]string{
		"folder": {"KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()},
		"bucket": {"KORVET_STORAGE_REMOTE_PATH=s3://" + s3.Bucket + "/cat", "KORVET_STORAGE_S3_ENDPOINT=" + s3.Endpoint, "KORVET_STORAGE_S3_REGION=" + s3.Region,
			"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + s3.Secret},
	}
}

// acked is what was acknowledged of a partition, as "id sum".
func acked(l *broker.Ledger, p segment.Partition) map[string]bool {
	all := map[string]bool{}
	for _, s := range l.Sources() {
		if s.Partition != p {
			continue
		}
		for id, a := range l.Acks(s) {
			all[fmt.Sprintf("%s %x", id, a.Sum)] = true
		}
	}
	return all
}

// catAll runs cat; each message is "id sum", and comes once.
func catAll(t *testing.T, r rig, args ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, l := range r.cat(t, args...) {
		var fields []string
		for _, f := range l.Fields {
			fields = append(fields, f[0], f[1])
		}
		key := fmt.Sprintf("%s %x", l.ID, broker.SumOf(fields...))
		if all[key] {
			t.Fatalf("message %s came twice", l.ID)
		}
		all[key] = true
	}
	return all
}

// While a daemon rolls, copies and drops, and producers append, also late ones to
// segments that are sealed already: every message that was acknowledged before
// cat began comes once, byte for byte; and when all is quiet, cat is the ledger.
//
//fault:late-data | A reader crosses from one tier to the other while a segment moves | cat in a loop during rolls, copies and drops, with late appends, on a folder and on a bucket | each acknowledged message comes once, byte for byte, forwards and backwards
func TestCatWhileSegmentsMove(t *testing.T) {
	for name, root := range roots(t) {
		t.Run(name, func(t *testing.T) { catWhileMoving(t, root) })
	}
}

func catWhileMoving(t *testing.T, root []string) {
	server := redisserver.Start(t)
	r := rig{server, append([]string{"KORVET_REDIS_URI=" + server.URI(), "KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0s", "KORVET_STREAMS_0_KEY=clicks",
		"KORVET_STREAMS_0_SEGMENT_ENTRIES=200", "KORVET_STREAMS_0_LOCAL_RETENTION_TIME=400ms"}, root...)}
	server.Exec("SADD", "korvet:topics", "orders")
	server.Exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true", "retention.ms", "-1", "segment.ms", "700", "local.retention.ms", "500")
	topic, plain := segment.Partition{Topic: "orders"}, segment.Partition{Topic: "clicks", Plain: true}
	server.Exec("HSET", "korvet:storage:manifest:orders:0", "0", `{"state":"OPEN","tier":"LOCAL"}`)
	ledger, stop := produce(t, server, topic, plain)
	daemon := start(t, r.environ)
	args := map[segment.Partition][]string{topic: {"orders:0"}, plain: {"--stream", "clicks"}}
	deadline := time.Now().Add(300 * time.Second)
	for round := 0; round < 4 || gone(server, "korvet:storage:manifest:orders:0") < 2 || gone(server, "korvet:storage:stream-manifest:clicks") < 2; round++ {
		if time.Now().After(deadline) {
			t.Fatalf("after %d rounds %d and %d local copies are gone", round, gone(server, "korvet:storage:manifest:orders:0"), gone(server, "korvet:storage:stream-manifest:clicks"))
		}
		for p, what := range args {
			if p.Plain && server.Exec("EXISTS", "korvet:storage:stream-manifest:clicks") == "0" {
				continue // the daemon makes it
			}
			if round%2 == 1 {
				what = append(slices.Clone(what), "--reverse")
			}
			before := acked(ledger, p)
			got := catAll(t, r, what...)
			for m := range before {
				if !got[m] {
					t.Fatalf("%s: message %s is missing among %d", p, m, len(got))
				}
			}
		}
	}
	stop()
	for p, what := range args {
		want, got := acked(ledger, p), catAll(t, r, what...)
		for m := range want {
			if !got[m] {
				t.Errorf("%s: message %s is missing", p, m)
			}
		}
		if len(got) != len(want) || len(want) == 0 {
			t.Errorf("%s: %d messages, and %d were acknowledged", p, len(got), len(want))
		}
	}
	daemon.stop()
	<-daemon.code
}

// produce appends to partitions until stop is called.
func produce(t *testing.T, server *redisserver.Server, partitions ...segment.Partition) (*broker.Ledger, func()) {
	b := brokerOf(t, server)
	ctx, cancel := context.WithCancel(context.Background())
	ledger := broker.NewLedger()
	var going sync.WaitGroup
	for i, p := range partitions {
		going.Go(func() {
			producer := broker.Producer{Broker: b, Ledger: ledger, Partition: p, Seed: uint64(i), Batch: 4, Pace: 20 * time.Millisecond, Reread: 1, HoldsOn: 100 * time.Millisecond}
			if err := producer.Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	stop := func() {
		cancel()
		going.Wait()
	}
	t.Cleanup(stop)
	return ledger, stop
}

// gone counts the segments whose local copy is gone.
func gone(server *redisserver.Server, manifest string) int {
	return strings.Count(server.Exec("HVALS", manifest), `"local":"GONE"`)
}
