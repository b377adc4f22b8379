package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// checkTopic names keys that nobody uses, to try commands on.
const checkTopic = "korvet-offload-check"

// checkCommands tries every command that only reads, and asks the server
// about the others; before Redis 7.0 it can't be asked.
func (s *Store) checkCommands(ctx context.Context) []Finding {
	denied := s.Lacks(ctx, checkTopic)
	if len(denied) == 0 {
		return []Finding{{Name: "permissions", OK: true, Detail: "every command is allowed"}}
	}
	return []Finding{{Name: "permissions", Detail: "the user's ACL lacks " + strings.Join(denied, ", "),
		Advice: "take the user of docs/redis-acl.txt, or before Redis 7.0: ACL SETUSER <user> " + ACL(s.cfg, s.streamPatterns())}}
}

// Lacks returns the rules that the user's ACL would need beside those that it
// has, each as "+command ~key", tried with the keys of a topic's first
// partition and segment. Nothing is changed. Before Redis 7.0 only commands that
// read are known of.
func (s *Store) Lacks(ctx context.Context, topic string) []string {
	return append(s.deniedReads(ctx, topic), s.deniedWrites(ctx, topic)...)
}

// try is a command that changes nothing, wherever it is run.
type try struct {
	op, key string
	cmd     rueidis.Completed
}

func (s *Store) deniedReads(ctx context.Context, topic string) (denied []string) {
	l, b := s.cfg.Layout, s.client.B
	tries := []try{
		{"TYPE", l.TopicsKey(), b().Type().Key(l.TopicsKey()).Build()},
		{"SMEMBERS", l.TopicsKey(), b().Smembers().Key(l.TopicsKey()).Build()},
		{"HGETALL", l.TopicKey(topic), b().Hgetall().Key(l.TopicKey(topic)).Build()},
		{"HGETALL", l.KnownKey(), b().Hgetall().Key(l.KnownKey()).Build()},
		{"HGETALL", l.PausedKey(), b().Hgetall().Key(l.PausedKey()).Build()},
		{"GET", l.ClusterKey(), b().Get().Key(l.ClusterKey()).Build()},
		{"TIME", "", b().Time().Build()},
	}
	for _, key := range s.checkManifests(topic) {
		tries = append(tries, s.triesOfManifest(key)...)
	}
	tries = append(tries, s.triesOfStream(s.checkSegment(topic))...)
	for _, key := range s.checkStreams() {
		tries = append(tries, s.triesOfStream(key)...)
	}
	if len(s.streamPatterns()) > 0 {
		tries = append(tries, try{"SMEMBERS", l.StreamsKey(), b().Smembers().Key(l.StreamsKey()).Build()})
	}
	if s.cfg.waits() && !s.cfg.WaitAOF { // checkAOF tries the other
		tries = append(tries, try{"WAIT", "", b().Arbitrary("WAIT", "0", "1").Build()})
	}
	for _, t := range tries {
		switch err := s.do(ctx, t.cmd).Error(); {
		case classify(err) == Permission && !isEval(err):
			denied = append(denied, lacks(t.op, t.key))
		case classify(err) == Unavailable:
			return denied // each of the others would wait as long
		}
	}
	return denied
}

// isEval says whether it is scripts that the user may not run: deniedWrites
// reports those.
func isEval(err error) bool { return strings.Contains(err.Error(), "'eval'") }

func (s *Store) triesOfManifest(key string) []try {
	b := s.client.B
	return []try{
		{"HSCAN", key, b().Hscan().Key(key).Cursor(0).Build()},
		{"HLEN", key, b().Hlen().Key(key).Build()},
		{"HMGET", key, b().Hmget().Key(key).Field("0").Build()},
	}
}

func (s *Store) triesOfStream(key string) []try {
	b := s.client.B
	return []try{
		{opInfo, key, b().Eval().Script(infoScript).Numkeys(1).Key(key).Build()}, // the command itself would tell entries
		{"XINFO GROUPS", key, b().XinfoGroups().Key(key).Build()},
		{"XPENDING", key, b().Xpending().Key(key).Group(checkTopic).Build()},
		{"XRANGE", key, b().Xrange().Key(key).Start("+").End("-").Count(1).Build()},
		{"XLEN", key, b().Xlen().Key(key).Build()},
		{"MEMORY USAGE", key, b().MemoryUsage().Key(key).Samples(memorySamples).Build()},
		{"TYPE", key, b().Type().Key(key).Build()},
	}
}

// checkManifests are the manifests of a topic's first partition, and of a plain
// stream that nobody has.
func (s *Store) checkManifests(topic string) []string {
	keys := []string{s.cfg.Layout.ManifestKey(segment.Partition{Topic: topic})}
	if len(s.streamPatterns()) > 0 {
		keys = append(keys, s.cfg.Layout.ManifestKey(segment.Partition{Topic: checkTopic, Plain: true}))
	}
	return keys
}

// checkSegment is the stream of a topic's first segment.
func (s *Store) checkSegment(topic string) string {
	return s.cfg.Layout.SegmentKey(segment.Partition{Topic: topic}, 0)
}

