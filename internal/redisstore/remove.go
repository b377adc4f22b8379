package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"korvet-offload/segment"
)

// What errors of the scripts go by: the command that they are about.
const (
	opRemove = "UNLINK"
	opTrim   = "XTRIM"
)

// removeScript removes a stream that is what it is thought to be. The numbers
// that only newer servers tell are compared where both sides have them.
//
// ARGV: length, last id, entries added or "", largest deleted id or "".
const removeScript = `local reply = redis.pcall('XINFO', 'STREAM', KEYS[1])
if reply.err then
  if string.find(reply.err, 'no such key', 1, true) then return 0 end
  return reply
end
local is = {}
for i = 1, #reply, 2 do is[reply[i]] = reply[i + 1] end
if is['length'] ~= tonumber(ARGV[1]) then return 0 end
if is['last-generated-id'] ~= ARGV[2] then return 0 end
local added, deleted = is['entries-added'], is['max-deleted-entry-id']
if added and ARGV[3] ~= '' and added ~= tonumber(ARGV[3]) then return 0 end
if deleted and ARGV[4] ~= '' and deleted ~= ARGV[4] then return 0 end
redis.call('UNLINK', KEYS[1])
return 1`

// Remove removes a stream if it is at that moment what is says: by length and
// last id, and by entries added and largest deleted id where both the server
// and is tell them. Exists and FirstID are not looked at. False means that it
// is not, or that the key is not there, and nothing was changed. A key of
// another type gives segment.ErrWrongType and stays. The server frees the
// stream's memory in the background.
//
// After an error of class Unavailable it may have been removed all the same.
func (s *Store) Remove(ctx context.Context, key string, is segment.StreamInfo) (bool, error) {
	added, deleted := "", ""
	if is.EntriesAdded >= 0 { // a server that tells one tells the other, and then the zero id means that there was none
		added, deleted = strconv.FormatInt(is.EntriesAdded, 10), is.MaxDeletedID.String()
	}
	if !is.MaxDeletedID.IsZero() {
		deleted = is.MaxDeletedID.String()
	}
	return s.exec(ctx, opRemove, s.scripts.remove, key, strconv.FormatInt(is.Length, 10), is.LastID.String(), added, deleted)
}

// trimScript removes a piece that a stream begins with. One entry more than it
// should have is asked for, so that a piece with an entry too many differs.
//
// ARGV: first id, last id, count, and what XTRIM is to keep.
const trimScript = `local count = tonumber(ARGV[3])
local piece = redis.call('XRANGE', KEYS[1], '-', ARGV[2], 'COUNT', count + 1)
if #piece ~= count then return 0 end
if piece[1][1] ~= ARGV[1] then return 0 end
if piece[count][1] ~= ARGV[2] then return 0 end
redis.call('XTRIM', KEYS[1], ARGV[4], '=', ARGV[5])
return 1`

// Trim removes a piece from the beginning of a stream if at that moment the
// stream begins with exactly this piece: the first id, the last, and as many
// entries between them. False means that it does not, and nothing was changed.
// A stream that is empty afterwards stays, with its last id and its consumer
// groups. A key of another type gives segment.ErrWrongType.
//
// The server reads the piece to count it, so the caller keeps it small: some
// 1,000 entries or some 100 KiB. After an error of class Unavailable it may
// have been removed all the same.
func (s *Store) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	if piece.Count < 1 {
		return false, wrap(ctx, opTrim, key, fmt.Errorf("a piece of %d entries: want 1 or more", piece.Count))
	}
	strategy, keep := "MAXLEN", "0"
	if behind, ok := piece.Last.Next(); ok {
		strategy, keep = "MINID", behind.String()
	}
	return s.exec(ctx, opTrim, s.scripts.trim, key,
		piece.First.String(), piece.Last.String(), strconv.FormatInt(piece.Count, 10), strategy, keep)
}
