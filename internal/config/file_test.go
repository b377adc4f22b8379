package config

import (
	"fmt"
	"strings"
	"testing"
)

// The broker's own file, with all that is none of our business.
const brokerYAML = `
server:
  port: 8080
spring:
  application: {name: korvet}
  profiles:
    active: prod
management.endpoints.web.exposure.include: "*"
? [a, complex, key]
: value
korvet:
  namespace: ${KORVET_NS:team1}
  server: {host: 0.0.0.0, port: 9092}
  archiver:
    scan-interval: 5m
  redis:
    host: ${redis.host}
    password: ${REDIS_PASSWORD}
    pool: {max-total: 8}
    ioThreads: 4
    circuit-breaker.enabled: true
    metrics: {enabled: true}
  storage:
    local: {path: /data}
    remote:
      path: s3://bucket/${TIER:cold:er}/x
      iceberg: {catalog: {type: rest}}
      metrics: {enabled: true}
      s3:
        region: eu-west-1
    worker:
      enabled: true
      lease-duration: PT5M
  topics:
    - name: orders
      compression-type: zstd
      cleanup: {policy: delete}
      retentionTime: P7D
`

func TestBrokerFile(t *testing.T) {
	l := loadYAML(t, brokerYAML, "REDIS_HOST=redis.local", "REDIS_PASSWORD=p${w")
	if l.Redis.Layout.Namespace != "team1" || l.Redis.Host != "redis.local" || l.Redis.Password != "p${w" {
		t.Errorf("namespace %q, host %q, password %q", l.Redis.Layout.Namespace, l.Redis.Host, l.Redis.Password)
	}
	if l.Store.URL != "s3://bucket/cold:er/x" || l.Store.Region != "eu-west-1" || formatDuration(l.Lease.Duration) != "5m" {
		t.Errorf("store %q in %q, lease %v", l.Store.URL, l.Store.Region, l.Lease.Duration)
	}
	if len(l.Topics) != 1 || l.Topics[0].Settings["retention-time"] != "604800000" || len(l.Topics[0].Settings) != 1 {
		t.Errorf("topics %+v", l.Topics)
	}
	if len(l.Warnings) > 0 {
		t.Errorf("warnings %q", l.Warnings)
	}
}

func TestSpellings(t *testing.T) {
	for _, yml := range []string{
		"korvet: {storage: {remote-path: 's3://aaa/b'}}",
		"korvet: {storage: {remotePath: 's3://aaa/b'}}",
		"korvet: {storage: {remote_path: 's3://aaa/b'}}",
		"KORVET: {Storage: {REMOTE-PATH: 's3://aaa/b'}}",
		"korvet.storage.remote-path: s3://aaa/b",
		"korvet: {storage.remote.path: 's3://aaa/b'}",
		"korvet.storage: {remote: {path: 's3://aaa/b'}}",
		"x: &x {remote-path: 's3://aaa/b'}\nkorvet: {storage: *x}",
		"x: &x {remote-path: 's3://aaa/b'}\nkorvet: {storage: {<<: *x}}",
		"x: &x {remote-path: 's3://zzz/z'}\nkorvet: {storage: {<<: [*x], remote-path: 's3://aaa/b'}}",
		"x: &x s3://aaa/b\nkorvet.storage.remote-path: *x",
		"\ufeffkorvet.storage.remote-path: s3://aaa/b\r\n",
	} {
		if l := loadYAML(t, yml); l.Store.URL != "s3://aaa/b" {
			t.Errorf("%s: remote path %q", yml, l.Store.URL)
		}
	}
}

