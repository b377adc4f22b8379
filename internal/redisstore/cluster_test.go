package redisstore

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// twoNodes starts a cluster whose slots are shared by two nodes.
func twoNodes(t *testing.T) (a, b *redisserver.Server) {
	a, b = redisserver.Start(t, redisserver.Cluster(false)), redisserver.Start(t, redisserver.Cluster(false))
	a.Exec("CLUSTER", "ADDSLOTSRANGE", "0", "8191")
	b.Exec("CLUSTER", "ADDSLOTSRANGE", "8192", "16383")
	a.Exec("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(b.Port), strconv.Itoa(b.BusPort))
	for _, n := range []*redisserver.Server{a, b} {
		n.AwaitCluster()
		eventually(t, "every slot known", func() bool {
			return strings.Contains(n.Exec("CLUSTER", "INFO"), "cluster_slots_ok:16384")
		})
	}
	return a, b
}

// keyOf is a key whose slot lies in a half of the slots.
func keyOf(s *redisserver.Server, upper bool) string {
	for i := 0; ; i++ {
		key := "stream-" + strconv.Itoa(i)
		slot, _ := strconv.Atoi(s.Exec("CLUSTER", "KEYSLOT", key))
		if upper == (slot >= 8192) {
			return key
		}
	}
}

func TestClusterRedirects(t *testing.T) {
	a, b := twoNodes(t)
	lower, upper := keyOf(a, false), keyOf(a, true)
	a.Pipe(messages(lower, 3_000))
	b.Pipe(messages(upper, 3_000))
	readers(t, func(t *testing.T, reader string) {
		c := config(a)
		c.Cluster = true
		s := openReader(t, c, reader)
		for _, key := range []string{lower, upper, lower, upper} {
			if got, _, err := readAll(t.Context(), s, key); err != nil || len(got) != 3_000 {
				t.Errorf("%s: %d entries, %v", key, len(got), err)
			}
		}
		for i := range 20 { // keys of either node
			everyKind(t, s, s, segment.Partition{Topic: "t", Number: i})
			everyKind(t, s, s, segment.Partition{Topic: "plain" + strconv.Itoa(i), Plain: true})
		}
		everyPartitionAtOnce(t, s)
		if _, err := s.Topics(t.Context()); err != nil {
			t.Errorf("topics: %v", err)
		}
	})
}

// everyPartitionAtOnce asks for keys of both nodes in one batch.
func everyPartitionAtOnce(t *testing.T, s *Store) {
	t.Helper()
	var peeks []segment.Peek
	var queries []segment.SizeQuery
	for i := range 20 {
		p := segment.Partition{Topic: "t", Number: i}
		peeks = append(peeks, segment.Peek{Partition: p, Numbers: []segment.Number{1, 0}})
		queries = append(queries, segment.SizeQuery{Key: "plain" + strconv.Itoa(i), Memory: true})
	}
	peeked, err := s.Peek(t.Context(), peeks)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := s.Sizes(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		if peeked[i].Err != nil || peeked[i].Raw[1] != "b" || sizes[i].Err != nil || sizes[i].Length != 1 {
			t.Errorf("%d: %+v, %+v", i, peeked[i], sizes[i])
		}
	}
}

// TestClusterWaitsAtTheNodeOfTheKey, wherever its slot is. The nodes have no
// replicas, which only the one that has made the change can say.
func TestClusterWaitsAtTheNodeOfTheKey(t *testing.T) {
	a, b := twoNodes(t)
	c := config(a)
	c.Cluster, c.WaitReplicas, c.Timeout = true, 1, 500*time.Millisecond
	s := open(t, c)
	change := func(when string) {
		t.Helper()
		for i := range 10 {
			p := segment.Partition{Topic: "t", Number: i}
			ok, err := s.Change(t.Context(), p, segment.Change{New: when, First: true, Durable: true})
			if !ok || ClassOf(err) != NotReplicated || !strings.Contains(err.Error(), "0 of 1 replicas") {
				t.Errorf("%s: change of %s: %t, %v", when, p, ok, err)
			}
			if gone, err := s.Change(t.Context(), p, segment.Change{Old: when}); !gone || err != nil {
				t.Errorf("%s: it was not made: %t, %v", when, gone, err)
			}
		}
	}
	change("at rest")
	idA, idB := a.Exec("CLUSTER", "MYID"), b.Exec("CLUSTER", "MYID")
	slots := map[string]bool{}
	for i := range 10 {
		key := c.Layout.ManifestKey(segment.Partition{Topic: "t", Number: i})
		if slot, _ := strconv.Atoi(a.Exec("CLUSTER", "KEYSLOT", key)); slot < 8192 {
			slots[strconv.Itoa(slot)] = true
		}
	}
	if len(slots) == 0 {
		t.Fatal("no key lies at the first node")
	}
	for slot := range slots {
		b.Exec("CLUSTER", "SETSLOT", slot, "IMPORTING", idA)
		a.Exec("CLUSTER", "SETSLOT", slot, "MIGRATING", idB)
	}
	change("on the move")
	for slot := range slots {
		b.Exec("CLUSTER", "SETSLOT", slot, "NODE", idB)
		a.Exec("CLUSTER", "SETSLOT", slot, "NODE", idB)
	}
	change("moved")
}

// TestClusterWithoutItsFirstNode: the address in the settings is that of a
// node that has gone.
func TestClusterWithoutItsFirstNode(t *testing.T) {
	a, b := twoNodes(t)
	upper := keyOf(a, true)
	b.Exec("CONFIG", "SET", "cluster-require-full-coverage", "no")
	b.Pipe(messages(upper, 100))
	c := config(a)
	c.Cluster = true
	s := openReader(t, c, ReaderDirect)
	a.Stop()
	if got, _, err := readAll(t.Context(), s, upper); err != nil || len(got) != 100 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

func TestClusterFollowsASlotThatMoves(t *testing.T) {
	a, b := twoNodes(t)
	key := keyOf(a, false)
	slot := a.Exec("CLUSTER", "KEYSLOT", key)
	idA, idB := a.Exec("CLUSTER", "MYID"), b.Exec("CLUSTER", "MYID")
	b.Exec("CLUSTER", "SETSLOT", slot, "IMPORTING", idA)
	a.Exec("CLUSTER", "SETSLOT", slot, "MIGRATING", idB)
	b.Pipe(asking(key))
	read := func(t *testing.T, reader string) {
		c := config(a)
		c.Cluster = true
		if got, _, err := readAll(t.Context(), openReader(t, c, reader), key); err != nil || len(got) != 50 {
			t.Errorf("%d entries, %v", len(got), err)
		}
	}
	readers(t, read)
	for _, n := range []*redisserver.Server{b, a} {
		n.Exec("CLUSTER", "SETSLOT", slot, "NODE", idB)
	}
	readers(t, read)
}

// asking adds 50 entries to a slot that is being imported.
func asking(key string) []byte {
	var b []byte
	for i := range 50 {
		b = redisserver.AppendCommand(b, "ASKING")
		b = redisserver.AppendCommand(b, "XADD", key, strconv.Itoa(i+1)+"-0", "f", "v")
	}
	return b
}

func TestRedirectAddresses(t *testing.T) {
	for reply, want := range map[string]string{
		"MOVED 3999 127.0.0.1:6381": "MOVED 127.0.0.1:6381",
		"ASK 3999 host.name:6381":   "ASK host.name:6381",
		"MOVED 3999 :6381":          "MOVED [::1]:6381",
		"MOVED 1 fe80::1:6381":      "MOVED [fe80::1]:6381",
		"MOVED 1 [fe80::1]:6381":    "MOVED [fe80::1]:6381",
		"MOVED 1":                   " ",
		"MOVED 1 nonsense":          " ",
		"ERR no":                    " ",
	} {
		word, addr := redirect(reply, "[::1]:6380")
		if got := word + " " + addr; got != want {
			t.Errorf("%q: %q, want %q", reply, got, want)
		}
	}
}
