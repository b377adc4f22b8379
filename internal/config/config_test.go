package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
)

// loadYAML loads a file called korvet.yml.
func loadYAML(t *testing.T, yml string, environ ...string) *Loaded {
	t.Helper()
	l, err := load(Input{File: "korvet.yml", Environ: environ}, []byte(yml))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return l
}

// faultsOf loads what must not load.
func faultsOf(t *testing.T, in Input, yml string) Faults {
	t.Helper()
	if yml != "" {
		in.File = "korvet.yml"
	}
	_, err := load(in, []byte(yml))
	var faults Faults
	if !errors.As(err, &faults) {
		t.Fatalf("load: got %v, want faults", err)
	}
	for _, f := range faults {
		if strings.ContainsAny(f, "\n\r") || f == "" {
			t.Errorf("fault %q is not one line", f)
		}
	}
	return faults
}

// wantFaults compares whole faults, in order.
func wantFaults(t *testing.T, got Faults, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("faults:\n%s\nwant:\n%s", got, strings.Join(want, "\n"))
	}
}

func wantWarning(t *testing.T, l *Loaded, parts ...string) {
	t.Helper()
	for _, w := range l.Warnings {
		found := true
		for _, p := range parts {
			found = found && strings.Contains(w, p)
		}
		if found {
			return
		}
	}
	t.Errorf("warnings %q: none has all of %q", l.Warnings, parts)
}

