package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// eachRedis runs a test against a real server and the embedded one.
func eachRedis(t *testing.T, test func(*testing.T, rueidis.Client)) {
	for name, start := range map[string]func(*testing.T) string{
		"redis-server": func(t *testing.T) string { return redisserver.Start(t).Addr },
		"embedded":     func(t *testing.T) string { return miniredis.RunT(t).Addr() },
	} {
		t.Run(name, func(t *testing.T) {
			client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{start(t)}, DisableCache: true, ForceSingleClient: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			test(t, client)
		})
	}
}

func sealedAt() time.Time { return time.UnixMilli(1_750_000_000_123) }

func sealed(count int) Segment {
	return Segment{Partition: segment.Partition{Topic: "orders", Number: 2}, Number: 7, Seed: 3, Count: count, ValueBytes: 40, SealedAt: sealedAt()}
}

func TestSealedSegment(t *testing.T) {
	eachRedis(t, func(t *testing.T, c rueidis.Client) {
		const count = 2*batch + 1
		s, layout, batches := sealed(count), segment.DefaultLayout(), []int{}
		if err := New(c, layout).Write(t.Context(), s, func(n int) { batches = append(batches, n) }); err != nil {
			t.Fatal(err)
		}
		if want := []int{batch, batch, 1}; !slices.Equal(batches, want) {
			t.Errorf("told of %d, want %d", batches, want)
		}
		first, last := mustEqualMessages(t, c, layout.SegmentKey(s.Partition, s.Number), s)
		e := entry(t, c, s)
		want := segment.Entry{State: segment.Sealed, Tier: segment.Local, FirstID: first, LastID: last, Count: count,
			OpenedAt: dataset.FirstMs, SealedAt: sealedAt().UnixMilli()}
		if string(e.Encode()) != string(want.Encode()) {
			t.Errorf("entry %s\nwant  %s", e.Encode(), want.Encode())
		}
		if !e.Due(sealedAt().UnixMilli(), 0) {
			t.Errorf("the worker would not take %s", e.Encode())
		}
	})
}

