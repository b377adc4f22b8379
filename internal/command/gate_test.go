package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// paper is what Redis says is paused.
type paper struct {
	mu     sync.Mutex
	fields map[string]string
	err    error
	reads  int
}

func (p *paper) Paused(context.Context) (segment.Pauses, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads++
	return segment.ParsePauses(p.fields), p.err
}

func (p *paper) set(fields map[string]string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fields, p.err = fields, err
}

func pausedFields(scopes ...segment.Scope) map[string]string {
	fields := map[string]string{}
	for _, s := range scopes {
		fields[s.Field()] = segment.Pause{Scope: s}.Encode()
	}
	return fields
}

// mustEnter checks who may enter: orders, other, and a plain stream.
func mustEnter(t *testing.T, g offload.Gate, when, want string) {
	t.Helper()
	got := ""
	for _, p := range []segment.Partition{{Topic: "orders"}, {Topic: "other", Number: 3}, {Topic: "orders", Plain: true}} {
		if leave, ok := g.Enter(p); ok {
			leave()
			got += " " + p.String()
		}
	}
	if got != want {
		t.Errorf("%s: %q may enter, want %q", when, got, want)
	}
}

// The gate goes by what Redis has said last. What was paused stays so while Redis
// does not answer; what can't be understood pauses everything.
func TestPauseGate(t *testing.T) {
	const everybody = " orders:0 other:3 orders"
	redis := &paper{}
	g := newPauseGate(redis)
	mustEnter(t, g, "before anything is known", everybody)
	for _, tt := range []struct {
		when   string
		fields map[string]string
		err    error
		fails  bool
		want   string
	}{
		{"nothing is paused", nil, nil, false, everybody},
		{"a topic", pausedFields(segment.Scope{Topic: "orders"}), nil, false, " other:3 orders"},
		{"Redis is away", nil, fmt.Errorf("no: %w", offload.ErrRedisDown), true, " other:3 orders"},
		{"a stream", pausedFields(segment.Scope{Stream: "orders"}), nil, false, " orders:0 other:3"},
		{"nonsense", nil, errors.New("WRONGTYPE"), false, ""},
		{"a garbled value", map[string]string{"topic:other": "?"}, nil, false, " orders:0 orders"},
		{"everything", pausedFields(segment.Scope{}), nil, false, ""},
		{"nothing again", nil, nil, false, everybody},
	} {
		redis.set(tt.fields, tt.err)
		if _, err := g.Paused(t.Context()); (err != nil) != tt.fails {
			t.Errorf("%s: %v", tt.when, err)
		}
		mustEnter(t, g, tt.when, tt.want)
	}
}

// Between two passes, and in a long one, Redis is asked every ten seconds.
func TestPauseGateFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		redis := &paper{fields: pausedFields(segment.Scope{})}
		g := newPauseGate(redis)
		told := 0
		g.telling(func(all segment.Pauses) { told += 1 + len(all.List) })
		stop := g.following(t.Context())
		time.Sleep(watchInterval - time.Second)
		mustEnter(t, g, "before", " orders:0 other:3 orders")
		time.Sleep(2 * time.Second)
		mustEnter(t, g, "after", "")
		redis.set(nil, nil)
		time.Sleep(watchInterval)
		mustEnter(t, g, "resumed", " orders:0 other:3 orders")
		stop()
		if redis.reads != 2 || told != 3 {
			t.Errorf("%d reads, told %d", redis.reads, told)
		}
	})
}
