package lease

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"go.uber.org/goleak"

	"korvet-offload/internal/testkit/redisserver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "korvet:storage:offload:lease"

func client(t *testing.T, s *redisserver.Server) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{s.Addr}, DisableCache: true, DisableRetry: true, ForceSingleClient: true,
	})
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(c.Close)
	return c
}

// await polls until the lease can be taken.
func await(t *testing.T, l *Lease) (context.Context, func(context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		leadership, release, err := l.Acquire(t.Context())
		if err == nil {
			return leadership, release
		}
		if !errors.Is(err, ErrHeld) || time.Now().After(deadline) {
			t.Fatalf("acquire: %v", err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func ended(leadership context.Context, t *testing.T, within time.Duration) {
	t.Helper()
	select {
	case <-leadership.Done():
	case <-time.After(within):
		t.Fatalf("leadership goes on after %s", within)
	}
	if cause := context.Cause(leadership); !errors.Is(cause, ErrLost) {
		t.Errorf("cause = %v, want ErrLost", cause)
	}
}

func TestOneLeaderAtATimeAmongEight(t *testing.T) {
	//fault:leaders | eight processes want the lead at the same time | eight leases of one key take it and give it back in turn | there is one leader at a time
	s := redisserver.Start(t)
	var leaders, terms atomic.Int32
	var wg sync.WaitGroup
	for range 8 {
		l := New(client(t, s), Config{Key: key, Duration: 5 * time.Second})
		wg.Go(func() {
			for range 5 {
				_, release := await(t, l)
				if n := leaders.Add(1); n != 1 {
					t.Errorf("%d leaders at once", n)
				}
				terms.Add(1)
				leaders.Add(-1)
				if err := release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if terms.Load() != 40 {
		t.Errorf("%d terms, want 40", terms.Load())
	}
	if got := s.Exec("EXISTS", key); got != "0" {
		t.Error("the key was left behind")
	}
}

func TestTakeoverAfterTheHolderIsGone(t *testing.T) {
	//fault:leaders | the leader is gone and has not given the lease back | a key of somebody else that expires | the next one leads once it has expired
	t.Parallel()
	s := redisserver.Start(t)
	s.Exec("SET", key, "of a process that was killed", "PX", "2000")
	l := New(client(t, s), Config{Key: key, Duration: 5 * time.Second})
	_, _, err := l.Acquire(t.Context())
	var held *HeldError
	if !errors.As(err, &held) || held.Remaining <= 0 || held.Remaining > 2*time.Second {
		t.Fatalf("acquire: %v", err)
	}
	leadership, release := await(t, l)
	if leadership.Err() != nil {
		t.Error("no leadership")
	}
	if ttl := s.Exec("PTTL", key); ttl == "-1" {
		t.Error("the key never expires")
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnothersKeyIsLeftAlone(t *testing.T) {
	//fault:leaders | the key holds the token of another one | SET of the key while it is led | the leadership ends, and the key is neither prolonged nor deleted
	t.Parallel()
	s := redisserver.Start(t)
	l := New(client(t, s), Config{Key: key, Duration: 3 * time.Second})
	leadership, release := await(t, l)
	s.Exec("SET", key, "foreign", "PX", "100000")
	ended(leadership, t, 3*time.Second)
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	if got := s.Exec("GET", key); got != "foreign" {
		t.Errorf("key = %q", got)
	}
	s.Exec("SET", key, "foreign") // without expiry
	if _, _, err := l.Acquire(t.Context()); !errors.Is(err, ErrHeld) {
		t.Errorf("acquire: %v", err)
	}
	s.Exec("DEL", key)
	_, release = await(t, l)
	if err := errors.Join(release(t.Context()), release(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestADeletedKeyEndsTheLeadershipWithinOneInterval(t *testing.T) {
	//fault:leaders | the lease key is deleted, or lost in a failover | DEL of the key while it is led | the leadership ends within one renewal interval
	t.Parallel()
	s := redisserver.Start(t)
	l := New(client(t, s), Config{Key: key, Duration: 6 * time.Second})
	leadership, release := await(t, l)
	s.Exec("DEL", key)
	ended(leadership, t, 4*time.Second) // the interval is 2 s; the leadership would last for 5.4 s
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
	if _, release = await(t, l); release(t.Context()) != nil {
		t.Error("no second term after a loss")
	}
}

func TestAHungServerEndsTheLeadershipBeforeTheKey(t *testing.T) {
	//fault:leaders | Redis stops answering while it is led | SIGSTOP of redis-server | the leadership ends before the key can have expired
	t.Parallel()
	s := redisserver.Start(t)
	l := New(client(t, s), Config{Key: key, Duration: 6 * time.Second})
	sent := time.Now()
	leadership, release := await(t, l)
	s.Freeze()
	ended(leadership, t, 6*time.Second)
	if took := time.Since(sent); took >= 6*time.Second {
		t.Errorf("leadership ended after %s, and the key had expired", took)
	}
	s.Thaw()
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

// It is by leading that memory is freed.
func TestALeaseOfAFullServer(t *testing.T) {
	//fault:redis | maxmemory is reached | CONFIG SET maxmemory 1 | the lease can be taken and given back, since it is by leading that memory is freed
	s := redisserver.Start(t)
	s.Exec("CONFIG", "SET", "maxmemory", "1")
	l := New(client(t, s), Config{Key: key, Duration: time.Minute})
	_, release, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ttl := s.Exec("PTTL", key); ttl == "-1" || ttl == "-2" {
		t.Errorf("the key lapses in %s ms", ttl)
	}
	other := New(client(t, s), Config{Key: key, Duration: time.Minute})
	if _, _, err := other.Acquire(t.Context()); !errors.Is(err, ErrHeld) {
		t.Errorf("a second one: %v", err)
	}
	if err := release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAKeyOfAnotherTypeIsAnError(t *testing.T) {
	//fault:input | the lease key is a List | RPUSH on the key | it is an error and does not look like following
	s := redisserver.Start(t)
	s.Exec("RPUSH", key, "x")
	if _, _, err := New(client(t, s), Config{Key: key, Duration: time.Second}).Acquire(t.Context()); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("acquire: %v", err)
	}
}
