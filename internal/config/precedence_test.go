package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Every subset of the sources, with either generation of names in each: the
// highest source wins, and the report names it.
func TestPrecedence(t *testing.T) {
	names := []string{"korvet.storage.offload.page-size", "korvet.storage.worker.page-size"}
	for mask := range 8 {
		for generation := range 8 {
			in := Input{File: "korvet.yml"}
			yml, value, source, from := "", "10000", "default", ""
			name := func(bit int) string { return names[generation>>bit&1] }
			if mask&1 != 0 {
				yml, value, source, from = name(0)+": 1", "1", "file", "korvet.yml:1"
			}
			if mask&2 != 0 {
				in.Environ = []string{variableOf(name(1)) + "=2"}
				value, source, from = "2", "environment", variableOf(name(1))
			}
			if mask&4 != 0 && generation&4 != 0 {
				in.Flags = map[string]string{"page-size": "3"}
				value, source, from = "3", "flag", "--page-size"
			} else if mask&4 != 0 {
				in.Set = []string{name(2) + "=3"}
				value, source, from = "3", "flag", "--set"
			}
			l, err := load(in, []byte(yml))
			if err != nil {
				t.Fatalf("mask %b, generation %b: %v", mask, generation, err)
			}
			want := Setting{Name: names[0], Value: value, Source: source, From: from}
			if got := l.setting(t, names[0]); got != want {
				t.Errorf("mask %b, generation %b: %+v, want %+v", mask, generation, got, want)
			}
			if fmt.Sprint(l.Redis.PageSize) != value {
				t.Errorf("mask %b: bound %d, want %s", mask, l.Redis.PageSize, value)
			}
		}
	}
}

func TestConflicts(t *testing.T) {
	const twoNames = "these are two names of one setting, with different values; keep one"
	const twice = "the setting is given twice, with different values; keep one"
	for _, tt := range []struct {
		what, yml string
		in        Input
		want      string
	}{
		{"two generations in a file", "korvet.storage.remote-path: s3://aaa/b\nkorvet.storage.remote.path: s3://ccc/d", Input{},
			`korvet.storage.remote-path = "s3://aaa/b" (korvet.yml:1) and korvet.storage.remote.path = "s3://ccc/d" (korvet.yml:2): ` + twoNames},
		{"two spellings in a file", "korvet.storage:\n  remotePath: s3://aaa/b\n  remote-path: s3://ccc/d", Input{},
			`korvet.storage.remote-path = "s3://aaa/b" (korvet.yml:2) and korvet.storage.remote-path = "s3://ccc/d" (korvet.yml:3): ` + twice},
		{"two generations in two documents", "korvet.storage.remote-path: s3://aaa/b\n---\nkorvet.storage.remote.path: s3://ccc/d", Input{},
			`korvet.storage.remote-path = "s3://aaa/b" (korvet.yml:1) and korvet.storage.remote.path = "s3://ccc/d" (korvet.yml:3): ` + twoNames},
		{"two variables", "", Input{Environ: []string{"KORVET_STORAGE_OFFLOAD_SLA=1m", "KORVET_STORAGE_WORKER_SLA=2m"}},
			`korvet.storage.offload.sla = "1m" (KORVET_STORAGE_OFFLOAD_SLA) and korvet.storage.offload.sla = "2m" (KORVET_STORAGE_WORKER_SLA): ` + twice},
		{"flag and --set", "", Input{Flags: map[string]string{"page-size": "1"}, Set: []string{"korvet.storage.offload.page-size=2"}},
			`korvet.storage.offload.page-size = "1" (--page-size) and korvet.storage.offload.page-size = "2" (--set): ` + twice},
		{"secrets", "korvet.storage.s3.secret-access-key: abcdef1\nkorvet.storage.remote.s3.secret-access-key: abcdef2\nkorvet.storage.s3.access-key-id: a", Input{},
			`korvet.storage.s3.secret-access-key (korvet.yml:1) and korvet.storage.remote.s3.secret-access-key (korvet.yml:2): ` + twoNames},
		{"a conflict that a higher source settles", "korvet.storage.offload.sla: 1m\nkorvet.storage.worker.sla: 2m", Input{Environ: []string{"KORVET_STORAGE_OFFLOAD_SLA=3m"}},
			`korvet.storage.offload.sla = "1m" (korvet.yml:1) and korvet.storage.worker.sla = "2m" (korvet.yml:2): ` + twoNames},
	} {
		t.Run(tt.what, func(t *testing.T) { wantFaults(t, faultsOf(t, tt.in, tt.yml), tt.want) })
	}
}

func TestSameValueTwiceIsFine(t *testing.T) {
	l := loadYAML(t, `
korvet.storage.offload.sla: 60s
korvet.storage.worker.sla: 1m
korvet.storage.offload.enabled: no
korvet.storage.worker.enabled: false
`, "KORVET_STORAGE_OFFLOAD_PAGE_SIZE=5", "KORVET_STORAGE_OFFLOAD_PAGESIZE=5")
	if formatDuration(l.Worker.SLA) != "1m" || l.Worker.Enabled || l.Redis.PageSize != 5 {
		t.Errorf("%v %v %d", l.Worker.SLA, l.Worker.Enabled, l.Redis.PageSize)
	}
}

func TestLaterDocumentWins(t *testing.T) {
	l := loadYAML(t, "korvet.namespace: a\nkorvet.storage.offload.sla: 5m\n---\nkorvet.namespace: b\n---\n")
	if l.Redis.Layout.Namespace != "b" || formatDuration(l.Worker.SLA) != "5m" {
		t.Errorf("namespace %s, sla %v", l.Redis.Layout.Namespace, l.Worker.SLA)
	}
	if s := l.setting(t, "korvet.namespace"); s.From != "korvet.yml:4" {
		t.Errorf("from %s", s.From)
	}
}

