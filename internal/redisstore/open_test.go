package redisstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisproxy"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

const secret = "p@ss/w0rd:?#[]"

func TestOpenTheWaysToReachAServer(t *testing.T) {
	plain := redisserver.Start(t, redisserver.Password(secret))
	tls := redisserver.Start(t, redisserver.Password(secret), redisserver.TLS())
	users := redisserver.Start(t, redisserver.Users("user default on nopass ~* &* +@all", "user app on >"+secret+" ~* &* +@all"))
	cluster := redisserver.Start(t, redisserver.Cluster(true))
	for name, c := range map[string]Config{
		"uri":     {URI: plain.URI()},
		"parts":   {Host: "127.0.0.1", Port: plain.Port, Password: secret},
		"socket":  {URI: "unix://:" + "p%40ss%2Fw0rd%3A%3F%23%5B%5D" + "@" + plain.Socket},
		"tls":     {URI: tls.URI(), CAFile: tls.CAFile},
		"user":    {URI: users.UserURI("app", secret)},
		"cluster": {URI: cluster.URI(), Cluster: true},
		"db":      {URI: users.UserURI("app", secret) + "/5"},
	} {
		t.Run(name, func(t *testing.T) {
			c.Layout = segment.DefaultLayout()
			for _, reader := range []string{ReaderDirect, ReaderClient} {
				s := openReader(t, c, reader)
				key := "s-" + name + reader
				if err := s.client.Do(t.Context(), s.client.B().Xadd().Key(key).Id("1-1").FieldValue().FieldValue("f", "v").Build()).Error(); err != nil {
					t.Fatal(err)
				}
				c := c
				c.PageSize = 10
				if got, _, err := readAll(t.Context(), s, key); err != nil || len(got) != 1 {
					t.Errorf("%s: %d entries, %v", reader, len(got), err)
				}
			}
		})
	}
}

//fault:redis | wrong password, user, authority, scheme, port or host | real servers with and without TLS and a password | one line that names the setting, and no secret
func TestOpenSaysWhatIsWrong(t *testing.T) {
	plain := redisserver.Start(t, redisserver.Password(secret))
	tls := redisserver.Start(t, redisserver.TLS())
	otherCA := filepath.Join(t.TempDir(), "other.crt")
	redisserver.WriteCertificate(t, otherCA, otherCA+".key")
	closed := redisserver.Start(t)
	closed.Stop()
	for name, c := range map[string]struct {
		Config
		class Class
		says  string
	}{
		"wrong password":          {Config{Host: "127.0.0.1", Port: plain.Port, Password: "wr0ng" + secret}, Auth, "korvet.redis.password"},
		"no password":             {Config{Host: "127.0.0.1", Port: plain.Port}, Auth, "korvet.redis.password"},
		"unknown user":            {Config{Host: "127.0.0.1", Port: plain.Port, Username: "nobody", Password: secret}, Auth, "korvet.redis.username"},
		"refused":                 {Config{URI: closed.URI()}, Unavailable, "refused"},
		"unknown host":            {Config{URI: "redis://no-such-host.invalid:6379"}, Unavailable, "no-such-host.invalid"},
		"wrong CA":                {Config{URI: tls.URI(), CAFile: otherCA}, TLS, "korvet.redis.ca-file"},
		"no CA":                   {Config{URI: tls.URI()}, TLS, "korvet.redis.ca-file"},
		"TLS to plain":            {Config{URI: "rediss://" + plain.Addr, Timeout: 300 * time.Millisecond}, Unavailable, "redis://"},
		"plain to TLS":            {Config{URI: "redis://" + tls.Addr}, Unavailable, "rediss://"},
		"bad URI":                 {Config{URI: "redis://user:" + secret + "@host:port"}, Other, "korvet.redis.uri"},
		"bad scheme":              {Config{URI: "http://user:" + "s3cret" + "@host"}, Other, "korvet.redis.uri"},
		"sentinel":                {Config{URI: "redis://h:1?master_set=m"}, Other, "master_set"},
		"absent CA file":          {Config{URI: tls.URI(), CAFile: "/no/such/file"}, Other, "korvet.redis.ca-file"},
		"CA file of another kind": {Config{URI: tls.URI(), CAFile: os.Args[0]}, Other, "korvet.redis.ca-file"},
		"unknown reader":          {Config{URI: plain.URI(), Reader: "x"}, Other, "page reader"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.Timeout == 0 {
				c.Timeout = 3 * time.Second
			}
			s, err := Open(t.Context(), c.Config, nil, nil)
			if err == nil {
				s.Close()
				t.Fatal("open: no error")
			}
			text := err.Error()
			if ClassOf(err) != c.class || !strings.Contains(text, c.says) || strings.Contains(text, "\n") {
				t.Errorf("class %s, want %s: %q", ClassOf(err), c.class, text)
			}
			if strings.Contains(text, "w0rd") || strings.Contains(text, "wr0ng") || strings.Contains(text, "s3cret") {
				t.Errorf("%q tells the password", text)
			}
		})
	}
}

