package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// opAppend is what errors of the script go by: the command that it is about.
const opAppend = "XADD"

// appendScript adds entries to a stream that is what it is thought to be. A
// stream that is not there, and one that has never had an entry, are alike.
//
// A server that is full refuses the first XADD; it asks no more once a script has
// written, so that a batch is added whole or not at all.
//
// ARGV: length, last id, and of each entry its id, how many texts follow, and
// those.
const appendScript = `local length, last = 0, '0-0'
local reply = redis.pcall('XINFO', 'STREAM', KEYS[1])
if reply.err then
  if not string.find(reply.err, 'no such key', 1, true) then return reply end
else
  for i = 1, #reply, 2 do
    if reply[i] == 'length' then length = reply[i + 1] end
    if reply[i] == 'last-generated-id' then last = reply[i + 1] end
  end
end
if length ~= tonumber(ARGV[1]) or last ~= ARGV[2] then return 0 end
local i = 3
while i <= #ARGV do
  local n = tonumber(ARGV[i + 1])
  redis.call('XADD', KEYS[1], ARGV[i], unpack(ARGV, i + 2, i + 1 + n))
  i = i + 2 + n
end
return 1`

// What an entry may have to go through the script: it hands an entry's texts on
// at once, of which it can't take more than some 7,900, and copies each.
const (
	scriptTexts = 4000
	scriptBytes = 1 << 20
)

// Append adds the entries of a page, with their ids, to the end of a stream that
// has at that moment length entries and the last id last; 0 and the zero id stand
// for a stream that is not there, or never had an entry. False means that it is
// not so, or that an id is not above last, and nothing was added: somebody else
// writes there. The whole page is added or nothing of it, unless an entry is so
// large, or has so many fields, that it has to go alone: such an entry must be the
// only one of its page (Alone).
//
// After an error of class Unavailable it may have been added all the same. It is
// never sent twice, and a second XADD of the same id would be refused.
func (s *Store) Append(ctx context.Context, key string, length int64, last segment.ID, p *segment.Page) (bool, error) {
	if ok, err := appendable(last, p); !ok || err != nil {
		return false, wrap(ctx, opAppend, key, err)
	}
	if p.Len() == 1 && Alone(p, 0) {
		return s.appendAlone(ctx, key, length, last, p)
	}
	args := []string{strconv.FormatInt(length, 10), last.String()}
	for i := range p.Len() {
		lo, hi := p.Fields(i)
		args = append(args, p.ID(i).String(), strconv.Itoa(2*(hi-lo)))
		args = appendFields(args, p, i)
	}
	return s.exec(ctx, opAppend, rueidis.NewLuaScript(appendScript), key, args...)
}

// appendable says whether the ids of a page ascend from last on, and whether a
// stream can hold its entries: half a page must never be added.
func appendable(last segment.ID, p *segment.Page) (bool, error) {
	for i := range p.Len() {
		if p.ID(i).Compare(last) <= 0 {
			return false, nil
		}
		last = p.ID(i)
		if lo, hi := p.Fields(i); lo == hi {
			return false, fmt.Errorf("entry %s has no fields, and a stream can't hold it", last)
		}
		if p.Len() > 1 && Alone(p, i) {
			return false, fmt.Errorf("entry %s has to go alone", last)
		}
	}
	return p.Len() > 0, nil
}

// Alone says whether an entry of a page has to go alone.
func Alone(p *segment.Page, i int) bool {
	lo, hi := p.Fields(i)
	bytes := 0
	for j := lo; j < hi; j++ {
		bytes += len(p.Name(j)) + len(p.Value(j))
	}
	return 2*(hi-lo) > scriptTexts || bytes > scriptBytes
}

func appendFields(args []string, p *segment.Page, i int) []string {
	lo, hi := p.Fields(i)
	for j := lo; j < hi; j++ {
		args = append(args, string(p.Name(j)), string(p.Value(j)))
	}
	return args
}

// appendAlone adds one entry without a script. Somebody who writes between the
// look and the XADD is noticed at the look that follows.
func (s *Store) appendAlone(ctx context.Context, key string, length int64, last segment.ID, p *segment.Page) (bool, error) {
	is, err := s.StreamInfo(ctx, key)
	if err != nil || is.Length != length || is.LastID != last {
		return false, err
	}
	id := p.ID(0)
	limited, done := limit(ctx, s.cfg.timeout()+time.Duration(p.Bytes()>>20)*time.Second) // for each MiB a second more
	defer done()
	cmd := s.client.B().Arbitrary("XADD").Keys(key).Args(id.String()).Args(appendFields(nil, p, 0)...).Build()
	if err := s.client.Do(limited, cmd).Error(); err != nil {
		return false, wrap(ctx, opAppend, key, hintReadOnly(err))
	}
	is, err = s.StreamInfo(ctx, key)
	return is.Length == length+1 && is.LastID == id, err
}
