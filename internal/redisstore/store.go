package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Store reads and changes what lies in Redis. Its methods may be called from
// any goroutine. Concurrent commands share connections and go out together;
// pages have connections of their own.
type Store struct {
	cfg      Config
	client   rueidis.Client
	primary  *primary
	unfollow func() // ends what follows the primary
	pages    source // how a page is fetched
	scripts  scripts
	kind     atomic.Pointer[RegistryKind]
	knew     atomic.Bool // the last Known had records

	changing sync.RWMutex // guards what Reconfigure changes
	patterns []segment.TopicPattern
	streams  []segment.StreamPattern
	most     int // entries of one XRANGE
}

// Open connects to Redis. The topics' patterns are those of korvet.topics[]:
// they complete the topics' settings, and those that are plain names make a
// topic known; the streams' are those of korvet.streams[].
//
// An error of class Unavailable means that it may be tried again; for any
// other class the settings or the server have to be changed first. One of
// those is a server that can't do what the settings want durable changes to
// wait for.
func Open(ctx context.Context, c Config, topics []segment.TopicPattern, streams []segment.StreamPattern) (*Store, error) {
	p, err := c.connections()
	if err != nil {
		return nil, err
	}
	client, err := connect(ctx, guard(p.clientOption(), maxReply, maxClaim))
	if err != nil {
		p.close()
		return nil, err
	}
	s := &Store{cfg: c, patterns: topics, streams: streams, most: c.PageSize, client: watched{client, p}, primary: p, unfollow: p.start(), scripts: newScripts()} //nolint:contextcheck // it follows for as long as the store is open
	err = s.checkCluster(client.Mode())
	if err == nil && c.WaitAOF {
		err = s.checkAOF(ctx)
	}
	if err == nil {
		s.pages, err = s.openPages(ctx, p)
	}
	if err != nil {
		s.unfollow()
		client.Close()
		return nil, err
	}
	return s, nil
}

// checkCluster refuses a server that is no cluster's where one is meant: the
// library takes it for what it is, without a word.
func (s *Store) checkCluster(mode rueidis.ClientMode) error {
	if !s.cfg.Cluster || mode == rueidis.ClientModeCluster {
		return nil
	}
	return &Error{Op: opConnect, Key: s.primary.option.InitAddress[0], Class: WrongMode,
		Err: advised{errors.New("it is no node of a Redis Cluster: set korvet.redis.cluster to false")}}
}

func (s *Store) openPages(ctx context.Context, p *primary) (source, error) {
	switch s.cfg.Reader {
	case ReaderClient:
		return newClientSource(ctx, p)
	case ReaderDirect, "":
		if s.cfg.Cluster {
			return newDirectSource(p, s.nodes), nil
		}
		return newDirectSource(p, nil), nil
	}
	return nil, fmt.Errorf("page reader %q: want %s or %s", s.cfg.Reader, ReaderDirect, ReaderClient)
}

// nodes are the addresses that the general client knows of a cluster.
func (s *Store) nodes() []string { return slices.Collect(maps.Keys(s.client.Nodes())) }

// connect makes a general client. The library dials without a context, so
// when that ends, a goroutine stays behind for the rest of the timeout and
// closes what came too late.
func connect(ctx context.Context, o rueidis.ClientOption) (rueidis.Client, error) {
	type result struct {
		client rueidis.Client
		err    error
	}
	done := make(chan result)
	go func() {
		client, err := rueidis.NewClient(o)
		if err != nil && client != nil {
			client.Close()
		}
		select {
		case done <- result{client, err}:
		case <-ctx.Done():
			if err == nil {
				client.Close()
			}
		}
	}()
	select {
	case r := <-done:
		if r.err != nil {
			return nil, errConnect(ctx, o, r.err)
		}
		return r.client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// errConnect is wrap for a connection that was not made. It helps where TLS
// on one side only looks like a dead server.
func errConnect(ctx context.Context, o rueidis.ClientOption, err error) error {
	wrapped := wrap(ctx, "CONNECT", o.InitAddress[0], hide(err, o.Password))
	var e *Error
	if !errors.As(wrapped, &e) {
		return wrapped
	}
	switch {
	case o.TLSConfig != nil && isTimeout(err):
		e.Err = fmt.Errorf("%w (if the port does not speak TLS, use redis://)", e.Err)
	case o.TLSConfig == nil && isLost(err):
		e.Err = fmt.Errorf("%w (if the port speaks TLS only, use rediss://)", e.Err)
	}
	return wrapped
}

// Close ends every connection. No call may be under way.
func (s *Store) Close() {
	s.unfollow()
	s.pages.close()
	s.client.Close()
}

// Client is the general client, for the lease.
func (s *Store) Client() rueidis.Client { return s.client }

// Now is the time of the Redis server.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	parts, err := s.do(ctx, s.client.B().Time().Build()).AsStrSlice()
	if err != nil {
		return time.Time{}, wrap(ctx, "TIME", "", err)
	}
	if len(parts) != 2 {
		return time.Time{}, wrap(ctx, "TIME", "", fmt.Errorf("%w: want two numbers", errProtocol))
	}
	sec, errSec := strconv.ParseInt(parts[0], 10, 64)
	usec, errUsec := strconv.ParseInt(parts[1], 10, 64)
	if errors.Join(errSec, errUsec) != nil {
		return time.Time{}, wrap(ctx, "TIME", "", fmt.Errorf("%w: %q is not a time", errProtocol, parts))
	}
	return time.Unix(sec, usec*1000), nil
}

// staleTries bounds how often a command that only reads is sent again after
// its connection was lost: the server may have closed each of those that lay
// idle, and restarted behind them.
const staleTries = 3

// do runs a command that only reads, with the timeout of the settings.
func (s *Store) do(ctx context.Context, cmd rueidis.Completed) rueidis.RedisResult {
	return s.doMulti(ctx, cmd)[0]
}

// doMulti runs commands that only read together, with the timeout of the
// settings for all.
func (s *Store) doMulti(ctx context.Context, cmds ...rueidis.Completed) (replies []rueidis.RedisResult) {
	ctx, done := limit(ctx, s.cfg.timeout())
	defer done()
	for i := range cmds {
		cmds[i] = cmds[i].Pin()
	}
	for range staleTries {
		replies = s.client.DoMulti(ctx, cmds...)
		if !slices.ContainsFunc(replies, func(r rueidis.RedisResult) bool { return isLost(r.Error()) }) {
			break
		}
	}
	return replies
}

// limit ends a context after a time without showing a deadline: with a
// deadline the library waits for that alone, and does not see when ctx ends.
func limit(ctx context.Context, timeout time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(timeout, cancel)
	return hidden{ctx}, func() {
		timer.Stop()
		cancel()
	}
}

type hidden struct{ context.Context }

func (hidden) Deadline() (time.Time, bool) { return time.Time{}, false }

// typeOf is the Redis type of a key: "none" when it is not there.
func (s *Store) typeOf(ctx context.Context, key string) (string, error) {
	kind, err := s.do(ctx, s.client.B().Type().Key(key).Build()).ToString()
	return kind, wrap(ctx, "TYPE", key, err)
}
