package redisstore

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// watchedPair is a primary with a replica, and sentinels that watch them.
func watchedPair(t *testing.T, options ...redisserver.Option) (primary, replica *redisserver.Server, g *redisserver.Sentinels) {
	t.Helper()
	primary = redisserver.Start(t)
	replica = redisserver.Start(t, redisserver.ReplicaOf(primary))
	primary.AwaitReplica(replica)
	return primary, replica, redisserver.StartSentinels(t, "orders", primary, 1, options...)
}

func sentinelConfig(g *redisserver.Sentinels) Config {
	return Config{URI: g.URI(""), Layout: segment.DefaultLayout(), PageSize: 10_000, Timeout: 3 * time.Second}
}

// A store that is open goes on at the new primary, within seconds, whichever way
// the old one went.
//
//fault:redis | The primary fails over while a store is open | the primary is killed, handed over by SENTINEL FAILOVER, or stopped until another one was promoted | commands and pages work again within seconds, at the new primary
func TestAStoreFollowsAFailover(t *testing.T) {
	for name, fail := range map[string]func(primary *redisserver.Server, g *redisserver.Sentinels){
		"killed":      func(primary *redisserver.Server, _ *redisserver.Sentinels) { primary.Stop() },
		"frozen":      func(primary *redisserver.Server, _ *redisserver.Sentinels) { primary.Freeze() },
		"handed over": func(_ *redisserver.Server, g *redisserver.Sentinels) { g.Nodes[0].Exec("SENTINEL", "FAILOVER", g.Name) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			primary, replica, g := watchedPair(t)
			primary.Pipe(messages("s", 1000))
			primary.AwaitReplica(replica)
			c := sentinelConfig(g)
			c.Timeout = time.Second
			readers(t, func(t *testing.T, reader string) {
				s := openReader(t, c, reader)
				if ok, err := swap(t.Context(), s, 0, "", sealed); !ok || err != nil {
					t.Fatalf("before: %t, %v", ok, err)
				}
				if ok, err := swap(t.Context(), s, 0, sealed, ""); !ok || err != nil {
					t.Fatalf("before: %t, %v", ok, err)
				}
			})
			s := openReader(t, c, ReaderDirect)
			if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 1000 {
				t.Fatalf("before: %d entries, %v", len(got), err)
			}
			primary.AwaitReplica(replica)
			fail(primary, g)
			g.AwaitPrimary(replica)
			since := time.Now()
			eventually(t, "a change at the new primary", func() bool { // the old one takes it until it has heard of the other
				_, err := swap(t.Context(), s, 0, "", sealed)
				return err == nil && replica.Exec("HGET", ordersKey(), "0") == sealed
			})
			if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 1000 {
				t.Errorf("after: %d entries, %v", len(got), err)
			}
			if took := time.Since(since); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// A connection to a primary that has become a replica lives on, and writes are
// refused there: the first refusal ends every connection.
//
//fault:redis | A primary becomes a replica without a word, and becomes one again | REPLICAOF at the live server, and REPLICAOF NO ONE | the first refused write ends the connections, no other is made to the replica, and all goes on afterwards
func TestADemotedPrimaryIsLeft(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("s", 10))
	s := openReader(t, config(server), ReaderDirect)
	if _, _, err := readAll(t.Context(), s, "s"); err != nil {
		t.Fatal(err)
	}
	server.Exec("REPLICAOF", "127.0.0.1", "1")
	_, err := swap(t.Context(), s, 0, "", sealed)
	if ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "READONLY") {
		t.Errorf("the first change: class %s, %v", ClassOf(err), err)
	}
	if n := strings.Count(server.Exec("CLIENT", "LIST"), "name="+clientName); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	for name, call := range map[string]func() error{
		"change":      func() error { _, err := swap(t.Context(), s, 0, "", sealed); return err },
		"stream info": func() error { _, err := s.StreamInfo(t.Context(), "s"); return err },
		"pages":       func() error { _, _, err := readAll(t.Context(), s, "s"); return err },
	} {
		if err := call(); ClassOf(err) != Unavailable || !strings.Contains(err.Error(), "it is a replica of 127.0.0.1:1") || !strings.Contains(err.Error(), "address of the primary") {
			t.Errorf("%s: class %s, %v", name, ClassOf(err), err)
		}
	}
	server.Exec("REPLICAOF", "NO", "ONE")
	if ok, err := swap(t.Context(), s, 0, "", sealed); !ok || err != nil {
		t.Errorf("afterwards: %t, %v", ok, err)
	}
	if got, _, err := readAll(t.Context(), s, "s"); err != nil || len(got) != 10 {
		t.Errorf("afterwards: %d entries, %v", len(got), err)
	}
}

// Pages count only if they come from one primary that was one all the time.
//
//fault:redis | The server of a page reader stops being the primary between two pages | it becomes a replica, or a replica and a primary again, or another server at the same address | the reader fails as unavailable and never says that the stream has ended
func TestPagesOfADemotedPrimaryDoNotCount(t *testing.T) {
	for name, between := range map[string]func(server *redisserver.Server){
		"a replica": func(server *redisserver.Server) { server.Exec("REPLICAOF", "127.0.0.1", "1") },
		"a primary once more": func(server *redisserver.Server) {
			server.Exec("REPLICAOF", "127.0.0.1", "1")
			server.Exec("REPLICAOF", "NO", "ONE")
		},
		"another server there":   func(server *redisserver.Server) { server.Restart(); server.Pipe(messages("s", 100)) },
		"a replica, behind them": nil,
	} {
		t.Run(name, func(t *testing.T) {
			readers(t, func(t *testing.T, reader string) {
				server := redisserver.Start(t)
				server.Pipe(messages("s", 100))
				c := config(server)
				c.PageSize = 40
				r := openReader(t, c, reader).Pages("s", segment.ID{}, segment.ID{})
				defer r.Close()
				var p segment.Page
				for range 3 {
					if err := r.Next(t.Context(), &p); err != nil {
						t.Fatal(err)
					}
					if between != nil {
						between(server)
						break
					}
				}
				if between == nil {
					server.Exec("REPLICAOF", "127.0.0.1", "1")
				}
				var err error
				for err == nil {
					err = r.Next(t.Context(), &p)
				}
				if errors.Is(err, io.EOF) || ClassOf(err) != Unavailable {
					t.Errorf("class %s, %v", ClassOf(err), err)
				}
			})
		})
	}
}

// What is wrong about an address is found when the store is opened, and the
// message says what to write.
func TestOpenNamesTheWrongMode(t *testing.T) {
	primary, _, g := watchedPair(t, redisserver.Users("user default on nopass ~* &* +@all",
		"user watcher on >pw&x nocommands +sentinel|get-master-addr-by-name", "user nobody on >pw nocommands"))
	node := redisserver.Start(t, redisserver.Cluster(true))
	for name, tt := range map[string]struct {
		Config
		class Class
		says  string
	}{
		"a server for a node":     {Config{URI: primary.URI(), Cluster: true}, WrongMode, "set korvet.redis.cluster to false"},
		"a node for a server":     {Config{URI: node.URI()}, WrongMode, "set korvet.redis.cluster to true"},
		"a sentinel for a server": {Config{URI: "redis://" + g.Nodes[0].Addr}, WrongMode, "it is a sentinel: write korvet.redis.uri as redis+sentinel://" + g.Nodes[0].Addr},
		"a server for a sentinel": {Config{URI: "redis+sentinel://" + primary.Addr + "/orders"}, WrongMode, "it is a server and no sentinel"},
		"a node for a sentinel":   {Config{URI: "redis+sentinel://" + node.Addr + "/orders"}, WrongMode, "it is a server and no sentinel"},
		"another name":            {Config{URI: "redis+sentinel://" + g.Nodes[0].Addr + "," + g.Nodes[1].Addr + "/order"}, WrongMode, "no primary of that name: order; in korvet.redis.uri write behind the sentinels one that it watches: /orders"},
		"no password":             {Config{URI: g.URI(""), SentinelPassword: "wr0ng"}, "", ""},
		"another user":            {Config{URI: g.URI(""), SentinelUsername: "watcher", SentinelPassword: "wr0ng"}, Auth, "korvet.redis.sentinel.password"},
		"a user without rights":   {Config{URI: g.URI(""), SentinelUsername: "nobody", SentinelPassword: "pw"}, Permission, "+sentinel|get-master-addr-by-name"},
		"no sentinel there":       {Config{URI: "redis+sentinel://127.0.0.1:1/orders"}, Unavailable, "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			tt.Layout, tt.Timeout = segment.DefaultLayout(), 3*time.Second
			s, err := Open(t.Context(), tt.Config, nil, nil)
			if err == nil {
				s.Close()
			}
			if tt.class == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if ClassOf(err) != tt.class || !strings.Contains(err.Error(), tt.says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "wr0ng") {
				t.Errorf("class %s, %v", ClassOf(err), err)
			}
			if tt.class == WrongMode && strings.Contains(err.Error(), "to true for") {
				t.Errorf("two advices: %v", err)
			}
		})
	}
	for _, n := range g.Nodes {
		n.Exec("ACL", "LOG", "RESET")
	}
	open(t, Config{URI: g.URI(""), SentinelUsername: "watcher", SentinelPassword: "pw&x", Layout: segment.DefaultLayout()})
	for _, n := range g.Nodes {
		if log := strings.TrimSpace(n.Exec("ACL", "LOG")); log != "" {
			t.Errorf("the smallest user was refused something: %s", log)
		}
	}
}

