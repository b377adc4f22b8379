package redisstore

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/lease"
	"korvet-offload/segment"
)

const defaultUser = "user default on nopass ~* &* +@all"

// plainSelector is what a user of the documentation's ACL gets on top for the
// keys of plain streams.
const plainSelector = " (+type +xinfo|stream +xinfo|groups +xpending +xrange +xlen +memory|usage +xtrim +eval +evalsha ~events:*)"

func events() []segment.StreamPattern { return []segment.StreamPattern{{Key: "events:*"}} }

// TestTheSmallestACLSuffices does everything that the program does as a user
// who may do nothing else, on a single server and on a cluster.
func TestTheSmallestACLSuffices(t *testing.T) {
	documented, err := os.ReadFile("../../docs/redis-acl.txt")
	if err != nil {
		t.Fatal(err)
	}
	document := strings.Replace(strings.TrimSpace(string(documented)), "CHANGE-ME", secret, 1)
	app := "user korvet-offload on >" + secret + " "
	layout := segment.DefaultLayout()
	for name, c := range map[string]struct {
		Config
		streams []segment.StreamPattern
		user    string
	}{
		"topics":                  {Config{}, nil, app + ACL(Config{Layout: layout, Shards: 2}, nil)},
		"streams":                 {Config{}, events(), app + ACL(Config{Layout: layout, Shards: 2}, events())},
		"replicas":                {Config{WaitReplicas: 1}, nil, app + ACL(Config{Layout: layout, Shards: 2, WaitReplicas: 1}, nil)},
		"cluster":                 {Config{Cluster: true}, events(), app + ACL(Config{Layout: layout, Shards: 2, Cluster: true}, events())},
		"documented":              {Config{}, nil, document},
		"documented, and streams": {Config{}, events(), document + plainSelector},
	} {
		t.Run(name, func(t *testing.T) {
			options := []redisserver.Option{redisserver.Users(defaultUser, c.user)}
			if c.Cluster {
				options = append(options, redisserver.Cluster(true))
			}
			server := redisserver.Start(t, options...)
			cfg := config(server)
			cfg.Cluster, cfg.WaitReplicas, cfg.Timeout = c.Cluster, c.WaitReplicas, 500*time.Millisecond
			admin := open(t, cfg)
			cfg.URI = server.UserURI("korvet-offload", secret)
			server.Exec("SADD", "korvet:topics", "orders")
			server.Exec("HSET", "korvet:topic:orders", "partitions", "4")
			readers(t, func(t *testing.T, reader string) {
				s := openReader(t, cfg, reader)
				s.streams = c.streams
				if got := wrong(s.Check(t.Context())); len(got) > 1 || len(got) == 1 && got[0] != "wait-replicas" {
					t.Errorf("%v", s.Check(t.Context()))
				}
				everything(t, s, admin)
			})
			if got := strings.TrimSpace(server.Exec("ACL", "LOG")); got != "" {
				t.Errorf("the server refused something: %s", got)
			}
		})
	}
}

func everything(t *testing.T, s, admin *Store) {
	t.Helper()
	everyKind(t, s, admin, orders)
	if len(s.streams) > 0 {
		everyKind(t, s, admin, segment.Partition{Topic: "events:a", Plain: true})
	}
	stream := s.cfg.Layout.SegmentKey(orders, 7)
	addEntryTo(t.Context(), t, admin, stream, "*")
	_, errTopics := s.Topics(t.Context())
	_, errInfo := s.StreamInfo(t.Context(), stream)
	_, errNow := s.Now(t.Context())
	_, _, errPages := readAll(t.Context(), s, stream)
	_, release, errLease := lease.New(s.Client(), lease.Config{Key: s.cfg.Layout.LeaseKey(), Duration: time.Minute}).Acquire(t.Context())
	if errLease == nil {
		errLease = release(t.Context())
	}
	shards := lease.NewGroup(s.Client(), lease.Config{Key: s.cfg.Layout.LeaseKey(), Members: s.cfg.Layout.MembersKey(), Duration: time.Minute, Shards: 2}, lease.Member{ID: "a"})
	_, release, errShards := shards.Acquire(t.Context())
	if errShards == nil {
		ended, end := context.WithCancel(t.Context())
		shards.Run(ended, func(lease.View) { end() }) // and says goodbye
		errShards = release(t.Context())
	}
	_, release, errBorrow := lease.New(s.Client(), lease.Config{Key: s.cfg.Layout.LeaseKey(), Members: s.cfg.Layout.MembersKey(), Duration: time.Minute}).
		Borrow(t.Context(), "me", func(string) {})
	if errBorrow == nil {
		errBorrow = release(t.Context())
	}
	id, errCluster := s.ClaimClusterID(t.Context(), "one")
	if errCluster == nil {
		_, errCluster = s.SwapClusterID(t.Context(), id, "one")
	}
	_, errPause := s.Pause(t.Context(), segment.Scope{}, "me", "why")
	errResume := s.Resume(t.Context(), segment.Scope{})
	if err := errors.Join(errTopics, errInfo, errNow, errPages, errLease, errShards, errBorrow, errCluster, errPause, errResume); err != nil {
		t.Error(err)
	}
}