func TestRedisURIOrParts(t *testing.T) {
	const uriYAML = "korvet.redis.uri: redis://file:1\n"
	for _, tt := range []struct {
		what, yml string
		environ   []string
		flags     map[string]string
		uri, addr string // addr: host:port in effect where there is no URI
		warning   string
	}{
		{"nothing", "", nil, nil, "redis://localhost:6379", "", ""},
		{"uri", uriYAML, nil, nil, "redis://file:1", "", ""},
		{"host", "korvet.redis.host: h", nil, nil, "", "h:6379", ""},
		{"port", "korvet.redis.port: 7", nil, nil, "", "localhost:7", ""},
		{"password alone", "", []string{"KORVET_REDIS_PASSWORD=p"}, nil, "", "localhost:6379", ""},
		{"uri above parts", "korvet.redis: {host: h, password: p}", []string{"KORVET_REDIS_URI=redis://env:2"}, nil,
			"redis://env:2", "", "korvet.redis.password (korvet.yml:1) is passed over: korvet.redis.uri (KORVET_REDIS_URI) takes its place"},
		{"host above uri", uriYAML, []string{"KORVET_REDIS_HOST=h", "KORVET_REDIS_PASSWORD=p"}, nil,
			"", "h:6379", "korvet.redis.uri (korvet.yml:1) is passed over"},
		{"password above uri", uriYAML, []string{"KORVET_REDIS_PASSWORD=p@:/?#%"}, nil, "redis://:p%40%3A%2F%3F%23%25@file:1", "", ""},
		{"user and password above uri", uriYAML, []string{"KORVET_REDIS_USERNAME=u", "KORVET_REDIS_PASSWORD=p"}, nil, "redis://u:p@file:1", "", ""},
		{"password above a uri with one", "korvet.redis.uri: redis://u:old@file:1", []string{"KORVET_REDIS_PASSWORD=new"}, nil, "redis://u:new@file:1", "", ""},
		{"user above a uri with password", "korvet.redis.uri: redis://u:old@file:1", []string{"KORVET_REDIS_USERNAME=v"}, nil, "redis://v:old@file:1", "", ""},
		{"password above sentinels", "korvet.redis.uri: redis+sentinel://a:1,b/m/2", []string{"KORVET_REDIS_PASSWORD=p@:/"}, nil, "redis+sentinel://:p%40%3A%2F@a:1,b/m/2", "", ""},
		{"user above sentinels with a password", "korvet.redis.uri: rediss+sentinel://u:old@a:1,b/m", []string{"KORVET_REDIS_USERNAME=v"}, nil, "rediss+sentinel://v:old@a:1,b/m", "", ""},
		{"flag above all", uriYAML, []string{"KORVET_REDIS_PASSWORD=p"}, map[string]string{"redis-uri": "redis://flag:3"}, "redis://flag:3", "", "korvet.redis.password (KORVET_REDIS_PASSWORD) is passed over"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			l, err := load(Input{File: "korvet.yml", Environ: tt.environ, Flags: tt.flags}, []byte(tt.yml))
			if err != nil {
				t.Fatal(err)
			}
			if l.Redis.URI != tt.uri {
				t.Errorf("uri %q, want %q", l.Redis.URI, tt.uri)
			}
			if addr := fmt.Sprintf("%s:%d", l.Redis.Host, l.Redis.Port); tt.addr != "" && addr != tt.addr {
				t.Errorf("address %s, want %s", addr, tt.addr)
			}
			if tt.warning != "" {
				wantWarning(t, l, tt.warning)
			} else if len(l.Warnings) > 0 {
				t.Errorf("warnings %q", l.Warnings)
			}
		})
	}
}

func TestRedisURIAndPartsInOneSource(t *testing.T) {
	const why = ": the URI takes the place of host, port, username and password; keep the URI or the others"
	wantFaults(t, faultsOf(t, Input{}, "korvet.redis:\n  uri: redis://h\n  host: h\n  password: pppp"),
		"korvet.redis.uri (korvet.yml:2) and korvet.redis.host (korvet.yml:3)"+why,
		"korvet.redis.uri (korvet.yml:2) and korvet.redis.password (korvet.yml:4)"+why)
	wantFaults(t, faultsOf(t, Input{Environ: []string{"KORVET_REDIS_URI=redis://h", "KORVET_REDIS_PORT=6379"}}, ""),
		"korvet.redis.uri (KORVET_REDIS_URI) and korvet.redis.port (KORVET_REDIS_PORT)"+why)
}

// Where the URI counts, the report has no host and port to mislead.
func TestReportOfRedisAddress(t *testing.T) {
	for environ, want := range map[string]bool{"KORVET_REDIS_URI=redis://h": false, "KORVET_REDIS_HOST=h": true} {
		l := loadYAML(t, "", environ)
		got := slices.ContainsFunc(l.Report(), func(s Setting) bool { return s.Name == redisHost })
		if got != want {
			t.Errorf("%s: host in the report: %v, want %v", environ, got, want)
		}
	}
}

func TestReportOfMergedCredentials(t *testing.T) {
	l := loadYAML(t, "korvet.redis.uri: redis://file:1", "KORVET_REDIS_PASSWORD=pppppp")
	if s := l.setting(t, "korvet.redis.password"); s.Value != hidden || !s.Secret || s.From != "KORVET_REDIS_PASSWORD" {
		t.Errorf("password: %+v", s)
	}
	if s := l.setting(t, "korvet.redis.uri"); !s.Secret || s.Value != "redis://:xxxxx@file:1" || strings.Contains(s.Value, "pppppp") {
		t.Errorf("uri: %+v", s)
	}
}
