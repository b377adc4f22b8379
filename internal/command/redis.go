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

func (s redisStore) Manifest(ctx context.Context, p segment.Partition) (segment.Manifest, error) {
	m, err := s.Store.Manifest(ctx, p)
	return m, redisError(err)
}

func (s redisStore) Swap(ctx context.Context, p segment.Partition, n segment.Number, old, new string) (bool, error) {
	ok, err := s.Store.Swap(ctx, p, n, old, new)
	return ok, redisError(err)
}

func (s redisStore) StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error) {
	info, err := s.Store.StreamInfo(ctx, key)
	return info, redisError(err)
}

func (s redisStore) Pages(key string) segment.PageReader {
	return pageReader{s.Store.Pages(key)}
}

type pageReader struct{ segment.PageReader }

func (r pageReader) Next(ctx context.Context, into *segment.Page) error {
	return redisError(r.PageReader.Next(ctx, into))
}

// redisError adds to an error of Redis what it means to the worker. io.EOF
// and the end of a context pass as they are.
func redisError(err error) error {
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
	lead, release, err := l.Lease.Acquire(ctx)
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
			return fmt.Errorf("%w (the user's ACL needs +evalsha +eval +set +get +pexpire +pttl +del for this key; "+
				"korvet-offload config check --connect says what is missing)", err)
		}
	}
	return err
}
