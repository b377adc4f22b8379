package lease

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

const wantedKey = key + ":wanted"

// lends waits until a leadership has been lent.
func lends(lead context.Context, t *testing.T) {
	t.Helper()
	select {
	case <-lead.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the leadership goes on")
	}
	if cause := context.Cause(lead); !errors.As(cause, new(*LentError)) {
		t.Errorf("cause %v", cause)
	}
}

func TestBorrowingOnAServer(t *testing.T) {
	//fault:leaders | Somebody borrows the lease, on a real server, full or not | maxmemory 1, a leader and a follower | The leader hands it over within seconds, the request lapses by itself, and afterwards nothing is left of it
	t.Parallel()
	s := redisserver.Start(t)
	s.Exec("CONFIG", "SET", "maxmemory", "1")
	c := Config{Key: key, Members: membersKey, Duration: 6 * time.Second}
	a := New(client(t, s), c)
	lead, release, err := a.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	loan, back, err := New(client(t, s), c).Borrow(t.Context(), "gc #1 by \"me\"", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	lends(lead, t)
	if who, err := Asked(t.Context(), client(t, s), c); err != nil || who != `gc #1 by "me"` {
		t.Errorf("asked for by %q, %v", who, err)
	}
	if ttl := s.Exec("PTTL", wantedKey); len(ttl) != 5 || ttl > "30000" {
		t.Errorf("the request lapses in %s ms", ttl)
	}
	if _, _, err := a.Acquire(t.Context()); err == nil || errors.Is(err, ErrLost) || !errors.Is(err, ErrHeld) {
		t.Errorf("acquire what is lent: %v", err)
	}
	if err := errors.Join(release(t.Context()), loan.Err(), back(t.Context())); err != nil {
		t.Error(err)
	}
	if got := s.Exec("EXISTS", key, wantedKey); got != "0" {
		t.Errorf("left behind: %s keys", got)
	}
	if who, err := Asked(t.Context(), client(t, s), c); err != nil || who != "" {
		t.Errorf("asked for by %q, %v", who, err)
	}
	_, release, err = a.Acquire(t.Context())
	if err != nil || release(t.Context()) != nil {
		t.Errorf("acquire: %v", err)
	}
}

func TestBorrowingShardsOnAServer(t *testing.T) {
	//fault:leaders | Somebody borrows all leases of two instances, which a process of other settings asks for | A real server; the borrower believes in a single lease | Both hand over, and share anew when it is given back
	t.Parallel()
	s := redisserver.Start(t)
	a, b := groupOf(t, s, "a", 4), groupOf(t, s, "b", 4)
	running(t, a)
	running(t, b)
	become(t, "[2 2]", a, b)
	using(t, a)
	_, back, err := New(client(t, s), Config{Key: key, Members: membersKey, Duration: 6 * time.Second}).Borrow(t.Context(), "gc", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if got := counted(a, b); got != "[0 0]" {
		t.Errorf("shares while all is lent: %s", got)
	}
	if err := back(t.Context()); err != nil {
		t.Error(err)
	}
	become(t, "[2 2]", a, b)
	if got := strings.TrimSpace(s.Exec("EXISTS", wantedKey, key)); got != "0" {
		t.Errorf("left behind: %s keys", got)
	}
}

func counted(groups ...*Group) string {
	var n []int
	for _, g := range groups {
		n = append(n, len(g.Held()))
	}
	return fmt.Sprint(n)
}

// What somebody else has written there stops no worker.
func TestARequestThatIsNone(t *testing.T) {
	//fault:input | The key of the request holds a text that never lapses, or is a List | SET and RPUSH on the key, real server | Workers lead as if it were not there; a borrower says which key it is and what to do
	t.Parallel()
	s := redisserver.Start(t)
	c := Config{Key: key, Members: membersKey, Duration: 3 * time.Second}
	for what, write := range map[string][]string{"a text": {"SET", wantedKey, "x"}, "a list": {"RPUSH", wantedKey, "x"}} {
		s.Exec("DEL", wantedKey)
		s.Exec(write...)
		l := New(client(t, s), c)
		lead, release, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatalf("%s: acquire: %v", what, err)
		}
		_, _, err = New(client(t, s), c).Borrow(t.Context(), "gc", func(string) {})
		if err == nil || !strings.Contains(err.Error(), wantedKey) || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("%s: borrow: %v", what, err)
		}
		select {
		case <-lead.Done():
			t.Errorf("%s: the leadership has ended: %v", what, context.Cause(lead))
		case <-time.After(c.Duration): // several looks
		}
		if err := release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