func TestOpenSegment(t *testing.T) {
	eachRedis(t, func(t *testing.T, c rueidis.Client) {
		s := sealed(3)
		s.Open = true
		if err := New(c, segment.DefaultLayout()).Write(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
		mustEqualMessages(t, c, "korvet:storage:local:orders:2:7", s)
		want := segment.Entry{State: segment.Open, Tier: segment.Local, Count: segment.NoCount, OpenedAt: s.SealedAt.UnixMilli()}
		if e := entry(t, c, s); string(e.Encode()) != string(want.Encode()) {
			t.Errorf("entry %s\nwant  %s", e.Encode(), want.Encode())
		}
	})
}

// entry reads the manifest entry as the worker does.
func entry(t *testing.T, c rueidis.Client, s Segment) segment.Entry {
	t.Helper()
	raw, err := c.Do(t.Context(), c.B().Hget().Key("korvet:storage:manifest:"+s.Partition.String()).Field(s.Number.String()).Build()).ToString()
	if err != nil {
		t.Fatal(err)
	}
	e, err := segment.ParseEntry([]byte(raw))
	if err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return e
}

// mustEqualMessages checks that a stream holds what Messages gives, and
// returns its first and its last id.
func mustEqualMessages(t *testing.T, c rueidis.Client, key string, s Segment) (first, last segment.ID) {
	t.Helper()
	entries, err := c.Do(t.Context(), c.B().Xrange().Key(key).Start("-").End("+").Build()).AsXRangeSlices()
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != s.Count {
		t.Fatalf("%s has %d entries, want %d", key, len(entries), s.Count)
	}
	messages := s.Messages()
	for i, e := range entries {
		m := messages.Next()
		if i == 0 {
			first = m.ID
		}
		last = m.ID
		var got, want []string
		for _, f := range e.FieldValues {
			got = append(got, f.Field, f.Value)
		}
		for _, f := range m.Fields() {
			want = append(want, string(f))
		}
		if e.ID != m.ID.String() || !slices.Equal(got, want) {
			t.Fatalf("entry %d is %s %q, want %s %q", i, e.ID, got, m.ID, want)
		}
	}
	return first, last
}

func TestTopicIsOffloaded(t *testing.T) {
	eachRedis(t, func(t *testing.T, c rueidis.Client) {
		if err := New(c, segment.DefaultLayout()).CreateTopic(t.Context(), "orders", 3); err != nil {
			t.Fatal(err)
		}
		if names, err := c.Do(t.Context(), c.B().Smembers().Key("korvet:topics").Build()).AsStrSlice(); err != nil || !slices.Equal(names, []string{"orders"}) {
			t.Errorf("%v: topics %q", err, names)
		}
		own, err := c.Do(t.Context(), c.B().Hgetall().Key("korvet:topic:orders").Build()).AsStrMap()
		if err != nil {
			t.Fatal(err)
		}
		topic := segment.ResolveTopic("orders", own, nil)
		if topic.Err != nil || !topic.Settings.RemoteStorage || topic.Settings.Partitions != 3 {
			t.Errorf("%+v", topic)
		}
	})
}

func TestUsageGrows(t *testing.T) {
	eachRedis(t, func(t *testing.T, c rueidis.Client) {
		b, s := New(c, segment.DefaultLayout()), sealed(1000)
		if err := b.Write(t.Context(), s, nil); err != nil {
			t.Fatal(err)
		}
		if n, err := b.Usage(t.Context(), s); err != nil || n < 40*1000 {
			t.Errorf("%d bytes, %v", n, err)
		}
	})
}

func TestRemoveLeavesOthersAlone(t *testing.T) {
	eachRedis(t, func(t *testing.T, c rueidis.Client) {
		b, mine, other := New(c, segment.DefaultLayout()), sealed(1), sealed(1)
		other.Partition.Topic = "payments"
		for _, s := range []Segment{mine, other} {
			if err := b.CreateTopic(t.Context(), s.Partition.Topic, 1); err != nil {
				t.Fatal(err)
			}
			if err := b.Write(t.Context(), s, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := b.Remove(t.Context(), "orders", []Segment{mine, other}); err != nil {
			t.Fatal(err)
		}
		keys, err := c.Do(t.Context(), c.B().Keys().Pattern("*").Build()).AsStrSlice()
		slices.Sort(keys)
		want := []string{"korvet:storage:local:payments:2:7", "korvet:storage:manifest:payments:2", "korvet:topic:payments", "korvet:topics"}
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("%v: left %q, want %q", err, keys, want)
		}
	})
}

func TestErrorsNameWhatWasDone(t *testing.T) {
	server := redisserver.Start(t)
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr}, DisableCache: true, ForceSingleClient: true, DisableRetry: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	b, s := New(client, segment.DefaultLayout()), sealed(2)
	for _, tt := range []struct {
		key, want string
		do        func(context.Context) error
	}{
		{"korvet:topics", "register topic orders: ", func(ctx context.Context) error { return b.CreateTopic(ctx, "orders", 1) }},
		{"korvet:storage:local:orders:2:7", "write segment orders:2/7: ", func(ctx context.Context) error { return b.Write(ctx, s, nil) }},
		{"korvet:storage:manifest:orders:2", "write the manifest entry of orders:2/7: ", func(ctx context.Context) error { return b.Write(ctx, s, nil) }},
		{"korvet:topics", "remove topic orders: ", func(ctx context.Context) error { return b.Remove(ctx, "orders", nil) }},
		{"other", "ask for the memory of segment orders:2/7: ", func(ctx context.Context) error { _, err := b.Usage(ctx, s); return err }},
	} {
		server.Exec("FLUSHALL")
		server.Exec("SET", tt.key, "a string")
		if err := tt.do(t.Context()); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q, want %q", fmt.Sprint(err), tt.want)
		}
	}
}
