package redisstore

import (
	"context"

	"korvet-offload/segment"
)

// Paused returns all that is paused. Nothing is changed.
func (s *Store) Paused(ctx context.Context) (segment.Pauses, error) {
	key := s.cfg.Layout.PausedKey()
	fields, err := s.do(ctx, s.client.B().Hgetall().Key(key).Build()).AsStrMap()
	if err != nil {
		return segment.Pauses{}, wrap(ctx, "HGETALL", key, err)
	}
	return segment.ParsePauses(fields), nil
}

// Pause pauses a scope, and says what is kept of it then. A pause that is
// there already keeps its beginning, and its reason and author as well unless
// another reason is given. Nothing is compared: of two calls at the same time
// one wins, and the scope is paused after both.
func (s *Store) Pause(ctx context.Context, scope segment.Scope, by, reason string) (segment.Pause, error) {
	all, err := s.Paused(ctx)
	if err != nil {
		return segment.Pause{}, err
	}
	was, paused := all.Of(scope)
	if paused && was.Err == nil && (reason == "" || reason == was.Reason) {
		return was, nil
	}
	now := segment.Pause{Scope: scope, Since: was.Since, By: by, Reason: reason}
	if now.Since.IsZero() {
		if now.Since, err = s.Now(ctx); err != nil {
			return segment.Pause{}, err
		}
	}
	key := s.cfg.Layout.PausedKey()
	cmd := s.client.B().Hset().Key(key).FieldValue().FieldValue(scope.Field(), now.Encode()).Build()
	return now, wrap(ctx, "HSET", key, hintReadOnly(s.do(ctx, cmd).Error()))
}

// Resume ends the pause of a scope, if there is one. A wider one stays.
func (s *Store) Resume(ctx context.Context, scope segment.Scope) error {
	key := s.cfg.Layout.PausedKey()
	cmd := s.client.B().Hdel().Key(key).Field(scope.Field()).Build()
	return wrap(ctx, "HDEL", key, hintReadOnly(s.do(ctx, cmd).Error()))
}
