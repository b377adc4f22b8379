package lease

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// fakeServer is several keys and the Hash of the members, by the clock of the
// test.
type fakeServer struct {
	mu      sync.Mutex
	keys    map[string]*fakeRedis
	members map[string]string
}

func newFakeServer() *fakeServer {
	return &fakeServer{keys: map[string]*fakeRedis{}, members: map[string]string{}}
}

func (s *fakeServer) key(name string) *fakeRedis {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keys[name] == nil {
		s.keys[name] = &fakeRedis{}
	}
	return s.keys[name]
}

// link is one instance's connection to the server.
type link struct {
	*fakeServer
	cut    atomic.Bool // nothing comes through
	denied atomic.Bool // leases are
	blind  atomic.Bool // requests for leases can't be read
}

func (l *link) up() error {
	if l.cut.Load() {
		return errRefused
	}
	return nil
}

func (l *link) acquire(ctx context.Context, key, token string, d time.Duration) (bool, time.Duration, error) {
	if l.cut.Load() || l.denied.Load() {
		return false, 0, errRefused
	}
	return l.key(key).acquire(ctx, key, token, d)
}

func (l *link) renew(ctx context.Context, key, token string, d time.Duration) (bool, error) {
	if err := l.up(); err != nil {
		return false, err
	}
	return l.key(key).renew(ctx, key, token, d)
}

func (l *link) release(ctx context.Context, key, token string) error {
	if err := l.up(); err != nil {
		return err
	}
	return l.key(key).release(ctx, key, token)
}

func (l *link) wanted(ctx context.Context, key string) (string, error) {
	if l.cut.Load() {
		return "", errRefused
	}
	if l.blind.Load() {
		return "", errReply
	}
	return l.key(key).wanted(ctx, key)
}

func (l *link) look(_ context.Context, _, id, record, began string, stale time.Duration) ([]string, error) {
	if err := l.up(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMilli()
	if record != "" {
		if began == "" {
			began = fmt.Sprint(now)
		}
		l.members[id] = record + `"startedAt":` + began + fmt.Sprintf(`,"seenAt":%d}`, now)
	}
	reply := []string{fmt.Sprint(now)}
	for _, id := range slices.Sorted(maps.Keys(l.members)) {
		var m Member
		_ = json.Unmarshal([]byte(l.members[id]), &m)
		switch {
		case max(now-m.SeenAt, m.SeenAt-now) <= stale.Milliseconds():
			reply = append(reply, id, l.members[id])
		case record != "":
			delete(l.members, id)
		}
	}
	return reply, nil
}

func (l *link) leave(_ context.Context, _, id string) error {
	if err := l.up(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.members, id)
	return nil
}

// instance is a process with a group that runs, and leads when it can.
type instance struct {
	*Group
	link *link
	stop context.CancelFunc
	ran  sync.WaitGroup
	seen atomic.Pointer[View]
}

func start(t *testing.T, s *fakeServer, id string, shards int) *instance {
	t.Helper()
	l := &link{fakeServer: s}
	ctx, stop := context.WithCancel(t.Context())
	i := &instance{Group: newGroup(l, l, Config{Key: "k", Duration: duration, Shards: shards}, Member{ID: id}), link: l, stop: stop}
	i.ran.Go(func() { i.Run(ctx, func(v View) { i.seen.Store(&v) }) })
	return i
}

// end stops an instance as a signal does.
func (i *instance) end() {
	i.stop()
	i.ran.Wait()
}

// kill ends it without a word to the server.
func (i *instance) kill() {
	i.link.cut.Store(true)
	i.end()
}

// shares says who holds what.
func shares(all ...*instance) string {
	var text []string
	for _, i := range all {
		text = append(text, fmt.Sprint(i.Held()))
	}
	return strings.Join(text, " ")
}

// counts is how many each holds.
func counts(all ...*instance) string {
	var n []int
	for _, i := range all {
		n = append(n, len(i.Held()))
	}
	return fmt.Sprint(n)
}
