package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/config"
	"korvet-offload/internal/doctor"
	"korvet-offload/internal/redisstore"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestDoctorText(t *testing.T) {
	got := doctorText([]doctor.Finding{
		{ID: "redis.role", Verdict: doctor.OK, Seen: "primary"},
		{ID: "redis.policy", Verdict: doctor.Fail, Seen: "allkeys-lru", Do: "set it"},
		{ID: "store.lock", Verdict: doctor.Skipped, Seen: "it may not be asked", Do: "grant it"},
		{ID: "store.tls", Verdict: doctor.Warn, Seen: "http", Do: "use https"},
	})
	want := lines(
		"OK    redis.role    primary",
		"FAIL  redis.policy  allkeys-lru",
		"        do: set it",
		"SKIP  store.lock    it may not be asked",
		"        do: grant it",
		"WARN  store.tls     http",
		"        do: use https", "")
	if got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := tallyText(doctor.Count{OK: 2, Warn: 1, Fail: 3, Skips: 4}); got != "2 ok, 1 warning, 3 failed, 4 skipped" {
		t.Error(got)
	}
}

func TestDoctorJSON(t *testing.T) {
	r := call(t, newRig(t).environ, "doctor", "--output", "json")
	want := lines("complete bool", "count.fail float64", "count.ok float64", "count.skips float64", "count.warn float64",
		"findings[].area string", "findings[].do string", "findings[].id string", "findings[].seen string", "findings[].verdict string")
	if got := shape(t, r.stdout); r.code != exitDone || r.stderr != "" || got != want {
		t.Errorf("exit %d, stderr %q, fields\n%s", r.code, r.stderr, got)
	}
}

// A topic's objects lie below this, whatever the partition.
func TestFolderOf(t *testing.T) {
	l := segment.DefaultLayout()
	for _, tt := range []struct {
		topic segment.Topic
		want  string
	}{
		{segment.Topic{Name: "orders10"}, "korvet:storage:local:orders10:"},
		{segment.Topic{Name: "a/b", Plain: true}, l.Folder(segment.Partition{Topic: "a/b", Plain: true})},
	} {
		if got := folderOf(l, tt.topic); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.topic.Name, got, tt.want)
		}
	}
}

func TestRetentionsAreWhatTheStoreSees(t *testing.T) {
	cfg := config.DefaultConfig()
	of := func(ms int64) segment.Topic {
		t := segment.Topic{Name: "t", Settings: segment.DefaultTopicSettings()}
		t.Settings.RetentionMs = ms
		return t
	}
	facts := s3sink.Facts{Bucket: &s3sink.BucketFacts{Prefix: "root/"}}
	got := retentions(cfg, facts, []segment.Topic{of(-1), of(1000), of(1 << 62)})
	for i, want := range []time.Duration{0, time.Second, maxRetention} {
		if got[i].Total != want || got[i].Prefix != "root/korvet:storage:local:t:" {
			t.Errorf("%+v, want %s", got[i], want)
		}
	}
	if retentions(cfg, facts, nil) != nil || retentions(cfg, s3sink.Facts{Folder: &s3sink.FolderFacts{}}, []segment.Topic{}) != nil {
		t.Error("topics that are not known, or a folder, have retentions")
	}
}