//fault:redis | the user may only read, and not everywhere | an ACL user at a real server | each command that lacks is named with its key, and one key takes no other along
func TestPermissionsThatLackAreNamed(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users(defaultUser,
		"user reader on >pw ~korvet:* +@read +eval +evalsha +ping"))
	c := config(server)
	c.URI = server.UserURI("reader", "pw")
	c.WaitReplicas = 1
	server.Exec("HSET", ordersKey(), "0", sealed)
	server.Exec("XADD", "other", "1-1", "f", "v")
	stream := c.Layout.SegmentKey(orders, 0)
	server.Exec("XADD", stream, "1-1", "f", "v")
	s := open(t, c)
	s.streams = events()
	var text []string
	for _, f := range s.Check(t.Context()) {
		text = append(text, f.String())
	}
	report := strings.Join(text, "\n")
	p := segment.Partition{Topic: checkTopic}
	for _, want := range []string{
		"+info", "+time", "+wait,", "+hset ~" + c.Layout.ManifestKey(p), "+hdel ~korvet:storage:stream-manifest:", "+hset ~korvet:storage:offload:topics",
		"+unlink ~" + c.Layout.SegmentKey(p, 0), "+xrange ~events:*", "+eval +evalsha ~events:*", "+del ~korvet:storage:offload:lease", "+set ~korvet:storage:offload:lease:wanted",
		"ACL SETUSER", "+xtrim ", " ~events:*",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	_, errNow := s.Now(t.Context())
	_, errChange := swap(t.Context(), s, 0, sealed, "x")
	_, errDurable := durable(t.Context(), s, sealed, "x")
	_, errRemove := s.Remove(t.Context(), stream, segment.StreamInfo{Length: 1, LastID: at(1, 1), EntriesAdded: -1})
	_, errTrim := s.Trim(t.Context(), stream, segment.Piece{First: at(1, 1), Last: at(1, 1), Count: 1})
	_, _, errPages := readAll(t.Context(), s, "other")
	_, errGroups := s.Groups(t.Context(), "other")
	for want, err := range map[string]error{"+time": errNow, "+hset": errChange, "+hdel": errDurable, "+unlink": errRemove, "+xtrim": errTrim,
		"XRANGE other": errPages, "+xinfo|groups": errGroups} {
		if ClassOf(err) != Permission || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: class %s, %v", want, ClassOf(err), err)
		}
	}
	peeked, err := s.Peek(t.Context(), []segment.Peek{{Partition: orders, Numbers: []segment.Number{0}}})
	if err != nil || peeked[0].Raw[0] != sealed {
		t.Errorf("peek: %+v, %v", peeked, err)
	}
	sizes, err := s.Sizes(t.Context(), []segment.SizeQuery{{Key: "other"}, {Key: stream}})
	if err != nil || ClassOf(sizes[0].Err) != Permission || sizes[1].Length != 1 {
		t.Errorf("sizes: one key that is not allowed has taken the others along: %+v, %v", sizes, err)
	}
}

func TestACLOfSettings(t *testing.T) {
	has := func(c Config, streams []segment.StreamPattern, rule string) bool {
		c.Layout = segment.DefaultLayout()
		return slices.Contains(strings.Fields(ACL(c, streams)), rule)
	}
	for _, rule := range []string{"+wait", "+waitaof", "+xtrim", "~korvet:streams", "+asking"} {
		if has(Config{}, nil, rule) {
			t.Errorf("%s is not needed", rule)
		}
	}
	if !has(Config{Shards: 1}, nil, "~korvet:storage:offload:lease:wanted") {
		t.Error("no rule for the key by which the lease is asked for")
	}
	if has(Config{Shards: 1}, nil, "~korvet:storage:offload:lease:*") || !has(Config{Shards: 2}, nil, "~korvet:storage:offload:lease:*") {
		t.Error("the keys of several leases: want a rule for them only where there are several")
	}
	if !has(Config{WaitReplicas: 1}, nil, "+wait") || !has(Config{WaitReplicas: 1, WaitAOF: true}, nil, "+waitaof") {
		t.Error("nothing to wait with")
	}
	for _, rule := range []string{"+xtrim", "~korvet:streams", "~korvet:storage:stream-manifest:*", "~events:*"} {
		if !has(Config{}, events(), rule) {
			t.Errorf("%s is missing", rule)
		}
	}
}

// TestKeyRules: every rule is one that the server takes, and covers the keys
// that the pattern matches.
func TestKeyRules(t *testing.T) {
	server := redisserver.Start(t)
	for glob, c := range map[string]struct{ rule, key string }{
		"events":         {"events", "events"},
		"events/*":       {"events/*", "events/a/b"},
		"a b*":           {"a?b*", "a bc"},
		"[a-c]?x":        {"[a-c]?x", "byx"},
		"[ a]x":          {"?x", " x"},
		`\*x`:            {`\*x`, "*x"},
		`\ x`:            {`?x`, " x"},
		`[\] ]x`:         {"?x", "]x"},
		"say \"x\"":      {"say??x?", "say \"x\""},
		"tab\tand\nmore": {"tab?and?more", "tab\tand\nmore"},
		"\u00e9t\u00e9":  {"\u00e9t\u00e9", "\u00e9t\u00e9"},
	} {
		rule := keyRule(glob)
		if rule != c.rule {
			t.Errorf("%q: rule %q, want %q", glob, rule, c.rule)
		}
		server.Exec("ACL", "SETUSER", "u", "on", "nopass", "resetkeys", "+@all", "~"+rule)
		if reply, err := server.TryExec("--user", "u", "--pass", "", "--no-auth-warning", "GET", c.key); err != nil {
			t.Errorf("%q: as a user with the rule %q: %s, %v", c.key, rule, reply, err)
		}
	}
}
