package redisstore

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/lease"
	"korvet-offload/segment"
)

func wrong(findings []Finding) []string {
	var names []string
	for _, f := range findings {
		if !f.OK {
			names = append(names, f.Name)
		}
	}
	return names
}

func TestCheckOfAServerThatIsRight(t *testing.T) {
	s := open(t, config(redisserver.Start(t)))
	findings := s.Check(t.Context())
	if len(findings) != 6 || len(wrong(findings)) != 0 {
		t.Errorf("%v", findings)
	}
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	server := redisserver.Start(t, redisserver.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"))
	s := open(t, config(server))
	server.Exec("REPLICAOF", "127.0.0.1", "1")
	findings := s.Check(t.Context())
	if got := wrong(findings); !slices.Equal(got, []string{"role", "eviction"}) {
		t.Errorf("%v", findings)
	}
	for _, f := range findings {
		if f.OK == (f.Advice != "") {
			t.Errorf("%s: advice %q", f, f.Advice)
		}
	}
	cluster := redisserver.Start(t, redisserver.Cluster(true))
	if got := wrong(open(t, config(cluster)).Check(t.Context())); !slices.Equal(got, []string{"mode"}) {
		t.Errorf("cluster without the setting: %v", got)
	}
	c := config(redisserver.Start(t))
	c.Cluster = true
	if got := wrong(open(t, c).Check(t.Context())); !slices.Equal(got, []string{"mode"}) {
		t.Errorf("single server with the cluster's setting: %v", got)
	}
}

func TestCheckOfVersions(t *testing.T) {
	for version, ok := range map[string]bool{"6.2.0": true, "7.0.15": true, "8.0": true, "10.1.2": true, "6.0.16": false, "5.0": false, "": false, "x.y": false} {
		if f := checkVersion(map[string]string{"redis_version": version}); f.OK != ok {
			t.Errorf("%q: %v", version, f)
		}
	}
	if f := checkVersion(map[string]string{"redis_version": "7.2.4", "valkey_version": "8.1.0"}); !f.OK || !strings.Contains(f.Detail, "Valkey 8.1.0") {
		t.Errorf("%v", f)
	}
	if f := checkMode(map[string]string{"redis_mode": "sentinel"}, false); f.OK {
		t.Errorf("%v", f)
	}
	if f := checkDisk(map[string]string{"rdb_last_bgsave_status": "err"}); f.OK || f.Advice == "" {
		t.Errorf("%v", f)
	}
	if f := checkDisk(map[string]string{"loading": "1"}); f.OK {
		t.Errorf("%v", f)
	}
}

// TestTheSmallestACLSuffices does everything that the program does as a user
// who may do nothing else, on a single server and on a cluster.
func TestTheSmallestACLSuffices(t *testing.T) {
	for name, clustered := range map[string]bool{"single": false, "cluster": true} {
		t.Run(name, func(t *testing.T) {
			options := []redisserver.Option{redisserver.Users("user default on nopass ~* &* +@all",
				"user app on >"+secret+" "+ACL(segment.DefaultLayout(), clustered))}
			if clustered {
				options = append(options, redisserver.Cluster(true))
			}
			server := redisserver.Start(t, options...)
			c := config(server)
			c.URI, c.Cluster = server.UserURI("app", secret), clustered
			stream := c.Layout.SegmentKey(orders, 0)
			server.Exec("SADD", "korvet:topics", "orders")
			server.Exec("HSET", "korvet:topic:orders", "partitions", "4")
			server.Exec("HSET", ordersKey(), "0", sealed)
			server.Exec("XADD", stream, "1-1", "f", "v")
			readers(t, func(t *testing.T, reader string) {
				s := openReader(t, c, reader)
				if got := wrong(s.Check(t.Context())); len(got) != 0 {
					t.Errorf("%v", s.Check(t.Context()))
				}
				everything(t, s, stream)
			})
		})
	}
}

func everything(t *testing.T, s *Store, stream string) {
	t.Helper()
	_, errTopics := s.Topics(t.Context())
	m, errManifest := s.Manifest(t.Context(), orders)
	if len(m.Entries) != 1 {
		t.Errorf("%d entries", len(m.Entries))
	}
	_, errSwap := s.Swap(t.Context(), orders, 0, sealed, sealed)
	_, errInfo := s.StreamInfo(t.Context(), stream)
	_, errNow := s.Now(t.Context())
	_, _, errPages := readAll(t.Context(), s, stream)
	_, release, errLease := lease.New(s.Client(), lease.Config{Key: s.cfg.Layout.LeaseKey(), Duration: time.Minute}).Acquire(t.Context())
	if errLease == nil {
		errLease = release(t.Context())
	}
	if err := errors.Join(errTopics, errManifest, errSwap, errInfo, errNow, errPages, errLease); err != nil {
		t.Error(err)
	}
}

func TestPermissionsThatLackAreNamed(t *testing.T) {
	server := redisserver.Start(t, redisserver.Users("user default on nopass ~* &* +@all",
		"user reader on >pw ~korvet:* +@read +eval +evalsha +ping"))
	c := config(server)
	c.URI = server.UserURI("reader", "pw")
	server.Exec("HSET", ordersKey(), "0", sealed)
	server.Exec("XADD", "other", "1-1", "f", "v")
	s := open(t, c)
	var text []string
	for _, f := range s.Check(t.Context()) {
		text = append(text, f.String())
	}
	report := strings.Join(text, "\n")
	for _, want := range []string{"+info", "+time", "+hset ~" + c.Layout.ManifestKey(segment.Partition{Topic: checkTopic}), "+del ~korvet:storage:offload:lease", "ACL SETUSER"} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if _, err := s.Now(t.Context()); ClassOf(err) != Permission || !strings.Contains(err.Error(), "+time") {
		t.Errorf("Now: class %s, %v", ClassOf(err), err)
	}
	if _, err := s.Swap(t.Context(), orders, 0, sealed, "x"); ClassOf(err) != Permission || !strings.Contains(err.Error(), "+hset") {
		t.Errorf("Swap: class %s, %v", ClassOf(err), err)
	}
	if _, _, err := readAll(t.Context(), s, "other"); ClassOf(err) != Permission || !strings.Contains(err.Error(), "other") {
		t.Errorf("pages of a key that is not allowed: class %s, %v", ClassOf(err), err)
	}
}