func TestOffloadedTopics(t *testing.T) {
	on, off := segment.Topic{Name: "on"}, segment.Topic{Name: "off"}
	on.Settings.RemoteStorage = true
	broken := on
	broken.Err = segment.ErrTopicSetting
	got := offloaded(redisstore.Facts{Registry: redisstore.RegistrySet, Topics: []segment.Topic{on, off, broken}})
	if len(got) != 1 || got[0].Name != "on" {
		t.Errorf("%+v", got)
	}
	if offloaded(redisstore.Facts{}) != nil || offloaded(redisstore.Facts{Registry: redisstore.RegistrySet, NoTopics: segment.ErrTopicSetting}) != nil {
		t.Error("nothing is known, and it says so")
	}
	if got := offloaded(redisstore.Facts{Registry: redisstore.RegistryNone}); got == nil || len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestLeaseKeys(t *testing.T) {
	cfg := config.DefaultConfig()
	if got := leaseKeys(cfg.Lease); len(got) != 1 || got[0] != cfg.Redis.Layout.LeaseKey() {
		t.Errorf("%q", got)
	}
	cfg.Lease.Shards = 2
	if got := strings.Join(leaseKeys(cfg.Lease), " "); got != "korvet:storage:offload:lease:0/2 korvet:storage:offload:lease:1/2" {
		t.Errorf("%q", got)
	}
}

func TestDoctorNamesTheLeader(t *testing.T) {
	r := newRig(t)
	l := segment.DefaultLayout()
	r.server.Exec("SET", l.LeaseKey(), "token", "PX", "60000")
	r.server.Exec("HSET", l.MembersKey(), "host-1234", fmt.Sprintf(`{"v":1,"host":"host","seenAt":%d,"shards":[0],"of":1}`, time.Now().UnixMilli()), "odd", "nonsense")
	if r := call(t, r.environ, "doctor"); !strings.Contains(r.stdout, "is held by instance host-1234 for another ") {
		t.Errorf("%+v", r)
	}
}

// preflightOf runs the look of a start at a rig, with some settings changed, and
// returns what was logged.
func preflightOf(t *testing.T, change func(*config.Config)) (doctor.Count, []observer.LoggedEntry) {
	t.Helper()
	r := newRig(t)
	loaded, err := config.Load(config.Input{Environ: r.environ, NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	cfg := loaded.Config
	change(&cfg)
	s, err := redisstore.Open(t.Context(), cfg.Redis, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	core, logs := observer.New(zapcore.DebugLevel)
	return preflight(t.Context(), cfg, s, zap.New(core)), logs.All()
}

func TestPreflightSaysWhatIsNotRight(t *testing.T) {
	c, logged := preflightOf(t, func(*config.Config) {})
	if len(logged) > 0 || c.OK < 8 || c.Warn+c.Fail > 0 {
		t.Errorf("%+v %+v", c, logged)
	}
	c, logged = preflightOf(t, func(cfg *config.Config) {
		cfg.Redis.WaitReplicas = 3
		cfg.Store.StorageClass = "GLACIER"
	})
	if len(logged) != 2 || c.Fail != 2 || logged[0].Level != zapcore.WarnLevel || logged[0].ContextMap()["check"] != "redis.replicas" ||
		!strings.HasPrefix(logged[0].Message, "preflight: ") || logged[1].ContextMap()["advice"] == "" {
		t.Errorf("%+v %+v", c, logged)
	}
	if got, want := preflightSum(doctor.Count{OK: 1, Warn: 2, Fail: 1}), "preflight: 1 check ok, 2 warnings, 1 failure; run korvet-offload doctor for all"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDoctorWithoutAPlace(t *testing.T) {
	r := newRig(t)
	got := call(t, r.environ[:1], "doctor")
	if got.code != exitFault || !strings.Contains(got.stdout, "FAIL  store.reach             korvet.storage.remote-path is not set\n") ||
		!strings.Contains(got.stdout, "OK    redis.topics ") || !strings.Contains(got.stdout, "settings.lease") || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

// A folder that Redis knows of is not made anew in the place of its mount.
func TestDoctorSeesThatAFolderIsNotMounted(t *testing.T) {
	r := newRig(t)
	place := strings.TrimPrefix(r.environ[1], "KORVET_STORAGE_REMOTE_PATH=file://")
	if got := call(t, r.environ, "run", "--once"); got.code != exitDone {
		t.Fatalf("%+v", got)
	}
	if got := call(t, r.environ, "doctor"); got.code != exitDone {
		t.Errorf("%+v", got)
	}
	marker, err := filepath.Glob(filepath.Join(place, "_korvet*"))
	if err != nil || len(marker) != 1 {
		t.Fatal(marker, err)
	}
	for _, tt := range []struct{ gone, word string }{
		{marker[0], " has no owner marker, and redis knows of objects that should be there, as of segment orders:0/"},
		{place, " is not there, and redis knows of objects"},
	} {
		if err := os.Rename(tt.gone, filepath.Join(t.TempDir(), "away")); err != nil {
			t.Fatal(err)
		}
		got := call(t, r.environ, "doctor")
		if got.code != exitFault || !strings.Contains(got.stdout, place+tt.word) || strings.Contains(got.stdout, "make the folder") {
			t.Errorf("%s: %+v", tt.word, got)
		}
	}
}

// A topic that was worked on may have had nothing to copy yet.
func TestDoctorRemembersTopics(t *testing.T) {
	r := newRig(t)
	environ := []string{r.environ[0], r.environ[1] + "/missing"}
	if got := call(t, environ, "doctor"); got.code != exitDone || !strings.Contains(got.stdout, "/missing is not there yet: the first upload makes it") {
		t.Errorf("%+v", got)
	}
	r.server.Exec("HSET", segment.DefaultLayout().KnownKey(), "orders", "{}")
	if got := call(t, environ, "doctor"); got.code != exitDone || !strings.Contains(got.stdout, "/missing is not there, and redis knows of 1 topic that it has worked on: not mounted?") {
		t.Errorf("%+v", got)
	}
}
