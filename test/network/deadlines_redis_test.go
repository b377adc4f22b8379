package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/lease"
	"korvet-offload/segment"
)

// redisTimeout is the timeout of the settings in these tests.
const redisTimeout = time.Second

// pageTime is the time that a page has, whatever the settings say.
const pageTime = 10 * time.Second

// command is a method of the store, and the time that it may take.
type command struct {
	within time.Duration
	call   func(ctx context.Context, s *redisstore.Store) error
}

// commands calls each method that talks to Redis.
func commands() map[string]command {
	part, key := segment.Partition{Topic: "orders"}, "korvet:storage:local:orders:0:0"
	once := func(call func(context.Context, *redisstore.Store) error) command { return command{redisTimeout, call} }
	return map[string]command{
		"Now":    once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Now(ctx); return err }),
		"Topics": once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Topics(ctx); return err }),
		"Known":  once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Known(ctx); return err }),
		"SwapKnown": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.SwapKnown(ctx, "orders", "", "x")
			return err
		}),
		"Each": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Each(ctx, part, func(string, string) {})
			return err
		}),
		"Peek": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Peek(ctx, []segment.Peek{{Partition: part, Numbers: []segment.Number{0}}})
			return err
		}),
		"Change": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Change(ctx, part, segment.Change{Old: "a", New: "b"})
			return err
		}),
		"Change, durable": {2 * redisTimeout, func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Change(ctx, part, segment.Change{Old: "a", New: "b", Durable: true})
			return err
		}},
		"StreamInfo": once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.StreamInfo(ctx, key); return err }),
		"Sizes": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Sizes(ctx, []segment.SizeQuery{{Key: key, Memory: true}})
			return err
		}),
		"Groups": once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Groups(ctx, key); return err }),
		"Append": once(func(ctx context.Context, s *redisstore.Store) error {
			p := new(segment.Page)
			p.Entry(segment.ID{Ms: 1})
			if err := p.Field([]byte("f"), []byte("v")); err != nil {
				return err
			}
			_, err := s.Append(ctx, key, 0, segment.ID{}, p)
			return err
		}),
		"RegisterTopic": once(func(ctx context.Context, s *redisstore.Store) error {
			return s.RegisterTopic(ctx, "orders", map[string]string{"partitions": "1"})
		}),
		"Remove": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Remove(ctx, key, segment.StreamInfo{Exists: true, Length: 1})
			return err
		}),
		"Trim": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Trim(ctx, key, segment.Piece{First: segment.ID{Ms: 1}, Last: segment.ID{Ms: 2}, Count: 2})
			return err
		}),
		"Eviction": once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Eviction(ctx); return err }),
		"Memory":   once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Memory(ctx); return err }),
		"Paused":   once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.Paused(ctx); return err }),
		"Pause": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.Pause(ctx, segment.Scope{}, "", "")
			return err
		}),
		"ClusterID": once(func(ctx context.Context, s *redisstore.Store) error { _, err := s.ClusterID(ctx); return err }),
		"ClaimClusterID": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.ClaimClusterID(ctx, "x")
			return err
		}),
		"SwapClusterID": once(func(ctx context.Context, s *redisstore.Store) error {
			_, err := s.SwapClusterID(ctx, "x", "y")
			return err
		}),
		"Resume": once(func(ctx context.Context, s *redisstore.Store) error { return s.Resume(ctx, segment.Scope{}) }),
		"Facts": {10 * redisTimeout, func(ctx context.Context, s *redisstore.Store) error {
			return fmt.Errorf("found %v: %w", s.Facts(ctx, redisstore.Look{Config: true}), errNoErrors)
		}},
		"Check": {40 * redisTimeout, func(ctx context.Context, s *redisstore.Store) error {
			return fmt.Errorf("found %v: %w", s.Check(ctx), errNoErrors)
		}},
		"Lacks": {20 * redisTimeout, func(ctx context.Context, s *redisstore.Store) error {
			return fmt.Errorf("lacks %q: %w", s.Lacks(ctx, "orders"), errNoErrors)
		}},
		"Pages": {pageTime, func(ctx context.Context, s *redisstore.Store) error {
			r := s.Pages(key, segment.ID{}, segment.MaxID())
			defer r.Close()
			return r.Next(ctx, new(segment.Page))
		}},
	}
}

// errNoErrors stands for a method that returns no error.
var errNoErrors = errors.New("it does not say")

// Every method of the store that takes a context is in the table.
func TestEveryRedisCommandIsTried(t *testing.T) {
	store := reflect.TypeFor[*redisstore.Store]()
	for i := range store.NumMethod() {
		m := store.Method(i)
		talks := m.Type.NumIn() > 1 && m.Type.In(1) == reflect.TypeFor[context.Context]() || m.Name == "Pages"
		if _, there := commands()[m.Name]; talks && !there {
			t.Errorf("%s is not tried in a black hole", m.Name)
		}
	}
}