// checkStreams are keys that the patterns of plain streams match. The text of
// most globs is one: it stands for the keys that are meant.
func (s *Store) checkStreams() (keys []string) {
	for _, p := range s.streamPatterns() {
		if p.Matches(p.Key) {
			keys = append(keys, p.Key)
		}
	}
	return keys
}

func lacks(op, key string) string {
	if key == "" {
		return "+" + aclName(op)
	}
	return "+" + aclName(op) + " ~" + key
}

func (s *Store) deniedWrites(ctx context.Context, topic string) (denied []string) {
	l := s.cfg.Layout
	for _, key := range append(s.checkManifests(topic), l.KnownKey()) {
		denied = append(denied, s.askDenied(ctx, key, "HGET f", "HSET f v", "HDEL f", "HLEN")...)
	}
	denied = append(denied, s.askDenied(ctx, s.checkSegment(topic), "UNLINK")...)
	for _, key := range s.checkStreams() {
		denied = append(denied, s.askDenied(ctx, key, "XTRIM MINID 0")...)
	}
	denied = append(denied, s.askDenied(ctx, l.MembersKey(), "HGETALL", "HSET f v", "HDEL f")...)
	denied = append(denied, s.askDenied(ctx, l.ClusterKey(), "SET v", "DEL")...)
	for _, key := range []string{s.checkLease(), l.LeaseKey() + ":wanted"} {
		denied = append(denied, s.askDenied(ctx, key, "SET v", "GET", "PEXPIRE 1", "PTTL", "DEL")...)
	}
	return denied
}

// checkLease is the key of the lease, or of one of several.
func (s *Store) checkLease() string {
	if s.cfg.Shards > 1 {
		return fmt.Sprintf("%s:0/%d", s.cfg.Layout.LeaseKey(), s.cfg.Shards)
	}
	return s.cfg.Layout.LeaseKey()
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

func (s *Store) askDenied(ctx context.Context, key string, commands ...string) []string {
	ctx, done := limit(ctx, s.cfg.timeout())
	defer done()
	// Sent as the worker's scripts are, by its digest first.
	names, err := rueidis.NewLuaScript(askScript).Exec(ctx, s.client, []string{key}, commands).AsStrSlice()
	if classify(err) == Permission {
		return []string{"+eval +evalsha ~" + key}
	}
	var denied []string
	for _, name := range names {
		if name != "" { // what is no list of names says nothing
			denied = append(denied, lacks(name, key))
		}
	}
	return denied
}

// ACL is the smallest set of rules with which a user can do everything that
// this program does with these settings, plain streams included. RedisJSON
// registries need +json.get as well, another database than 0 needs +select.
func ACL(c Config, streams []segment.StreamPattern) string {
	l := c.Layout
	rules := []string{"+type +smembers +hgetall +hscan +hlen +hmget +hget +hset +hdel " +
		"+xinfo|stream +xinfo|groups +xpending +xrange +xlen +memory|usage +unlink +time +info +ping " +
		"+eval +evalsha +set +get +pexpire +pttl +del"}
	keys := []string{l.Topics, l.Topic, l.Stream, l.SegmentStream, l.Manifest, l.Lease, l.Known, l.Paused, l.Members, l.Cluster}
	if c.Shards > 1 {
		keys = append(keys, l.Lease+":*")
	} else {
		keys = append(keys, l.Lease+":wanted")
	}
	if len(streams) > 0 {
		rules = append(rules, "+xtrim")
		keys = append(keys, l.Streams, l.StreamManifest)
	}
	switch { // a server that does not know WAITAOF refuses its name
	case c.WaitAOF:
		rules = append(rules, "+waitaof")
	case c.WaitReplicas > 0:
		rules = append(rules, "+wait")
	}
	if c.Cluster {
		rules = append(rules, "+cluster|slots +cluster|shards +asking")
	}
	anyKey := strings.NewReplacer("{ns}", l.Namespace, "{topic}", "*", "{partition}", "*", "{segment}", "*", "{key}", "*")
	for i, k := range keys {
		keys[i] = anyKey.Replace(k)
	}
	for _, p := range streams {
		keys = append(keys, keyRule(p.Key))
	}
	for _, key := range keys {
		if rule := "~" + key; !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	return strings.Join(rules, " ")
}

// keyRule is a pattern of plain streams as ACL rules have it. Both are globs
// of the same kind; but a rule holds no blank, nor anything else that would end
// it, so that ? stands there instead, or for the whole class that it is in.
func keyRule(glob string) string {
	var b strings.Builder
	for i := 0; i < len(glob); i++ {
		end := i + 1
		switch glob[i] {
		case '\\':
			end = min(i+2, len(glob))
		case '[':
			end = classEnd(glob, i)
		}
		if part := glob[i:end]; strings.ContainsFunc(part, endsRule) {
			b.WriteByte('?')
		} else {
			b.WriteString(part)
		}
		i = end - 1
	}
	return b.String()
}

// classEnd is the offset behind the class that begins at i.
func classEnd(glob string, i int) int {
	for j := i + 1; j < len(glob); j++ {
		switch glob[j] {
		case '\\':
			j++
		case ']':
			return j + 1
		}
	}
	return len(glob)
}

// endsRule says whether a character can't stand in a rule that is typed or
// kept in a file.
func endsRule(r rune) bool { return r <= ' ' || r == '"' || r == '\'' || r == '\x7f' }
