package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Finding is one thing that Check has looked at.
type Finding struct {
	Name   string // one or two words
	OK     bool
	Detail string // what was found
	Advice string // what to do; "" when it is OK
}

// Check looks at everything that this program needs of the server, changes
// nothing, and says of each thing whether it is right. That a Store is open
// already means that address, TLS, user and password are.
func (s *Store) Check(ctx context.Context) []Finding {
	info, err := s.serverInfo(ctx)
	if err != nil {
		return append([]Finding{{Name: "server", Detail: err.Error(), Advice: adviceFor(err)}}, s.checkCommands(ctx)...)
	}
	findings := []Finding{
		checkVersion(info),
		checkMode(info, s.cfg.Cluster),
		checkRole(info),
		checkMemory(info),
		checkDisk(info),
	}
	return append(findings, s.checkCommands(ctx)...)
}

func adviceFor(err error) string {
	switch ClassOf(err) {
	case Permission:
		return "give the user the rules of the documentation's ACL"
	case Unavailable:
		return "try again when the server is up"
	}
	return "look at the server's log"
}

// serverInfo reads INFO's lines.
func (s *Store) serverInfo(ctx context.Context) (map[string]string, error) {
	text, err := s.do(ctx, s.client.B().Info().Build()).ToString()
	if err != nil {
		return nil, wrap(ctx, "INFO", "", err)
	}
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info, nil
}

func checkVersion(info map[string]string) Finding {
	f := Finding{Name: "version", Detail: "Redis " + info["redis_version"]}
	if v := info["valkey_version"]; v != "" {
		f.Detail = "Valkey " + v + " (compatible with Redis " + info["redis_version"] + ")"
	}
	if f.OK = atLeast62(info["redis_version"]); !f.OK {
		f.Advice = "use a server that is compatible with Redis 6.2 or later"
	}
	return f
}

func atLeast62(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a > 6 || a == 6 && b >= 2)
}

func checkMode(info map[string]string, wantCluster bool) Finding {
	f := Finding{Name: "mode", OK: true, Detail: "single server"}
	isCluster := info["cluster_enabled"] == "1" || info["redis_mode"] == "cluster"
	if isCluster {
		f.Detail = "Redis Cluster"
	}
	switch {
	case info["redis_mode"] == "sentinel":
		f = Finding{Name: "mode", Detail: "Redis Sentinel", Advice: "give the address of the primary, not of a sentinel"}
	case isCluster && !wantCluster:
		f.OK, f.Advice = false, "set korvet.redis.cluster to true"
	case !isCluster && wantCluster:
		f.OK, f.Advice = false, "set korvet.redis.cluster to false"
	}
	return f
}

func checkRole(info map[string]string) Finding {
	f := Finding{Name: "role", OK: info["role"] != "slave", Detail: "primary"}
	if !f.OK {
		f.Detail = "replica of " + info["master_host"] + ":" + info["master_port"]
		f.Advice = "give the address of the primary: a replica refuses writes"
	}
	return f
}

// checkMemory: an evicted stream is lost data.
func checkMemory(info map[string]string) Finding {
	policy := info["maxmemory_policy"]
	f := Finding{Name: "eviction", OK: policy == "noeviction" || policy == "" || info["maxmemory"] == "0",
		Detail: "maxmemory-policy " + policy + ", maxmemory " + info["maxmemory"]}
	if !f.OK {
		f.Advice = "set maxmemory-policy to noeviction: with this one the server may remove streams that were not copied yet"
	}
	return f
}

func checkDisk(info map[string]string) Finding {
	f := Finding{Name: "persistence", Detail: "append-only file " + onOff(info["aof_enabled"])}
	for _, name := range []string{"rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"} {
		if v := info[name]; v != "" && v != "ok" {
			f.Detail = name + " is " + v
			f.Advice = "mend the server's disk: it may refuse writes until a save succeeds"
			return f
		}
	}
	if info["loading"] == "1" {
		f.Detail, f.Advice = "loading its data", "try again when it is done"
		return f
	}
	f.OK = true
	return f
}

func onOff(v string) string {
	if v == "1" {
		return "on"
	}
	return "off"
}

// checkTopic names keys that nobody uses, to try commands on.
const checkTopic = "korvet-offload-check"