//fault:redis | INFO is longer than any reply to a handshake: the server counts errors by words that scripts invent | a proxy answers INFO without a section with 300 KB | connections are made, and pages count, by the section that is needed
func TestOpenWhereInfoIsLong(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 10))
	text := "# Errorstats\r\n" + strings.Repeat("errorstat_"+strings.Repeat("E", 80)+":count=1\r\n", 3000)
	c := config(server)
	var asked atomic.Bool
	c.URI = "redis://" + redisproxy.Start(t, server.Addr, lies("*1\r\n$4\r\nINFO\r\n", redisproxy.Fate{Say: func(w io.Writer) {
		asked.Store(true)
		fmt.Fprintf(w, "$%d\r\n%s\r\n", len(text), text) //nolint:errcheck // a test's connection
	}}))
	readers(t, func(t *testing.T, reader string) {
		if got, _, err := readAll(t.Context(), openReader(t, c, reader), "s"); err != nil || len(got) != 10 {
			t.Errorf("%d entries, %v", len(got), err)
		}
		if asked.Load() {
			t.Error("all of INFO was asked for")
		}
	})
}

//fault:network | something takes the connection and says nothing | a listener that never answers | it ends with its context
func TestOpenEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = Open(ctx, Config{URI: "redis://" + l.Addr().String(), Timeout: time.Second}, nil, nil)
	if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 500*time.Millisecond {
		t.Errorf("%v after %s", err, time.Since(start))
	}
}

// TestNoErrorRepeatsThePassword: a server that does not know HELLO answers
// with what it was sent.
//
//fault:redis | a server repeats what it was sent | a server that answers HELLO with its arguments | the password is in no error
func TestNoErrorRepeatsThePassword(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { parrot(c) })
		}
	})
	s, err := Open(t.Context(), Config{URI: "redis://:sesame@" + l.Addr().String(), Layout: segment.DefaultLayout(), PageSize: 1}, nil, nil)
	if err == nil {
		_, _, err = readAll(t.Context(), s, "s")
		s.Close()
	}
	if err == nil || strings.Contains(err.Error(), "sesame") || !strings.Contains(err.Error(), "unknown command") {
		t.Errorf("%v", err)
	}
	l.Close()
	wg.Wait()
}

// parrot takes HELLO for an unknown command, and every other for one that it
// has carried out.
func parrot(c net.Conn) {
	defer c.Close()
	for r := bufio.NewReader(c); ; {
		n, err := r.ReadString('\n')
		if err != nil {
			return
		}
		count, _ := strconv.Atoi(strings.Trim(n, "*\r\n"))
		var args []string
		for range count {
			_, err1 := r.ReadString('\n')
			arg, err2 := r.ReadString('\n')
			if errors.Join(err1, err2) != nil {
				return
			}
			args = append(args, strings.TrimSpace(arg))
		}
		reply := "+OK\r\n"
		if args[0] == "HELLO" {
			reply = fmt.Sprintf("-ERR unknown command 'HELLO', with args beginning with: %q\r\n", args[1:])
		}
		if _, err := io.WriteString(c, reply); err != nil {
			return
		}
	}
}
