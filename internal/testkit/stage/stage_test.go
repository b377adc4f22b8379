package stage

import (
	"errors"
	"reflect"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestConnReadsEveryReply(t *testing.T) {
	server := redisserver.Start(t)
	c := NewConn(server.Socket)
	defer c.Close()
	for _, tt := range []struct {
		args []string
		want any
	}{
		{[]string{"SET", "a", "b\r\nc"}, "OK"},
		{[]string{"GET", "a"}, "b\r\nc"},
		{[]string{"GET", "none"}, nil},
		{[]string{"STRLEN", "a"}, int64(4)},
		{[]string{"MGET", "a", "none"}, []any{"b\r\nc", nil}},
	} {
		if got, err := c.Do(tt.args...); err != nil || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %v, %v", tt.args, got, err)
		}
	}
	if _, err := c.Do("INCR", "a"); err == nil || !errors.As(err, new(redisserver.ReplyError)) {
		t.Errorf("%v", err)
	}
	server.Restart()
	if _, err := c.Do("PING"); err == nil || errors.As(err, new(redisserver.ReplyError)) {
		t.Errorf("the server was killed: %v", err)
	}
	if got, err := c.Do("PING"); err != nil || got != "PONG" {
		t.Errorf("after that: %v, %v", got, err)
	}
}

func TestProcessTellsHowItIs(t *testing.T) {
	p, err := launch("sleep", nil, "60")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if p.Ended() || p.Stopped() || p.Wait(time.Millisecond) {
		t.Error("it should run")
	}
	p.Signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(10 * time.Second); !p.Stopped(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not stop")
		}
		<-time.After(time.Millisecond)
	}
	p.Kill()
	if !p.Ended() || !p.Killed() || p.Stopped() || p.Code() != -1 {
		t.Errorf("it was killed: %d", p.Code())
	}
	if _, err := launch("/no/such/program", nil); err == nil {
		t.Error("a program that is not there")
	}
}

// What a stage appends is what its judge finds, and what it does not, it misses.
func TestJudgeFindsWhatIsThere(t *testing.T) {
	s := New(t, "unused")
	p := segment.Partition{Topic: "orders"}
	key := s.Layout.SegmentKey(p, 0)
	s.Do("HSET", s.Layout.ManifestKey(p), "0", `{"state":"OPEN","tier":"LOCAL"}`)
	s.MustAppend(p, key, 5)
	if r := s.Judge([]segment.Partition{p}, checker.Rules{}); len(r.Findings) != 0 || r.Tally.InRedis != 5 {
		t.Errorf("%v, %+v", r.Findings, r.Tally)
	}
	messages, err := s.ReadStream(key, "-", "+")
	if err != nil || len(messages) != 5 || messages[4].Sum != s.Acks[4].Sum || messages[4].ID != s.Acks[4].ID {
		t.Errorf("%v, %v", messages, err)
	}
	s.Do("XDEL", key, s.Acks[2].ID)
	if r := s.Judge([]segment.Partition{p}, checker.Rules{}); len(r.Findings) != 1 || r.Findings[0].Kind != checker.Lost {
		t.Errorf("%v", r.Findings)
	}
	s.Do("SET", key, "a string")
	if err := s.Append(p, key, 1); err == nil {
		t.Error("a stream that is a string took a message")
	}
}
