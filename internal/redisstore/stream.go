package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// opInfo is what errors of the script go by.
const opInfo = "XINFO STREAM"

// infoScript is XINFO STREAM without the first and the last entry, of which only
// the id of the first is told: they may be large, and the server may cut a reply
// that is.
const infoScript = `local reply = redis.pcall('XINFO', 'STREAM', KEYS[1])
if reply.err then
  if string.find(reply.err, 'no such key', 1, true) then return {} end
  return reply
end
local is, told = {}, {}
for i = 1, #reply, 2 do is[reply[i]] = reply[i + 1] end
if is['first-entry'] then is['first-entry'] = is['first-entry'][1] end
for _, name in ipairs({'length', 'last-generated-id', 'max-deleted-entry-id', 'entries-added', 'first-entry'}) do
  if is[name] then
    told[#told + 1] = name
    told[#told + 1] = is[name]
  end
end
return told`

// StreamInfo describes a stream; a key that is not there gives the zero
// StreamInfo, one of another type segment.ErrWrongType.
func (s *Store) StreamInfo(ctx context.Context, key string) (segment.StreamInfo, error) {
	reply, err := s.look(ctx, s.scripts.info, key).AsMap()
	if err != nil {
		return s.noInfo(ctx, key, err)
	}
	if len(reply) == 0 {
		return segment.StreamInfo{}, nil
	}
	info, err := readInfo(reply)
	return info, wrap(ctx, opInfo, key, err)
}

// look runs a script that only reads, again if its connection was lost.
func (s *Store) look(ctx context.Context, script *rueidis.Lua, key string) (reply rueidis.RedisResult) {
	ctx, done := limit(ctx, s.cfg.timeout())
	defer done()
	for range staleTries {
		if reply = script.Exec(ctx, s.client, []string{key}, nil); !isLost(reply.Error()) {
			break
		}
	}
	return reply
}

// noInfo names the type of a key that holds something else.
func (s *Store) noInfo(ctx context.Context, key string, err error) (segment.StreamInfo, error) {
	if classify(err) == WrongType {
		kind, typeErr := s.typeOf(ctx, key)
		if typeErr != nil {
			return segment.StreamInfo{}, typeErr
		}
		err = errReply("WRONGTYPE it is a " + kind)
	}
	return segment.StreamInfo{}, wrap(ctx, opInfo, key, err)
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
	info.FirstID, errs[4] = readID(reply, "first-entry")
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

// Pages reads the entries of a stream in order, from one id to another, both
// inclusive; the zero id stands for the stream's beginning and its end. The
// caller closes the reader.
func (s *Store) Pages(key string, from, to segment.ID) segment.PageReader {
	if to.IsZero() {
		to = segment.MaxID()
	}
	return newPages(s.pages, key, from, to, s.PageSize())
}
