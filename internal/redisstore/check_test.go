package redisstore

import (
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
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
