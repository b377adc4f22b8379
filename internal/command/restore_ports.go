package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/restore"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// restorePorts are what a restore works with. It writes so many bytes per second
// to Redis; 0 = as fast as that goes.
func restorePorts(s *session, rate int64) restore.Ports {
	return restore.Ports{
		Manifests: restoreManifests{s.redis}, Streams: restoreStreams{s.redis}, Server: restoreServer{s.redis}, Objects: restoreObjects{s.store},
		Pace: newUploadRate(rate, func() {}).wait,
		Temp: restore.TempIn(s.cfg.Worker.SpoolDir),
	}
}

type restoreManifests struct{ *redisstore.Store }

// Entry implements restore.Manifests.
func (s restoreManifests) Entry(ctx context.Context, p segment.Partition, n segment.Number) (string, error) {
	got, err := s.Peek(ctx, []segment.Peek{{Partition: p, Numbers: []segment.Number{n}}})
	if err == nil {
		err = got[0].Err
	}
	if err != nil {
		return "", err
	}
	return got[0].Raw[0], nil
}

type restoreStreams struct{ *redisstore.Store }

// Alone implements restore.Streams.
func (restoreStreams) Alone(p *segment.Page, i int) bool { return redisstore.Alone(p, i) }

type restoreServer struct{ redis *redisstore.Store }

func (s restoreServer) Now(ctx context.Context) (time.Time, error) { return s.redis.Now(ctx) }

func (s restoreServer) Room(ctx context.Context) (used, most int64, err error) {
	m, err := s.redis.Memory(ctx)
	return m.Used, m.Max, err
}

func (s restoreServer) Evicts(ctx context.Context) string {
	e, err := s.redis.Eviction(ctx)
	if err != nil || e.Risk() != redisstore.EvictsStreams {
		return ""
	}
	return fmt.Sprintf("%s: %s", e, e.Advice())
}

type restoreObjects struct{ s3sink.Store }

// Look implements restore.Objects.
func (s restoreObjects) Look(ctx context.Context, path string) (restore.Object, error) {
	info, err := s.Stat(ctx, path)
	if errors.Is(err, s3sink.ErrMissing) {
		err = fmt.Errorf("%w: %w", restore.ErrMissing, err)
	}
	return restore.Object{Size: info.Size, ETag: info.ETag, SHA256: info.SHA256}, err
}