func TestOpenASentinelsDatabase(t *testing.T) {
	primary, _, g := watchedPair(t)
	s := open(t, func() Config { c := sentinelConfig(g); c.URI += "/5"; return c }())
	if ok, err := swap(t.Context(), s, 0, "", sealed); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	if got := primary.Exec("-n", "5", "HGET", ordersKey(), "0"); got != sealed {
		t.Errorf("database 5 has %q", got)
	}
}

//fault:redis | A TLS server wants a client certificate | none is set, or one of another authority | one line that names the settings
func TestClientCertificates(t *testing.T) {
	server := redisserver.Start(t, redisserver.TLS(), redisserver.ClientCertificates())
	server.Exec("XADD", "s", "1-1", "f", "v")
	c := config(server)
	own := t.TempDir() + "/own.crt"
	redisserver.WriteCertificate(t, own, own+".key")
	for range 5 { // the server's hanging up may be faster than its word
		for says, files := range map[string][2]string{
			"set korvet.redis.cert-file and korvet.redis.key-file": {},
			"does not take the client certificate":                 {own, own + ".key"},
			"read korvet.redis.cert-file":                          {own, own},
		} {
			c.CertFile, c.KeyFile = files[0], files[1]
			s, err := Open(t.Context(), c, nil, nil)
			if err == nil {
				s.Close()
			}
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("want %q: %v", says, err)
			}
		}
	}
	c.CertFile, c.KeyFile = server.CertFile, server.KeyFile
	readers(t, func(t *testing.T, reader string) {
		if got, _, err := readAll(t.Context(), openReader(t, c, reader), "s"); err != nil || len(got) != 1 {
			t.Errorf("%d entries, %v", len(got), err)
		}
	})
}
