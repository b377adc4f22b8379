package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// sentinels know which server is the primary. Their methods may be called from
// any goroutine.
type sentinels struct {
	option rueidis.ClientOption // how to reach them: user, password, TLS
	addrs  []string
	master string // the name by which they know the primary

	mu   sync.Mutex
	idle map[string]*conn // by address
}

// opSentinel is what errors of sentinels go by.
const opSentinel = "SENTINEL"

// sentinelTimeout bounds how long one sentinel is waited for, and so does half
// the timeout of a connection: another one may know, and the other half is for
// the primary.
const sentinelTimeout = 2 * time.Second

// testimony is what one sentinel has said.
type testimony struct {
	primary string // host:port
	err     error
}

// find asks all sentinels at once and returns the address that more than half
// of them name, as soon as they do: one that was cut off from the others may
// still name the primary of before. Where no such half is to be had, most is
// false and the address the one that most of those name that answer, which is
// good enough to connect to.
func (s *sentinels) find(ctx context.Context) (addr string, most bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(sentinelTimeout, s.option.Dialer.Timeout/2))
	said := make(chan testimony, len(s.addrs))
	var asking sync.WaitGroup
	defer func() { // the others are told to stop, and waited for
		cancel()
		asking.Wait()
	}()
	for _, addr := range s.addrs {
		asking.Go(func() {
			primary, err := s.ask(ctx, addr)
			said <- testimony{primary, err}
		})
	}
	votes := map[string]int{}
	best := ""
	var errs []error
	for range s.addrs {
		t := <-said
		if t.err != nil {
			errs = append(errs, t.err)
			continue
		}
		if votes[t.primary]++; votes[t.primary] > votes[best] {
			best = t.primary
		}
		if 2*votes[best] > len(s.addrs) {
			return best, true, nil
		}
	}
	if best == "" {
		return "", false, s.nobody(errs)
	}
	return best, false, nil
}

// nobody chooses among the errors of sentinels of which none knows a primary
// the one that says what to change.
func (s *sentinels) nobody(errs []error) error {
	for _, err := range errs {
		if ClassOf(err) != Unavailable {
			return err
		}
	}
	return errs[0]
}

// ask asks one sentinel, over the connection of the last time if that is good
// yet.
func (s *sentinels) ask(ctx context.Context, addr string) (string, error) {
	if c := s.take(addr); c != nil {
		primary, err := s.askOver(ctx, c)
		if _, answered := replyText(err); err == nil || answered {
			s.put(c)
			return primary, s.explain(addr, err)
		}
		c.Close()
	}
	c, err := newConn(ctx, &s.option, addr, (*conn).hello)
	if err != nil {
		return "", s.explain(addr, err)
	}
	primary, err := s.askOver(ctx, c)
	if err != nil {
		c.Close()
		return "", s.explain(addr, err)
	}
	s.put(c)
	return primary, nil
}

func (s *sentinels) askOver(ctx context.Context, c *conn) (string, error) {
	if c.mode != "" && c.mode != "sentinel" {
		return "", errNoSentinel
	}
	release := c.guard(ctx, sentinelTimeout)
	defer release()
	reply, err := c.question("SENTINEL", "GET-MASTER-ADDR-BY-NAME", s.master)
	if err != nil {
		return "", err
	}
	if parts := texts(reply); len(parts) == 2 {
		return net.JoinHostPort(parts[0], parts[1]), nil
	}
	return "", s.unknown(c)
}

func (s *sentinels) take(addr string) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.idle[addr]
	delete(s.idle, addr)
	return c
}

// put keeps a connection, unless there is one.
func (s *sentinels) put(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = map[string]*conn{}
	}
	if s.idle[c.addr] != nil {
		c.Close()
		return
	}
	s.idle[c.addr] = c
}

// close ends the connections that are idle.
func (s *sentinels) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr, c := range s.idle {
		c.Close()
		delete(s.idle, addr)
	}
}

// Errors that only another setting would mend.
var (
	errNoName     = errors.New("the sentinel watches no primary of that name")
	errNoSentinel = errors.New("it is a server and no sentinel: write redis:// with the server's address, or name the sentinels, " +
		"which most often listen at port " + defaultSentinelPort)
)

// unknown says what the sentinel knows instead of the name that was asked for.
func (s *sentinels) unknown(c *conn) error {
	err := fmt.Errorf("%w: %s", errNoName, s.master)
	reply, askErr := c.question("SENTINEL", "MASTERS")
	if askErr != nil {
		return err // it may be forbidden
	}
	var names []string
	parts := texts(reply)
	for i := range len(parts) - 1 {
		if parts[i] == "name" {
			names = append(names, parts[i+1])
		}
	}
	if len(names) > 0 {
		err = fmt.Errorf("%w; in korvet.redis.uri write behind the sentinels one that it watches: /%s", err, strings.Join(names, ", /"))
	}
	return err
}

// explain makes an *Error of what went wrong with a sentinel.
func (s *sentinels) explain(addr string, err error) error {
	if err == nil {
		return nil
	}
	var done *Error
	if errors.As(err, &done) {
		return err
	}
	e := &Error{Op: opSentinel, Key: addr, Class: classify(err), Err: err}
	reply, _ := replyText(err)
	switch {
	case errors.Is(err, errNoName), errors.Is(err, errNoSentinel):
		e.Class, e.Err = WrongMode, advised{err}
	case strings.Contains(reply, "unknown command"):
		e.Class, e.Err = WrongMode, advised{errNoSentinel}
	case e.Class == Auth:
		e.Err = advised{fmt.Errorf("%w (check korvet.redis.sentinel.username and korvet.redis.sentinel.password; those in korvet.redis.uri are the servers')", err)}
	case e.Class == Permission:
		e.Err = advised{fmt.Errorf("%w (the sentinels' user needs +sentinel|get-master-addr-by-name)", err)}
	case isTimeout(err):
		e.Err = errTimeout
	}
	return e
}

// following is the text behind another one in a list of names and values; "" if
// there is none.
func following(reply []byte, name string) string {
	all := texts(reply)
	if i := slices.Index(all, name); i >= 0 && i+1 < len(all) {
		return all[i+1]
	}
	return ""
}

// texts are the bulk strings of a reply, those of nested arrays among them.
func texts(reply []byte) (all []string) {
	for i := 0; i < len(reply); {
		switch reply[i] {
		case '*':
			_, next := header(reply, i, '*')
			if next <= 0 {
				return all
			}
			i = next
		case '$':
			at, n, next := bulk(reply, i)
			if next <= 0 {
				return all
			}
			all = append(all, string(reply[at:at+n]))
			i = next
		default:
			next := skip(reply, i, 1)
			if next <= 0 {
				return all
			}
			i = next
		}
	}
	return all
}
