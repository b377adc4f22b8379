package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

// acquireScript also takes a key that holds the token already: that of an
// attempt whose answer was lost. A server that is full (maxmemory) refuses SET,
// but not in a script that has written already: DEL of a key that is not there,
// which it allows, is that. It is by leading that memory is freed.
const acquireScript = `local holder = redis.call('GET', KEYS[1])
if not holder then
  redis.call('DEL', KEYS[1])
  redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
  return {1, 0}
end
if holder == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, 0}
end
return {0, redis.call('PTTL', KEYS[1])}`

const renewScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 0`

const releaseScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then
  return redis.call('DEL', KEYS[1])
end
return 0`

// wantedScript reads a request. One that never lapses is none: nobody would take
// it back.
const wantedScript = `local value = redis.call('GET', KEYS[1])
if value and redis.call('PTTL', KEYS[1]) >= 0 then
  return value
end
return ''`

// errNoLease is about one key, and not about Redis: of several leases the others
// can be taken.
var errNoLease = errors.New("the key is no lease: somebody else wrote it; delete it")

// scripts are the commands on a real server, each one script on one key.
type scripts struct {
	client                         rueidis.Client
	acquiring, renewing, releasing *rueidis.Lua
	looking, leaving, asking       *rueidis.Lua
}

func newScripts(client rueidis.Client) *scripts {
	return &scripts{client, rueidis.NewLuaScript(acquireScript), rueidis.NewLuaScript(renewScript), rueidis.NewLuaScript(releaseScript),
		rueidis.NewLuaScript(lookScript), rueidis.NewLuaScript(leaveScript), rueidis.NewLuaScript(wantedScript)}
}

func (s *scripts) acquire(ctx context.Context, key, token string, d time.Duration) (bool, time.Duration, error) {
	reply, err := s.acquiring.Exec(ctx, s.client, []string{key}, []string{token, millis(d)}).AsIntSlice()
	if err != nil {
		if strings.Contains(err.Error(), "WRONGTYPE") { // older servers put it into a text of their own
			err = fmt.Errorf("%w: %w", errNoLease, err)
		}
		return false, 0, err
	}
	if len(reply) != 2 {
		return false, 0, errors.New("the server's answer makes no sense")
	}
	return reply[0] == 1, time.Duration(reply[1]) * time.Millisecond, nil
}

func (s *scripts) renew(ctx context.Context, key, token string, d time.Duration) (bool, error) {
	n, err := s.renewing.Exec(ctx, s.client, []string{key}, []string{token, millis(d)}).AsInt64()
	return n == 1, err
}

func (s *scripts) release(ctx context.Context, key, token string) error {
	return s.releasing.Exec(ctx, s.client, []string{key}, []string{token}).Error()
}

// errReply is that Redis has answered, and not with what it was asked for.
var errReply = errors.New("redis refuses it")

func (s *scripts) wanted(ctx context.Context, key string) (string, error) {
	who, err := s.asking.Exec(ctx, s.client, []string{key}, nil).ToString()
	if _, replied := rueidis.IsRedisErr(err); replied {
		err = fmt.Errorf("%w: %w", errReply, err)
	}
	return who, err
}

func millis(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
