package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// redisStore lets the worker use Redis: it tells the outages from the faults
// of one key.
type redisStore struct{ *redisstore.Store }

func (s redisStore) Topics(ctx context.Context) ([]segment.Topic, error) {
	topics, err := s.Store.Topics(ctx)
	return topics, redisError(err)
}

func (s redisStore) Paused(ctx context.Context) (segment.Pauses, error) {
	all, err := s.Store.Paused(ctx)
	return all, redisError(err)
}

func (s redisStore) Known(ctx context.Context) (map[string]string, error) {
	known, err := s.Store.Known(ctx)
	return known, redisError(err)
}

func (s redisStore) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	ok, err := s.Store.SwapKnown(ctx, topic, old, new)
	return ok, redisError(err)
}

func (s redisStore) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	n, err := s.Store.Each(ctx, p, take)
	return n, redisError(err)
}

func (s redisStore) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := s.Store.Peek(ctx, q)
	for i := range a {
		a[i].Err = redisError(a[i].Err)
	}
	return a, redisError(err)
}

func (s redisStore) Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error) {
	ok, err := s.Store.Change(ctx, p, c)
	return ok, redisError(err)
}

func (s redisStore) StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error) {
	info, err := s.Store.StreamInfo(ctx, key)
	return info, redisError(err)
}

func (s redisStore) Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	a, err := s.Store.Sizes(ctx, q)
	for i := range a {
		a[i].Err = redisError(a[i].Err)
	}
	return a, redisError(err)
}

func (s redisStore) Groups(ctx context.Context, key string) ([]segment.Group, error) {
	groups, err := s.Store.Groups(ctx, key)
	return groups, redisError(err)
}

func (s redisStore) Remove(ctx context.Context, key string, is segment.StreamInfo) (bool, error) {
	ok, err := s.Store.Remove(ctx, key, is)
	return ok, redisError(err)
}

func (s redisStore) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	ok, err := s.Store.Trim(ctx, key, piece)
	return ok, redisError(err)
}

func (s redisStore) Pages(key string, from, to segment.ID) segment.PageReader {
	return pageReader{s.Store.Pages(key, from, to)}
}

type pageReader struct{ segment.PageReader }

func (r pageReader) Next(ctx context.Context, into *segment.Page) error {
	return redisError(r.PageReader.Next(ctx, into))
}

// redisError adds to an error of Redis what it means to the worker. io.EOF
// and the end of a context pass as they are.
func redisError(err error) error {
	if errors.Is(err, redisstore.ErrNotReplicated) { // also where the connection was lost while waiting
		return fmt.Errorf("%w: %w", offload.ErrNotReplicated, err)
	}
	var e *redisstore.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Class {
	case redisstore.Unavailable, redisstore.Auth, redisstore.NoMemory, redisstore.WrongMode, redisstore.TLS:
		return fmt.Errorf("%w: %w", offload.ErrRedisDown, err)
	}
	return err
}

// leader lets the loop use the lease.
type leader struct{ *lease.Lease }

func (l leader) Acquire(ctx context.Context) (context.Context, func(context.Context) error, error) {
	return led(l.Lease.Acquire(ctx))
}

// led makes what a lease has said the answer of an offload.Leader.
func led(lead context.Context, release func(context.Context) error, err error) (context.Context, func(context.Context) error, error) {
	var held *lease.HeldError
	if errors.As(err, &held) && held.Remaining < 0 {
		return nil, nil, err // nobody holds it, and nobody ever will
	}
	if errors.Is(err, lease.ErrHeld) {
		return nil, nil, fmt.Errorf("%w: %w", offload.ErrFollower, err)
	}
	if err != nil {
		return nil, nil, leaseError(err)
	}
	return lead, func(ctx context.Context) error { return leaseError(release(ctx)) }, nil
}

// leaseError adds what to do where the user's ACL is in the way: not every
// server says which command of a script it has refused.
func leaseError(err error) error {
	if err == nil {
		return nil
	}
	for _, refusal := range []string{"NOPERM", "The user executing the script can't", "ACL failure in script"} {
		if strings.Contains(err.Error(), refusal) {
			return fmt.Errorf("%w (the user's ACL needs +evalsha +eval +set +get +pexpire +pttl +del for the leases' keys, and +hgetall +hset +hdel for that of the instances; "+
				"korvet-offload config check --connect says what is missing)", err)
		}
	}
	if advice := redisstore.Advice(err); advice != "" {
		return fmt.Errorf("%w (%s)", err, advice)
	}
	return err
}