func (l *Loaded) setting(t *testing.T, name string) Setting {
	t.Helper()
	for _, s := range l.Report() {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("the report lacks %s", name)
	return Setting{}
}

func TestDefaultsAreValid(t *testing.T) {
	l, err := load(Input{}, nil)
	if err != nil {
		t.Fatalf("load nothing: %v", err)
	}
	want := DefaultConfig()
	if l.Redis != want.Redis || l.Worker != want.Worker || l.Ops != want.Ops || l.Lease != want.Lease || l.Scrub != want.Scrub || l.Serve != want.Serve || l.Cache != want.Cache || l.Store != want.Store {
		t.Error("loading nothing does not give the defaults")
	}
	if l.Redis.URI != "redis://localhost:6379" || l.Lease.Key != "korvet:storage:offload:lease" || l.Lease.Duration != 2*time.Minute {
		t.Errorf("uri %q, lease %+v", l.Redis.URI, l.Lease)
	}
	if len(l.Warnings) > 0 {
		t.Errorf("warnings: %q", l.Warnings)
	}
}

func TestLoadReadsTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a.yml")
	if err := os.WriteFile(name, []byte("korvet.namespace: team1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := Load(Input{File: name})
	if err != nil {
		t.Fatal(err)
	}
	if l.Redis.Layout.Namespace != "team1" || l.Lease.Key != "team1:storage:offload:lease" {
		t.Errorf("namespace %q, lease key %q", l.Redis.Layout.Namespace, l.Lease.Key)
	}
	if s := l.setting(t, "korvet.namespace"); s.From != name+":1" || s.Source != "file" {
		t.Errorf("report %+v", s)
	}
	_, err = Load(Input{File: name + "x"})
	if err == nil || !strings.HasPrefix(err.Error(), "read settings file: open "+name+"x") {
		t.Errorf("missing file: %v", err)
	}
}

// Every setting can be given in every way, under each of its names, and lands
// in its field.
func TestEverySettingByEveryName(t *testing.T) {
	for _, r := range table() {
		text, more := example(r)
		for _, name := range r.names() {
			for how, in := range map[string]struct {
				in  Input
				yml string
			}{
				"file":         {Input{Environ: more}, name + ": " + quote(text)},
				"camel case":   {Input{Environ: more}, camel(name) + ": " + quote(text)},
				"environment":  {Input{Environ: append(more, variableOf(name)+"="+text)}, ""},
				"without dash": {Input{Environ: append(more, variableOf(strings.ReplaceAll(name, "-", ""))+"="+text)}, ""},
				"set":          {Input{Environ: more, Set: []string{name + "=" + text}}, ""},
			} {
				if how == "set" && r.kind == kindSecret {
					continue
				}
				in.in.File = "korvet.yml"
				l, err := load(in.in, []byte(in.yml))
				if err != nil {
					t.Errorf("%s by %s: %v", name, how, err)
					continue
				}
				var want Config
				if err := r.set(&want, text); err != nil {
					t.Fatal(err)
				}
				if got := r.value(&l.Config); got != r.value(&want) {
					t.Errorf("%s by %s: got %q, want %q", name, how, got, r.value(&want))
				}
			}
		}
	}
}

// example is a value of a setting that is not the default, and what else must
// be set for it to be right.
func example(r row) (text string, more []string) {
	last := lastPart(r.name)
	switch {
	case r.name == redisURI:
		return "rediss://example:6380/1", nil
	case r.name == "korvet.redis.ca-file":
		return "/ca.pem", []string{"KORVET_REDIS_URI=rediss://h"}
	case r.name == "korvet.redis.cert-file":
		return "/c.pem", []string{"KORVET_REDIS_URI=rediss+sentinel://h/m", "KORVET_REDIS_KEY_FILE=/k.pem"}
	case r.name == "korvet.redis.key-file":
		return "/k.pem", []string{"KORVET_REDIS_URI=rediss+sentinel://h/m", "KORVET_REDIS_CERT_FILE=/c.pem"}
	case r.name == workerFamily+"serve.cert-file":
		return "/c.pem", []string{"KORVET_STORAGE_OFFLOAD_SERVE_KEY_FILE=/k.pem"}
	case r.name == workerFamily+"serve.key-file":
		return "/k.pem", []string{"KORVET_STORAGE_OFFLOAD_SERVE_CERT_FILE=/c.pem"}
	case last == "cert-file":
		return "/c.pem", []string{"KORVET_STORAGE_OFFLOAD_HTTP_KEY_FILE=/k.pem"}
	case last == "key-file":
		return "/k.pem", []string{"KORVET_STORAGE_OFFLOAD_HTTP_CERT_FILE=/c.pem"}
	case r.name == "korvet.redis.sentinel.username":
		return "watcher", []string{"KORVET_REDIS_URI=redis+sentinel://h/m", "KORVET_REDIS_SENTINEL_PASSWORD=p"}
	case r.name == "korvet.redis.sentinel.password":
		return "p%@:/", []string{"KORVET_REDIS_URI=redis+sentinel://h/m"}
	case r.name == "korvet.storage.s3.ca-file":
		return "", nil
	case r.name == remotePath:
		return "s3://bucket/prefix", nil
	case last == "endpoint":
		return "https://minio.example:9000", nil
	case last == "access-key-id":
		return "AKIAEXAMPLE", []string{"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=k"}
	case last == "secret-access-key":
		return "k/+=", []string{"KORVET_STORAGE_S3_ACCESS_KEY_ID=a"}
	case last == "token":
		return "not to be guessed", nil
	case last == "session-token":
		return "t", []string{"KORVET_STORAGE_S3_ACCESS_KEY_ID=a", "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=k"}
	case last == "sse":
		return "AES256", nil
	case last == "sse-kms-key-id":
		return "arn:aws:kms:x", []string{"KORVET_STORAGE_S3_SSE=aws:kms"}
	case last == "storage-class":
		return "STANDARD_IA", nil
	case last == "page-reader":
		return redisstore.ReaderClient, nil
	case last == "address":
		return ":0", nil
	case last == "level":
		return "debug", nil
	case last == "format":
		return "json", nil
	case last == "lease-duration":
		return "3h", nil
	case last == "expire-unuploaded":
		return string(offload.Expire), nil
	case strings.Contains(r.name, ".layout."):
		return map[string]string{
			"topic": "x:{ns}:{topic}", "stream": "x:{ns}:{topic}:{partition}", "manifest": "x:{ns}:{topic}:{partition}",
			"segment-stream": "x:{ns}:{topic}:{partition}:{segment}", "stream-manifest": "x:{ns}:{key}",
		}[last] + map[string]string{"topics": "x:{ns}", "lease": "x:{ns}", "streams": "x:{ns}", "known": "x:{ns}", "members": "x:{ns}", "paused": "x:{ns}", "cluster": "x:{ns}"}[last], nil
	}
	return map[kind]string{kindText: "eu-west-1", kindPath: "/dir", kindSecret: "s", kindBool: "true", kindNumber: "7", kindDuration: "90s", kindSize: "48MB"}[r.kind], nil
}

func camel(name string) string {
	parts := strings.Split(name, "-")
	for i, p := range parts[1:] {
		parts[i+1] = strings.ToUpper(p[:1]) + p[1:]
	}
	return strings.Join(parts, "")
}

func TestTableIsSound(t *testing.T) {
	fields, names, flags := map[any]string{}, map[string]string{}, map[string]string{"config": "", "c": "", "set": "", "help": "", "output": ""}
	var c Config
	for _, r := range table() {
		if other, ok := fields[r.field(&c)]; ok {
			t.Errorf("%s and %s share a field", r.name, other)
		}
		fields[r.field(&c)] = r.name
		for _, n := range r.names() {
			// Two settings whose variables are the same could not be told apart.
			v := strings.ReplaceAll(variableOf(n), "_", "")
			if other, ok := names[v]; ok && other != r.name {
				t.Errorf("%s and %s share the variable %s", r.name, other, v)
			}
			names[v] = r.name
		}
		if _, ok := flags[r.flag]; ok && r.flag != "" {
			t.Errorf("the flag --%s is there twice", r.flag)
		}
		flags[r.flag] = r.name
		if r.kind == kindSecret && r.flag != "" {
			t.Errorf("%s is a secret and has a flag", r.name)
		}
		if r.help == "" || strings.Contains(r.help, "|") {
			t.Errorf("%s: help %q", r.name, r.help)
		}
	}
}

func TestAllFaultsAtOnce(t *testing.T) {
	got := faultsOf(t, Input{NeedStore: true, Environ: []string{"KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY=-1", "KORVET_REDIS_PASSWROD=x"},
		Flags: map[string]string{"page-size": "0"}, Set: []string{"korvet.storage.offload.sla=soon"}}, `
korvet:
  storage:
    offload:
      tick-interval: 2m
      leaseDuration: 30s
      concurency: 4
    s3.access-key-id: AKIA
`)
	wantFaults(t, got,
		`korvet.storage.offload.concurency (korvet.yml:7): there is no such setting; did you mean korvet.storage.offload.concurrency?`,
		`KORVET_REDIS_PASSWROD: there is no setting of this environment variable; did you mean KORVET_REDIS_PASSWORD?`,
		`korvet.storage.offload.spool-memory = "-1" (KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY): want a size of 0 or more, such as 64MB, 64MiB (the same) or 67108864 (bytes)`,
		`korvet.storage.offload.sla = "soon" (--set): want a duration of 0 or more, such as 90s, 1m, 2h, 7d or 60000 (milliseconds)`,
		`korvet.storage.offload.page-size = "0" (--page-size): want 1 to 1000000`,
		`korvet.storage.remote-path: it is required: s3://bucket/prefix or file:///dir, in the settings file, as KORVET_STORAGE_REMOTE_PATH or as --remote-path`,
		`korvet.storage.s3.access-key-id (korvet.yml:8), s3.secret-access-key: want both or none`,
		`korvet.storage.offload.lease-duration = "30s" (korvet.yml:6): must be longer than korvet.storage.offload.tick-interval = "2m" (korvet.yml:5)`,
	)
}

func TestLeaseAgainstTick(t *testing.T) {
	for _, tt := range []struct{ tick, lease, want string }{
		{"1m", "61s", ""},
		{"1m", "60s", `korvet.storage.offload.lease-duration = "60s" (--lease-duration): must be longer than korvet.storage.offload.tick-interval = "1m" (--tick-interval)`},
		{"5m", "", `korvet.storage.offload.lease-duration = "2m" (default): must be longer than korvet.storage.offload.tick-interval = "5m" (--tick-interval)`},
	} {
		in := Input{Flags: map[string]string{"tick-interval": tt.tick}}
		if tt.lease != "" {
			in.Flags["lease-duration"] = tt.lease
		}
		_, err := load(in, nil)
		if got := errText(err); got != tt.want {
			t.Errorf("tick %s, lease %s: %q, want %q", tt.tick, tt.lease, got, tt.want)
		}
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// What a package says of its settings is told under the full name, with the
// place and the text that was given.
func TestPackageErrorsAreFaults(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"korvet.namespace", "a{b", `want a text without { } and /`},
		{"korvet.redis.timeout", "0", `want 1ms or more`},
		{"korvet.redis.port", "70000", `want 1 to 65535`},
		{"korvet.redis.host", "redis://h", `want a server's name or address, without redis:// and without the port`},
		{"korvet.redis.uri", "http://h", `want redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path, or redis+sentinel://host[:port][,host[:port]...]/master-name for sentinels; in user and password write %xx for @ : / ? # and %`},
		{"korvet.redis.uri", "redis+sentinel://a:26379,b:26379", `want redis+sentinel://[user:password@]sentinel[:port][,sentinel[:port]...]/master-name[/database], or rediss+sentinel:// for TLS; user and password are those of the servers, with %xx for @ : / ? # and %`},
		{"korvet.redis.ca-file", "/x", `it has no effect without TLS: want a uri that begins with rediss:// or rediss+sentinel://`},
		{"korvet.redis.sentinel.username", "x", `it has no effect without sentinels: want a uri that begins with redis+sentinel:// or rediss+sentinel://`},
		{"korvet.storage.layout.lease", "", `it is empty`},
		{"korvet.storage.layout.manifest", "m: {topic}", `{partition} is missing`},
		{"korvet.storage.offload.page-reader", "fast", `want direct or client`},
		{"korvet.storage.offload.concurrency", "0", `want 1 to 1024`},
		{"korvet.storage.layout.stream-manifest", "m: ", `{key} is missing`},
		{"korvet.storage.layout.streams", "s: {key}", `{key} has no meaning here`},
		{"korvet.storage.offload.tick-interval", "0s", `want 1ms or more`},
		{"korvet.storage.offload.expire-unuploaded", "Hold", `want hold or expire`},
		{"korvet.storage.offload.wait-replicas", "-1", `want 0 or more`},
		{"korvet.storage.offload.spool-dir", "", `it is empty`},
		{"korvet.storage.offload.http.address", "9477", `want host:port, such as 127.0.0.1:9477 or :9477, or nothing to turn the server off`},
		{"korvet.storage.offload.log.level", "loud", `want one of debug, info, warn, error`},
		{"korvet.storage.offload.log.format", "xml", `want one of auto, console, json`},
		{"korvet.storage.s3.region", "EU west", `want a name like eu-west-1`},
		{"korvet.storage.s3.sse", "DES", `want AES256, aws:kms or nothing`},
		{"korvet.storage.remote-path", "ftp://x/y", `"ftp://x/y" is neither s3://bucket/prefix nor file:///folder`},
	} {
		got := faultsOf(t, Input{Environ: []string{variableOf(tt.name) + "=" + tt.text}}, "")
		wantFaults(t, got, tt.name+" = "+quote(tt.text)+" ("+variableOf(tt.name)+"): "+tt.want)
	}
}

func TestEmptyIsNotUnset(t *testing.T) {
	for yml, want := range map[string]string{
		`korvet.storage.offload.http.address: ""`: "",
		`korvet.storage.offload.http.address:`:    "127.0.0.1:9477",
		`korvet.storage.offload.http.address: ~`:  "127.0.0.1:9477",
		`korvet.storage.offload.http: {}`:         "127.0.0.1:9477",
		`korvet:`:                                 "127.0.0.1:9477",
		``:                                        "127.0.0.1:9477",
	} {
		if got := loadYAML(t, yml).Ops.Address; got != want {
			t.Errorf("%q: address %q, want %q", yml, got, want)
		}
	}
	if got := loadYAML(t, "", "KORVET_STORAGE_WORKER_HTTP_ADDRESS=").Ops.Address; got != "" {
		t.Errorf("empty variable: address %q, want none", got)
	}
}

func TestNeedStore(t *testing.T) {
	if _, err := load(Input{}, nil); err != nil {
		t.Errorf("a command without store: %v", err)
	}
	if _, err := load(Input{NeedStore: true, Flags: map[string]string{"remote-path": "file:///d"}}, nil); err != nil {
		t.Errorf("with remote-path: %v", err)
	}
}