func TestFileFaults(t *testing.T) {
	bomb := "a0: &a0 {x: 1}\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d {l: *a%d, r: *a%d}\n", i+1, i+1, i, i)
	}
	merges := "a0: &a0 {x: 1}\n"
	for i := range 30 {
		merges += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%d]}\n", i+1, i+1, i, i)
	}
	const tooMuch = "the file unfolds to more than 50000 values or 100 levels"
	for _, tt := range []struct{ what, yml, want string }{
		{"no YAML", "korvet: {", "korvet.yml:1: not valid YAML: did not find expected"},
		{"a tab", "korvet:\n\tredis: x", "korvet.yml:2: not valid YAML: found character that cannot start any token"},
		{"a list", "- a\n- b", "korvet.yml:1: want sections and settings (korvet: ...), not a list or a single value"},
		{"a text", "hello", "korvet.yml:1: want sections and settings (korvet: ...), not a list or a single value"},
		{"a key twice", "korvet:\n  redis: {}\nother: 1\nkorvet:\n  redis: {}", "korvet.yml:4: the key korvet is there twice, first in line 1: keep one"},
		{"a key twice in braces", "other: {a: 1, a: 2}", "korvet.yml:1: a key in the braces is there twice, first in line 1: keep one"},
		{"an unknown name in braces", "korvet.redis: {quuxquux: 1}", "korvet.redis (korvet.yml:1): a name in the braces is no setting; docs/settings.md lists those there are; a text with a comma needs quotes"},
		{"a misspelt name in braces", "korvet.redis: {hots: h}", "korvet.redis.hots (korvet.yml:1): there is no such setting; did you mean korvet.redis.host?"},
		{"a value for a section", "korvet:\n  storage: s3://x", "korvet.storage (korvet.yml:2): want a section with settings below it, not a value"},
		{"a section for a value", "korvet.storage.remote-path: {bucket: x}", "korvet.storage.remote-path (korvet.yml:1): want one value here, not a list or a section; a text with {, [ or : needs quotes"},
		{"a list for a value", "korvet.storage.remote-path: [x]", "korvet.storage.remote-path (korvet.yml:1): want one value here, not a list or a section; a text with {, [ or : needs quotes"},
		{"a misspelt empty section", "korvet.storage.ofload:", "korvet.storage.ofload (korvet.yml:1): there is no such setting"},
		{"a missing anchor", "korvet.redis.password: *hunter2", "korvet.yml: a value begins with * and so names a YAML anchor that is not there: put the value in quotes"},
		{"an anchor in itself", "a: &a {b: *a}", "korvet.yml:1: " + tooMuch},
		{"a merge of itself", "a: &a {<<: *a}", "korvet.yml:1: " + tooMuch},
		{"endless anchors", bomb, tooMuch},
		{"endless merges", merges, tooMuch},
		{"a line break in a name", "korvet.storage:\n  \"a\\nb\": 1", `"korvet.storage.a\nb" (korvet.yml:2): there is no such setting`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			got := faultsOf(t, Input{}, tt.yml)
			if len(got) != 1 || !strings.Contains(got[0], tt.want) {
				t.Errorf("got %q, want one with %q", []string(got), tt.want)
			}
		})
	}
}

func TestProfileDocuments(t *testing.T) {
	for _, header := range []string{"spring.config.activate.on-profile: prod", "spring: {config: {activate: {onProfile: prod}}}", "spring.profiles: dev", "spring: {profiles: [dev]}"} {
		l := loadYAML(t, "korvet.namespace: a\n---\n"+header+"\nkorvet: {namespace: b, storage: {nonsense: 1}}")
		if l.Redis.Layout.Namespace != "a" {
			t.Errorf("%s: namespace %s", header, l.Redis.Layout.Namespace)
		}
		wantWarning(t, l, "korvet.yml:3: the document is passed over: it is for a Spring profile")
	}
}

func TestForeignNamesNearOurs(t *testing.T) {
	l := loadYAML(t, "korvet: {namspace: x, storge: {remote-path: y}, servers: 1}\nkovret: {namespace: z}", "KORVET_NAMESPCE=x", "KORVET_SERVER_PORT=1")
	wantWarning(t, l, "korvet.namspace (korvet.yml:1)", "did you mean korvet.namespace?")
	wantWarning(t, l, "korvet.storge (korvet.yml:1)", "did you mean korvet.storage?")
	wantWarning(t, l, "KORVET_NAMESPCE", "did you mean KORVET_NAMESPACE?")
	if len(l.Warnings) != 3 {
		t.Errorf("warnings %q", l.Warnings)
	}
}

func TestPlaceholders(t *testing.T) {
	environ := []string{"A=1", "B_C=2", "EMPTY=", "P=${A}", "NS=n"}
	for text, want := range map[string]string{
		"plain": "plain", "${A}": "1", "x${A}y${A}z": "x1y1z", "${A:9}": "1", "${Z:9}": "9", "${Z:}": "", "${EMPTY:9}": "",
		"${b.c}": "2", "${b-c}": "2", "${Z:${Y:${A}}}": "1", "${Z:redis://h:1}": "redis://h:1", "${P}": "${A}", "$A": "$A", "{ns}": "{ns}", "a${A": "a${A", "}": "}",
	} {
		l := newLoader(environ)
		if got, err := l.expand(text); err != nil || got != want {
			t.Errorf("expand %q: %q, %v; want %q", text, got, err, want)
		}
	}
	wantFaults(t, faultsOf(t, Input{Environ: environ}, "korvet.redis.password: x${REDIS_PASSWORD}\nkorvet.redis.host: ${1}\nkorvet.topics: [{name: a, partitions: '${N}'}]\nother: ${UNSET}\nkorvet.redis.username: "+strings.Repeat("${Z:", 12)+strings.Repeat("}", 12)),
		"korvet.redis.password (korvet.yml:1): the environment variable REDIS_PASSWORD in ${REDIS_PASSWORD} is not set: set it, or write ${REDIS_PASSWORD:default}",
		"korvet.redis.host (korvet.yml:2): a ${...} in it names no environment variable: want ${VARIABLE} or ${VARIABLE:default}",
		"korvet.topics[0].partitions (korvet.yml:3): the environment variable N in ${N} is not set: set it, or write ${N:default}",
		"korvet.redis.username (korvet.yml:5): placeholders are nested more than 8 deep")
}
