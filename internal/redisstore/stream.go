package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// StreamInfo describes a stream; a key that is not there gives the zero
// StreamInfo, one of another type segment.ErrWrongType.
func (s *Store) StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error) {
	reply, err := s.do(ctx, s.client.B().XinfoStream().Key(key).Build()).AsMap()
	if err != nil {
		return s.noInfo(ctx, key, err)
	}
	info, err := readInfo(reply)
	return info, wrap(ctx, "XINFO STREAM", key, err)
}

// noInfo tells a key that is not there from a fault, and names the type of
// one that holds something else.
func (s *Store) noInfo(ctx context.Context, key string, err error) (segment.StreamInfo, error) {
	reply, _ := replyText(err)
	if strings.HasSuffix(reply, "no such key") {
		return segment.StreamInfo{}, nil
	}
	if classify(err) == WrongType {
		kind, typeErr := s.typeOf(ctx, key)
		if typeErr != nil {
			return segment.StreamInfo{}, typeErr
		}
		err = errReply("WRONGTYPE it is a " + kind)
	}
	return segment.StreamInfo{}, wrap(ctx, "XINFO STREAM", key, err)
}

func readInfo(reply map[string]rueidis.RedisMessage) (segment.StreamInfo, error) {
	info := segment.StreamInfo{Exists: true, EntriesAdded: -1}
	length, ok := reply["length"]
	if !ok {
		return info, fmt.Errorf("%w: no length", errProtocol)
	}
	var errs [5]error
	info.Length, errs[0] = length.AsInt64()
	if info.LastID, errs[1] = readID(reply, "last-generated-id"); info.LastID.IsZero() && errs[1] == nil && info.Length > 0 {
		errs[1] = errors.New("no last-generated-id")
	}
	info.MaxDeletedID, errs[2] = readID(reply, "max-deleted-entry-id")
	if added, ok := reply["entries-added"]; ok {
		info.EntriesAdded, errs[3] = added.AsInt64()
	}
	info.FirstID, errs[4] = readFirstID(reply)
	if err := errors.Join(errs[:]...); err != nil {
		return info, fmt.Errorf("%w: %w", errProtocol, err)
	}
	return info, nil
}

// readID gives the zero id where the server does not say.
func readID(reply map[string]rueidis.RedisMessage, name string) (segment.ID, error) {
	m, ok := reply[name]
	if !ok {
		return segment.ID{}, nil
	}
	text, err := m.ToString()
	if err != nil {
		return segment.ID{}, fmt.Errorf("%s: %w", name, err)
	}
	return segment.ParseID(text)
}

// readFirstID takes the id of the first entry and leaves its fields.
func readFirstID(reply map[string]rueidis.RedisMessage) (segment.ID, error) {
	first, ok := reply["first-entry"]
	if !ok || first.IsNil() {
		return segment.ID{}, nil
	}
	parts, err := first.ToArray()
	if err != nil || len(parts) == 0 {
		return segment.ID{}, errors.New("first-entry: not an entry")
	}
	return readID(map[string]rueidis.RedisMessage{"first-entry": parts[0]}, "first-entry")
}

// Pages reads the entries of a stream in order, from one id to another, both
// inclusive; the zero id stands for the stream's beginning and its end. The
// caller closes the reader.
func (s *Store) Pages(key string, from, to segment.ID) segment.PageReader {
	if to.IsZero() {
		to = segment.MaxID()
	}
	return newPages(s.pages, key, from, to, s.cfg.PageSize)
}
