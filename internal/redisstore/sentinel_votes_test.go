package redisstore

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/internal/testkit/redisserver"
)

// fakeSentinel answers every sentinel's question with one address; "" = it takes
// connections and says nothing.
func fakeSentinel(t *testing.T, primary string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() {
				defer c.Close()
				testify(c, primary)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		serving.Wait()
	})
	return l.Addr().String()
}

func testify(c net.Conn, primary string) {
	b := make([]byte, 4096)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		reply := "*0\r\n"
		if strings.Contains(string(b[:n]), "GET-MASTER") {
			host, port, _ := net.SplitHostPort(primary)
			reply = fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(host), host, len(port), port)
		}
		if primary == "" {
			continue
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}

// One sentinel that was cut off from the others still names the primary of
// before.
//
//fault:redis | Sentinels disagree, or do not answer | three that name two addresses, with one or two of them silent or gone | the address of the majority counts at once, and without one that of those who answer
func TestSentinelsAreOutvoted(t *testing.T) {
	const before, now = "10.0.0.1:1", "10.0.0.2:2"
	for name, tt := range map[string]struct {
		say  []string // "" = silent, "-" = gone
		want string
		most bool
		slow bool
	}{
		"one cut off, first":    {[]string{before, now, now}, now, true, false},
		"one cut off, last":     {[]string{now, now, before}, now, true, false},
		"one silent":            {[]string{"", now, now}, now, true, false},
		"one gone":              {[]string{"-", now, now}, now, true, false},
		"two gone":              {[]string{"-", now, "-"}, now, false, false},
		"two silent":            {[]string{"", now, ""}, now, false, true},
		"one only":              {[]string{now}, now, true, false},
		"five, two of them old": {[]string{before, now, before, now, now}, now, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sentinels{master: "m", option: rueidis.ClientOption{}}
			s.option.Dialer.Timeout = 5 * time.Second
			defer s.close()
			for _, say := range tt.say {
				addr := "127.0.0.1:1"
				if say != "-" {
					addr = fakeSentinel(t, say)
				}
				s.addrs = append(s.addrs, addr)
			}
			start := time.Now()
			got, most, err := s.find(t.Context())
			if err != nil || got != tt.want || most != tt.most {
				t.Errorf("%q, by most %t, %v", got, most, err)
			}
			if took := time.Since(start); !tt.slow && took > sentinelTimeout-500*time.Millisecond {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// Half the time of a connection is the primary's.
//
//fault:redis | One of two sentinels takes connections and never answers | a timeout of 2 s, which is as long as a sentinel may take | connections are made by the word of the other one
func TestAMuteSentinelLeavesTime(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 10))
	c := config(server)
	c.URI, c.Timeout = "redis+sentinel://"+fakeSentinel(t, "")+","+fakeSentinel(t, server.Addr)+"/m", sentinelTimeout
	s := open(t, c)
	if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 10 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

//fault:redis | Sentinels do not agree on the primary while a store is open | a sentinel that names another server alone, or against one, or one server by two names | the connections stay, until more than half of the sentinels name another server
func TestOnlyMostSentinelsEndConnections(t *testing.T) {
	server := redisserver.Start(t)
	_, port, _ := net.SplitHostPort(server.Addr)
	const other = "10.0.0.1:1"
	for name, tt := range map[string]struct {
		say   []string // "-" = gone
		stays bool
	}{
		"one of three":              {[]string{other, "-", "-"}, true},
		"one of two":                {[]string{"-", other}, true},
		"one against one":           {[]string{other, server.Addr}, true},
		"one server, two names":     {[]string{net.JoinHostPort("localhost", port), server.Addr}, true},
		"all, for the same":         {[]string{server.Addr, server.Addr}, true},
		"two of three, for another": {[]string{other, "-", other}, false},
		"one of one, for another":   {[]string{other}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(server)
			cfg.URI = "redis+sentinel://" + fakeSentinel(t, server.Addr) + "/m"
			p, err := cfg.connections()
			if err != nil {
				t.Fatal(err)
			}
			defer p.close()
			c, err := p.connect(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			p.sentinels.addrs = nil
			for _, say := range tt.say {
				addr := "127.0.0.1:1"
				if say != "-" {
					addr = fakeSentinel(t, say)
				}
				p.sentinels.addrs = append(p.sentinels.addrs, addr)
			}
			p.heed(t.Context())
			if stays := c.ask("PING") == nil; stays != tt.stays {
				t.Errorf("the connection stays: %t", stays)
			}
		})
	}
}

func TestNoSentinelKnows(t *testing.T) {
	silent, gone := fakeSentinel(t, ""), "127.0.0.1:1"
	s := sentinels{master: "m", addrs: []string{silent, gone}}
	s.option.Dialer.Timeout = 200 * time.Millisecond
	defer s.close()
	if _, _, err := s.find(t.Context()); ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "redis SENTINEL 127.0.0.1:") {
		t.Errorf("class %s, %v", ClassOf(err), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.find(ctx); err == nil {
		t.Error("no error")
	}
}
