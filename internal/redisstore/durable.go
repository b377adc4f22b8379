package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/rueidis"
)

// ErrNotReplicated means that a durable change was made, and that not as many
// replicas, or not the disk, have said in time that they have it.
var ErrNotReplicated = errors.New("the change was made, and not confirmed in time")

// waits says whether a durable change has something to wait for.
func (c Config) waits() bool { return c.WaitReplicas > 0 || c.WaitAOF }

// waitTime is how long a durable change waits: half of the timeout, so that
// the answer comes before the connection is given up.
func (c Config) waitTime() time.Duration { return max(c.timeout()/2, time.Millisecond) } // 0 would be for ever

// changeDurably runs the change script on a connection of its own, and WAIT or
// WAITAOF behind it: they wait for what their own connection has written. What
// was written before on any other connection lies earlier in the replication
// stream, and is waited for as well.
func (s *Store) changeDurably(ctx context.Context, key string, args []string) (bool, error) {
	node, asking := s.client, false
	for range maxRedirects {
		sent := time.Now()
		changed, err := s.changeOn(ctx, node, asking, key, args)
		s.primary.look(sent, err)
		if changed || err == nil {
			return changed, err
		}
		if node, asking = s.redirected(err); node == nil {
			return false, wrap(ctx, opChange, key, hintReadOnly(s.hintMoved(key, err)))
		}
	}
	return false, wrap(ctx, opChange, key, fmt.Errorf("%w: %d redirects in a row", errProtocol, maxRedirects))
}

// changeOn is changeDurably on one node. Where nothing was changed, the error
// is the script's as it came; else it is that of the wait.
func (s *Store) changeOn(ctx context.Context, node rueidis.Client, asking bool, key string, args []string) (bool, error) {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	c, err := dedicate(limited, node)
	if err != nil {
		return false, err
	}
	defer c.Close() // one that is given back is sent commands that the smallest user may not do
	written, err := runOn(limited, c, asking, key, args)
	if err == nil && written {
		err = s.await(ctx, c, key)
	}
	return written, err
}

// runOn sends the script whole, since a digest that the server does not know
// would take a second try. Blocking: the library ends a blocked connection at
// once, and waits for an answer on others.
func runOn(ctx context.Context, c rueidis.DedicatedClient, asking bool, key string, args []string) (bool, error) {
	cmds := []rueidis.Completed{c.B().Arbitrary("EVAL", changeScript, "1").Keys(key).Args(args...).Blocking()}
	if asking {
		cmds = append([]rueidis.Completed{c.B().Arbitrary("ASKING").Blocking()}, cmds...)
	}
	replies := c.DoMulti(ctx, cmds...)
	written, err := replies[len(replies)-1].AsInt64()
	return written == 1, err
}

// dedicate opens a connection. The library dials without a context, so when
// that ends, a goroutine stays behind for the rest of the timeout and closes
// what came too late.
func dedicate(ctx context.Context, node rueidis.Client) (rueidis.DedicatedClient, error) {
	done := make(chan rueidis.DedicatedClient)
	go func() {
		c, _ := node.Dedicate()
		select {
		case done <- c:
		case <-ctx.Done():
			c.Close()
		}
	}()
	select {
	case c := <-done:
		return c, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// redirected is the node that the answer of a cluster's node names, and
// whether the slot is only on its way there; nil where there is none.
func (s *Store) redirected(err error) (node rueidis.Client, asking bool) {
	reply, ok := rueidis.IsRedisErr(err)
	if !ok || !s.cfg.Cluster {
		return nil, false
	}
	if addr, moved := reply.IsMoved(); moved {
		return s.client.Nodes()[addr], false
	}
	if addr, ask := reply.IsAsk(); ask {
		return s.client.Nodes()[addr], true
	}
	return nil, false
}

// hintMoved is for a redirect to a node that the client has not heard of yet.
func (s *Store) hintMoved(key string, err error) error {
	if !s.cfg.Cluster || classify(err) != WrongMode {
		return err
	}
	return &Error{Op: opChange, Key: key, Class: Unavailable, Err: fmt.Errorf("nothing was changed: the slot is at a node that is not known yet: %w", err)}
}

// errShortfall marks an answer of WAIT or WAITAOF that was too small.
var errShortfall = errors.New("too few")

// await waits until the replicas, and the disk, have what the connection has
// written.
func (s *Store) await(ctx context.Context, c rueidis.DedicatedClient, key string) error {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	op := "WAIT"
	if s.cfg.WaitAOF {
		op = "WAITAOF"
	}
	answer := c.Do(limited, c.B().Arbitrary(s.waitCommand()...).Blocking())
	var err error
	if s.cfg.WaitAOF {
		err = s.readWaitAOF(answer)
	} else {
		err = s.readWait(answer)
	}
	return notReplicated(wrap(ctx, op, key, err))
}

// waitCommand is WAIT, or WAITAOF, which waits for the replicas as well.
func (s *Store) waitCommand() []string {
	replicas, ms := fmt.Sprint(s.cfg.WaitReplicas), fmt.Sprint(s.cfg.waitTime().Milliseconds())
	if s.cfg.WaitAOF {
		return []string{"WAITAOF", "1", replicas, ms}
	}
	return []string{"WAIT", replicas, ms}
}

func (s *Store) readWait(answer rueidis.RedisResult) error {
	n, err := answer.AsInt64()
	if err != nil || n >= int64(s.cfg.WaitReplicas) {
		return err
	}
	return fmt.Errorf("%w: %d of %d replicas within %s", errShortfall, n, s.cfg.WaitReplicas, s.cfg.waitTime())
}

func (s *Store) readWaitAOF(answer rueidis.RedisResult) error {
	n, err := answer.AsIntSlice()
	if err == nil && len(n) != 2 {
		err = fmt.Errorf("%w: want two numbers", errProtocol)
	}
	if err != nil || n[0] >= 1 && n[1] >= int64(s.cfg.WaitReplicas) {
		return err
	}
	return fmt.Errorf("%w: on disk at %d of 1 primary, %d of %d replicas within %s", errShortfall, n[0], n[1], s.cfg.WaitReplicas, s.cfg.waitTime())
}

// notReplicated says that the change was made. The end of the caller's context
// passes as it is.
func notReplicated(err error) error {
	var e *Error
	if !errors.As(err, &e) {
		return err
	}
	if errors.Is(err, errShortfall) {
		e.Class = NotReplicated
	}
	e.Err = fmt.Errorf("%w: %w", ErrNotReplicated, e.Err)
	return err
}