// checkCommands tries every command that only reads, and asks the server
// about the others; before Redis 7.0 it can't be asked.
func (s *Store) checkCommands(ctx context.Context) []Finding {
	l, b := s.cfg.Layout, s.client.B
	p := segment.Partition{Topic: checkTopic}
	stream := l.SegmentKey(p, 0)
	var denied []string
	for _, try := range []struct {
		op, key string
		cmd     rueidis.Completed
	}{
		{"TYPE", l.TopicsKey(), b().Type().Key(l.TopicsKey()).Build()},
		{"SMEMBERS", l.TopicsKey(), b().Smembers().Key(l.TopicsKey()).Build()},
		{"HGETALL", l.TopicKey(checkTopic), b().Hgetall().Key(l.TopicKey(checkTopic)).Build()},
		{"HSCAN", l.ManifestKey(p), b().Hscan().Key(l.ManifestKey(p)).Cursor(0).Build()},
		{"HLEN", l.ManifestKey(p), b().Hlen().Key(l.ManifestKey(p)).Build()},
		{"XINFO STREAM", stream, b().XinfoStream().Key(stream).Build()},
		{"XRANGE", stream, b().Xrange().Key(stream).Start("-").End("+").Count(1).Build()},
		{"TIME", "", b().Time().Build()},
	} {
		if classify(s.do(ctx, try.cmd).Error()) == Permission {
			denied = append(denied, strings.TrimSpace("+"+aclName(try.op)+" "+pattern(try.key)))
		}
	}
	denied = append(denied, s.deniedWrites(ctx, l.ManifestKey(p), "HGET f", "HSET f v")...)
	denied = append(denied, s.deniedWrites(ctx, l.LeaseKey(), "SET v", "GET", "PEXPIRE 1", "PTTL", "DEL")...)
	if len(denied) == 0 {
		return []Finding{{Name: "permissions", OK: true, Detail: "every command is allowed"}}
	}
	return []Finding{{Name: "permissions", Detail: "the user's ACL lacks " + strings.Join(denied, ", "),
		Advice: "take the user of docs/redis-acl.txt, or before Redis 7.0: ACL SETUSER <user> " + ACL(l, s.cfg.Cluster)}}
}

func pattern(key string) string {
	if key == "" {
		return ""
	}
	return "~" + key
}

// askScript returns those of its commands that the user may not run on the key.
const askScript = `local denied = {}
for _, line in ipairs(ARGV) do
  local words = {}
  for word in string.gmatch(line, '%S+') do words[#words + 1] = word end
  table.insert(words, 2, KEYS[1])
  if redis.acl_check_cmd and not redis.acl_check_cmd(unpack(words)) then denied[#denied + 1] = words[1] end
end
return denied`

func (s *Store) deniedWrites(ctx context.Context, key string, commands ...string) []string {
	ctx, done := limit(ctx, s.cfg.timeout())
	defer done()
	// Sent as the worker's scripts are, by its digest first.
	names, err := rueidis.NewLuaScript(askScript).Exec(ctx, s.client, []string{key}, commands).AsStrSlice()
	if classify(err) == Permission {
		return []string{"+eval +evalsha " + pattern(key)}
	}
	for i, name := range names {
		names[i] = "+" + aclName(name) + " " + pattern(key)
	}
	return names
}

// ACL is the smallest set of rules with which a user can do everything that
// this program does with keys of a layout. RedisJSON registries need
// +json.get as well, another database than 0 needs +select.
func ACL(l segment.Layout, cluster bool) string {
	const commands = "+type +smembers +hgetall +hscan +hlen +hget +hset +xinfo|stream +xrange +time +info +ping " +
		"+eval +evalsha +set +get +pexpire +pttl +del"
	anyKey := strings.NewReplacer("{ns}", l.Namespace, "{topic}", "*", "{partition}", "*", "{segment}", "*")
	rules := []string{commands}
	if cluster {
		rules = append(rules, "+cluster|slots +cluster|shards +asking")
	}
	for _, k := range []string{l.Topics, l.Topic, l.Stream, l.SegmentStream, l.Manifest, l.Lease} {
		if rule := "~" + anyKey.Replace(k); !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return strings.Join(rules, " ")
}

func (f Finding) String() string {
	state := "ok"
	if !f.OK {
		state = "WRONG"
	}
	text := fmt.Sprintf("%s: %s: %s", f.Name, state, f.Detail)
	if f.Advice != "" {
		text += "; " + f.Advice
	}
	return text
}
