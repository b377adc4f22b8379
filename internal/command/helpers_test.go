package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// result is what a command left behind.
type result struct {
	stdout, stderr string
	code           int
}

// call runs the command line in this process, with these variables only.
func call(t *testing.T, environ []string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), Process{Args: append([]string{"korvet-offload"}, args...), Environ: environ, Stdout: &stdout, Stderr: &stderr})
	return result{stdout.String(), stderr.String(), code}
}

// rig is a Redis with topic orders: one partition with two sealed segments of
// 10 messages and an open one, and a folder to move them to.
type rig struct {
	server  *redisserver.Server
	environ []string
}

func newRig(t *testing.T) rig {
	t.Helper()
	server := redisserver.Start(t)
	writeOrders(t, server, 0, 10)
	return rig{server, []string{"KORVET_REDIS_URI=" + server.URI(), "KORVET_STORAGE_REMOTE_PATH=file://" + t.TempDir()}}
}

// writeOrders makes topic orders of one partition: two segments that are sealed, and
// an OPEN one.
func writeOrders(t *testing.T, server *redisserver.Server, seed uint64, count int) {
	t.Helper()
	b := brokerOf(t, server)
	if err := b.CreateTopic(t.Context(), "orders", 1); err != nil {
		t.Fatal(err)
	}
	for n := range segment.Number(3) {
		err := b.Write(t.Context(), broker.Segment{Partition: segment.Partition{Topic: "orders"}, Number: n, Seed: seed + uint64(n), Count: count,
			ValueBytes: 100, Open: n == 2, SealedAt: time.Now().Add(-time.Hour)}, nil)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// brokerOf is a broker over a server until the test ends.
func brokerOf(t *testing.T, server *redisserver.Server) *broker.Broker {
	t.Helper()
	b, err := broker.Connect(server.Addr, segment.DefaultLayout())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// shape lists the fields of a JSON text with their types, in order of their
// names; of a list, the fields of all its elements together.
func shape(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	fields := map[string]bool{}
	addShape(fields, "", v)
	return strings.Join(slices.Sorted(maps.Keys(fields)), "\n")
}

func addShape(fields map[string]bool, path string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for name, value := range v {
			addShape(fields, strings.TrimPrefix(path+"."+name, "."), value)
		}
	case []any:
		if len(v) == 0 {
			fields[path+"[] empty"] = true
		}
		for _, element := range v {
			addShape(fields, path+"[]", element)
		}
	case nil:
		fields[path+" null"] = true
	default:
		fields[fmt.Sprintf("%s %T", path, v)] = true
	}
}

// lines makes one text of lines.
func lines(l ...string) string { return strings.Join(l, "\n") }