// Every command has a deadline, and ends at once with its context.
func TestRedisDeadlines(t *testing.T) {
	//fault:network | Redis becomes a black hole under any one command | every method of the Redis adapter, called while the proxy swallows requests or answers | it ends within its timeout with an error that is an outage, and at once when its context ends
	t.Parallel()
	server := redisserver.Start(t)
	for name, c := range commands() {
		for _, stream := range []string{"upstream", "downstream"} {
			t.Run(name+"/"+stream, func(t *testing.T) {
				t.Parallel()
				s := openThrough(t, server, stream)
				begun := time.Now()
				err := c.call(t.Context(), s)
				if took := time.Since(begun); took > c.within+slack {
					t.Errorf("it took %s, want %s at most", took, c.within)
				}
				if class := redisstore.ClassOf(err); class != redisstore.Unavailable && !errors.Is(err, errNoErrors) {
					t.Errorf("%v (class %q)", err, class)
				}
			})
			t.Run(name+"/"+stream+"/ended", func(t *testing.T) {
				t.Parallel()
				s := openThrough(t, server, stream)
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(redisTimeout/10, cancel)
				begun := time.Now()
				err := c.call(ctx, s)
				if took := time.Since(begun); took > redisTimeout/10+slack/2 {
					t.Errorf("it took %s, and its context ended after %s", took, redisTimeout/10)
				}
				if !errors.Is(err, context.Canceled) && !errors.Is(err, errNoErrors) && !strings.Contains(fmt.Sprint(err), "canceled") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// slack is what a busy machine adds.
const slack = 3 * time.Second

// openThrough connects, lets everything be used once, and swallows all that
// comes after that.
func openThrough(t *testing.T, server *redisserver.Server, stream string) *redisstore.Store {
	t.Helper()
	p := newProxy(t, server.Addr)
	cfg := redisstore.DefaultConfig()
	cfg.URI, cfg.Timeout, cfg.WaitReplicas = "redis://"+p.addr(), redisTimeout, 1
	var s *redisstore.Store
	await(t, "connected and used once", 20*time.Second, func() (ok bool) { // the machine may be busy
		var err error
		if s, err = redisstore.Open(t.Context(), cfg, nil, nil); err != nil {
			return false
		}
		pages := s.Pages("nothing", segment.ID{}, segment.MaxID()) // over a connection of its own
		defer pages.Close()
		_, err = s.Now(t.Context())
		if err == nil && pages.Next(t.Context(), new(segment.Page)) == io.EOF {
			return true
		}
		s.Close()
		return false
	})
	t.Cleanup(s.Close)
	p.add(hole(stream))
	return s
}

// A connection that is taken and never answered does not keep the start
// waiting.
func TestConnectingToABlackHole(t *testing.T) {
	//fault:network | Redis takes connections and says nothing from the start | the adapter is opened while the proxy swallows | it ends within its timeout, and at once with its context
	t.Parallel()
	server := redisserver.Start(t)
	for _, stream := range []string{"upstream", "downstream"} {
		p := newProxy(t, server.Addr)
		p.add(hole(stream))
		cfg := redisstore.DefaultConfig()
		cfg.URI, cfg.Timeout = "redis://"+p.addr(), redisTimeout
		begun := time.Now()
		if _, err := redisstore.Open(t.Context(), cfg, nil, nil); redisstore.ClassOf(err) != redisstore.Unavailable || time.Since(begun) > 2*redisTimeout+slack {
			t.Errorf("%s: %v after %s", stream, err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), redisTimeout/10)
		begun = time.Now()
		if _, err := redisstore.Open(ctx, cfg, nil, nil); err == nil || time.Since(begun) > redisTimeout/10+slack/2 {
			t.Errorf("%s: %v after %s, and its context ended after %s", stream, err, time.Since(begun), redisTimeout/10)
		}
		cancel()
	}
}

// The lease never outlives its key, and asking for it or giving it back does
// not wait for ever.
func TestLeaseDeadlines(t *testing.T) {
	//fault:leaders | Redis becomes a black hole under the lease | taking, renewing and giving back the lease while the proxy swallows requests or answers | each call ends in time, and the leadership ends before the key does
	t.Parallel()
	server := redisserver.Start(t)
	for _, stream := range []string{"upstream", "downstream"} {
		t.Run(stream, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t, server.Addr)
			cfg := redisstore.DefaultConfig()
			cfg.URI, cfg.Timeout = "redis://"+p.addr(), time.Minute // the lease has limits of its own
			s, err := redisstore.Open(t.Context(), cfg, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Close)
			const duration = 10 * time.Second
			l := lease.New(s.Client(), lease.Config{Key: "lease:" + stream, Duration: duration})
			before := time.Now()
			lead, release, err := l.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			p.add(hole(stream))
			<-lead.Done()
			if took := time.Since(before); took >= duration || took < duration/2 || !errors.Is(context.Cause(lead), lease.ErrLost) {
				t.Errorf("the leadership ended after %s of %s: %v", took, duration, context.Cause(lead))
			}
			for name, call := range map[string]func() error{
				"release": func() error { return release(t.Context()) },
				"acquire": func() error { _, _, err := l.Acquire(t.Context()); return err },
			} {
				begun := time.Now()
				if err := call(); err == nil || time.Since(begun) > duration/6+slack {
					t.Errorf("%s: %v after %s", name, err, time.Since(begun))
				}
			}
		})
	}
}
