package lease

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// Member is an instance that runs, as it has said of itself.
type Member struct {
	ID        string `json:"-"` // unique to the process
	Host      string `json:"host"`
	Version   string `json:"version"`
	Address   string `json:"address"`   // of its HTTP server; "" = it has none
	StartedAt int64  `json:"startedAt"` // epoch ms, by the Redis server's clock
	SeenAt    int64  `json:"seenAt"`    // the same, when it wrote this
	Shards    []int  `json:"shards"`    // the leases that it holds
	Of        int    `json:"of"`        // how many leases there are, by its settings
	Lends     string `json:"lends"`     // for whom it gives its leases away; "" = for nobody
}

// memberVersion is the version of a member's record.
const memberVersion = 1

// staleAfter is how old a member's record is at least when it is taken for that
// of an instance that is gone.
const staleAfter = 30 * time.Second

// stale is the age from which on a member counts as gone: its leases have
// lapsed by then.
func (c Config) stale() time.Duration { return max(c.Duration, staleAfter) }

// writeEvery is how often a member writes its record at least.
func (c Config) writeEvery() time.Duration { return min(c.interval(), 20*time.Second) }

// lookScript keeps the Hash of the members: one field per instance. What is too
// old it cleans away if it writes at all, and so what lies as far ahead: the
// server's clock was set back since, and who has died before that would be
// waited for until it gets there again. A server that is full (maxmemory)
// refuses HSET, but not behind HDEL, which it allows. All times are its own.
//
// ARGV: the member's field; its record up to the two times, "" to look only;
// when it began, "" for now; the age of a record that counts as gone.
const lookScript = `local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local reply = {string.format('%.0f', now)}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local seen = tonumber(string.match(all[i + 1], '"seenAt":(%d+)'))
  if seen and math.abs(now - seen) > tonumber(ARGV[4]) then
    if ARGV[2] ~= '' then redis.call('HDEL', KEYS[1], all[i]) end
  elseif seen and (all[i] ~= ARGV[1] or ARGV[2] == '') then
    reply[#reply + 1] = all[i]
    reply[#reply + 1] = all[i + 1]
  end
end
if ARGV[2] ~= '' then
  local began = ARGV[3]
  if began == '' then began = reply[1] end
  local record = ARGV[2] .. '"startedAt":' .. began .. ',"seenAt":' .. reply[1] .. '}'
  redis.call('HDEL', KEYS[1], ARGV[1])
  redis.call('HSET', KEYS[1], ARGV[1], record)
  reply[#reply + 1] = ARGV[1]
  reply[#reply + 1] = record
end
return reply`

// roster is what is needed of Redis to keep the members' records.
type roster interface {
	// look returns the time of the server, and field and record of each member
	// that is not gone, in turn. Where the beginning of a record is given, it
	// completes and writes it first.
	look(ctx context.Context, key, id, record, began string, stale time.Duration) ([]string, error)
	// leave removes a member.
	leave(ctx context.Context, key, id string) error
}

func (s *scripts) look(ctx context.Context, key, id, record, began string, stale time.Duration) ([]string, error) {
	return s.looking.Exec(ctx, s.client, []string{key}, []string{id, record, began, millis(stale)}).AsStrSlice()
}

func (s *scripts) leave(ctx context.Context, key, id string) error {
	return s.leaving.Exec(ctx, s.client, []string{key}, []string{id}).Error()
}

const leaveScript = `return redis.call('HDEL', KEYS[1], ARGV[1])`

// Members returns the instances that run, in the order of their ids, and
// changes nothing. It is for showing.
func Members(ctx context.Context, client rueidis.Client, c Config) ([]Member, error) {
	b := book{cfg: c, redis: newScripts(client)}
	return b.look(ctx)
}

// book is one instance's record among those of the others. It is used by one
// goroutine at a time.
type book struct {
	cfg   Config
	redis roster
	self  Member

	wrote time.Time // by this host's clock; zero = never
	held  []int     // what was written then
	lends string    // the same
}

// due says whether the record has to be written again.
func (b *book) due(held []int, lends string) bool {
	return b.wrote.IsZero() || time.Since(b.wrote) >= b.cfg.writeEvery() || !b.says(held, lends)
}

// says says whether the record has this.
func (b *book) says(held []int, lends string) bool {
	return slices.Equal(held, b.held) && lends == b.lends
}

// record is the record up to its times, which the server adds.
func (b *book) record(held []int, lends string) (string, error) {
	raw, err := json.Marshal(struct {
		V       int    `json:"v"`
		Host    string `json:"host"`
		Version string `json:"version"`
		Address string `json:"address"`
		Shards  []int  `json:"shards"`
		Of      int    `json:"of"`
		Lends   string `json:"lends,omitempty"`
	}{memberVersion, b.self.Host, b.self.Version, b.self.Address, append([]int{}, held...), b.cfg.Shards, lends})
	return strings.TrimSuffix(string(raw), "}") + ",", err
}

// write writes the record and returns all members, this one among them.
func (b *book) write(ctx context.Context, held []int, lends string) ([]Member, error) {
	record, err := b.record(held, lends)
	if err != nil {
		return nil, err
	}
	members, err := b.ask(ctx, record)
	if err != nil {
		return nil, err
	}
	b.wrote, b.held, b.lends = time.Now(), slices.Clone(held), lends
	for _, m := range members {
		if m.ID == b.self.ID {
			b.self.StartedAt = m.StartedAt
		}
	}
	return members, nil
}

// look returns all members and writes nothing.
func (b *book) look(ctx context.Context) ([]Member, error) { return b.ask(ctx, "") }

func (b *book) ask(ctx context.Context, record string) ([]Member, error) {
	began := ""
	if b.self.StartedAt != 0 {
		began = strconv.FormatInt(b.self.StartedAt, 10)
	}
	limited, done := limit(ctx, b.cfg.callTimeout())
	defer done()
	reply, err := b.redis.look(limited, b.cfg.Members, b.self.ID, record, began, b.cfg.stale())
	if err != nil {
		return nil, fmt.Errorf("look at the instances in %s: %w", b.cfg.Members, cause(ctx, err))
	}
	var members []Member
	for i := 1; i+1 < len(reply); i += 2 {
		m := Member{ID: reply[i]}
		if json.Unmarshal([]byte(reply[i+1]), &m) == nil { // a record of another version is not counted
			members = append(members, m)
		}
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members, nil
}

// leave removes the record.
func (b *book) leave(ctx context.Context) error {
	b.wrote = time.Time{}
	limited, done := limit(ctx, b.cfg.callTimeout())
	defer done()
	if err := b.redis.leave(limited, b.cfg.Members, b.self.ID); err != nil {
		return fmt.Errorf("leave the instances in %s: %w", b.cfg.Members, cause(ctx, err))
	}
	return nil
}

// NewID makes an id for a member: its host and something random.
func NewID(host string) string { return host + "-" + strings.ToLower(rand.Text()[:8]) }
