package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const clusterKey = "korvet:storage:offload:cluster"

func (r rig) root() string {
	return strings.TrimPrefix(r.environ[1], "KORVET_STORAGE_REMOTE_PATH=file://")
}

// marker is what the root's owner marker names.
func (r rig) marker(t *testing.T) (m struct{ Namespace, Cluster string }) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.root(), s3sink.MarkerKey))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// setMarker puts the marker of another cluster; "" = one as older versions have.
func (r rig) setMarker(t *testing.T, cluster string) {
	t.Helper()
	text := `{"v":1,"namespace":"korvet","created":"2026-01-01T00:00:00Z"}`
	if cluster != "" {
		text = `{"v":1,"namespace":"korvet","cluster":"` + cluster + `","created":"2026-01-01T00:00:00Z"}`
	}
	if err := os.WriteFile(filepath.Join(r.root(), s3sink.MarkerKey), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r rig) cluster() string { return strings.TrimSpace(r.server.Exec("GET", clusterKey)) }

// The first upload gives Redis its id, and nothing before it.
func TestTheFirstUploadClaims(t *testing.T) {
	rig := newRig(t)
	for _, verb := range []string{"status", "run --once --dry-run", "doctor"} {
		call(t, rig.environ, strings.Fields(verb)...)
		if got := rig.cluster(); got != "" {
			t.Errorf("%s has given redis the id %q", verb, got)
		}
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	if id := rig.cluster(); len(id) < 20 || rig.marker(t).Cluster != id || rig.marker(t).Namespace != "korvet" {
		t.Errorf("redis is %q, the marker says %+v", id, rig.marker(t))
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	mustRead(t, call(t, rig.environ, "gc"), exitDone, "", "nothing to delete")
	if r := call(t, rig.environ, "doctor"); !strings.Contains(r.stdout, "namespace korvet of this redis") {
		t.Errorf("%+v", r)
	}
}

//fault:redis | Redis was emptied, or is another one, and the root is that of before | FLUSHALL, or another id, before run, run --once and gc | Exit code 2 at the start, with what to do; nothing is written to Redis, and every object stays
func TestWhoseRootItIs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, rig rig)
		want   string // what the start says; "" = it goes on
		after  string // id of Redis; "*" = the marker's
		doctor string
	}{
		"ours":         {func(*testing.T, rig) {}, "", "*", "of this redis"},
		"emptied":      {func(_ *testing.T, rig rig) { rig.server.Exec("FLUSHALL") }, "restore --manifests", "", "FAIL  store.owner"},
		"another id":   {func(_ *testing.T, rig rig) { rig.server.Exec("SET", clusterKey, "other") }, `redis is cluster "other"`, "other", "FAIL  store.owner"},
		"the id alone": {func(_ *testing.T, rig rig) { rig.server.Exec("DEL", clusterKey) }, "", "*", "takes the cluster id over"},
		"older marker": {func(t *testing.T, rig rig) { rig.setMarker(t, ""); rig.server.Exec("DEL", clusterKey) }, "", "", "namespace korvet"},
		"older marker, emptied": {func(t *testing.T, rig rig) { rig.setMarker(t, ""); rig.server.Exec("FLUSHALL") },
			"-", "", "namespace korvet"},
	} {
		t.Run(name, func(t *testing.T) {
			rig := newRig(t)
			mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
			id := rig.marker(t).Cluster
			c.change(t, rig)
			if r := call(t, rig.environ, "doctor"); !strings.Contains(r.stdout, c.doctor) {
				t.Errorf("doctor lacks %q:\n%s", c.doctor, r.stdout)
			}
			before := rig.server.Exec("DBSIZE")
			for _, verb := range []string{"run --once", "run", "gc", "gc --yes"} {
				if verb == "run" && c.want == "" || c.want == "-" {
					continue
				}
				r := call(t, append(rig.environ, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=127.0.0.1:0"), strings.Fields(verb)...)
				if c.want == "" {
					mustRead(t, r, exitDone, "")
				} else if r.code != exitUsage || !strings.Contains(r.stderr, c.want) || !strings.Contains(r.stderr, "restore --claim") {
					t.Fatalf("%s: %+v", verb, r) // and a daemon that does start does not end
				}
			}
			if after := rig.server.Exec("DBSIZE"); c.want != "" && c.want != "-" && after != before {
				t.Errorf("there were %s keys and are %s", before, after)
			}
			if c.after == "*" {
				c.after = id
			}
			if got := rig.cluster(); got != c.after {
				t.Errorf("redis is %q, want %q", got, c.after)
			}
		})
	}
}

// A user who may not read the id is told so, and the namespace decides.
func TestAUserWhoMayNotReadTheID(t *testing.T) {
	rig := newRig(t)
	rig.server.Exec("ACL", "SETUSER", "old", "on", ">pw", "+@all", "~korvet:topic*", "~korvet:streams", "~korvet:storage:local:*", "~korvet:storage:manifest:*",
		"~korvet:storage:offload:topics", "~korvet:storage:offload:members", "~korvet:storage:offload:paused", "~korvet:storage:offload:lease*")
	environ := []string{"KORVET_REDIS_URI=" + rig.server.UserURI("old", "pw"), rig.environ[1]}
	for range 2 {
		r := call(t, environ, "run", "--once")
		if r.code != exitDone || !strings.Contains(r.stderr, "+get ~"+clusterKey) {
			t.Errorf("%+v", r)
		}
	}
	if got := rig.marker(t); got.Cluster != "" || rig.cluster() != "" {
		t.Errorf("%+v", got)
	}
	if r := call(t, environ, "gc"); r.code != exitDone || !strings.Contains(r.stderr, "is told by the namespace alone") {
		t.Errorf("%+v", r)
	}
	rig.setMarker(t, "somebody")
	if r := call(t, environ, "run", "--once"); r.code != exitDone {
		t.Errorf("%+v", r)
	}
}

// keeper is a Redis of which a test says what it answers.
type keeper struct {
	id     string
	topics int
	err    error // of every call
}

func (k *keeper) ClusterID(context.Context) (string, error) { return k.id, k.err }

func (k *keeper) ClaimClusterID(_ context.Context, id string) (string, error) {
	if k.err == nil && k.id == "" {
		k.id = id
	}
	return k.id, k.err
}

func (k *keeper) SwapClusterID(_ context.Context, old, new string) (bool, error) {
	if k.err != nil || k.id != old {
		return false, k.err
	}
	k.id = new
	return true, nil
}

func (k *keeper) Known(context.Context) (map[string]string, error) {
	known := map[string]string{}
	for n := range k.topics {
		known[string(rune('a'+n))] = "{}"
	}
	return known, k.err
}

// A Redis that is emptied after its topics were read has no records that count.
func TestRecordsOfAnEmptiedRedis(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	s := sessionOf(t, rig.environ, quiet{})
	if _, err := s.store.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	records := ownKnown{redisStore{s.redis}, s.owner}
	if known, err := records.Known(t.Context()); err != nil || len(known) != 1 {
		t.Errorf("%v, %v", known, err)
	}
	rig.server.Exec("DEL", "korvet:storage:offload:topics") // nothing is remembered
	if _, err := records.Known(t.Context()); err != nil {
		t.Error(err)
	}
	rig.server.Exec("FLUSHALL")
	if _, err := records.Known(t.Context()); !errors.Is(err, offload.ErrDataLost) {
		t.Errorf("emptied: %v", err)
	}
}

// At a start without the store an emptied Redis becomes one of its own, before the
// first pass makes it look as if it remembered topics.
func TestAStartWithoutTheStore(t *testing.T) {
	emptied := &keeper{}
	first := &cluster{redis: emptied}
	first.settle(t.Context())
	emptied.topics = 3                                      // a pass was made
	for _, c := range []*cluster{first, {redis: emptied}} { // and another instance
		if err := c.Accepts(t.Context(), "marker's"); !errors.Is(err, s3sink.ErrOtherCluster) || !strings.Contains(err.Error(), "restore --claim") {
			t.Errorf("emptied: %v", err)
		}
	}
	if id, err := first.ID(t.Context()); err != nil || id != emptied.id || id == "" {
		t.Errorf("a new root gets %q, %v", id, err)
	}

	older := &keeper{topics: 1}
	c := &cluster{redis: older}
	c.settle(t.Context())
	if err := c.Accepts(t.Context(), "marker's"); err != nil || older.id != "marker's" {
		t.Errorf("it remembers topics: %v, %q", err, older.id)
	}

	away := &keeper{err: &redisstore.Error{Op: "GET", Class: redisstore.Unavailable, Err: errors.New("away")}}
	c = &cluster{redis: away}
	c.settle(t.Context())
	*away = keeper{topics: 1}
	if err := c.Accepts(t.Context(), "marker's"); err == nil || errors.Is(err, s3sink.ErrOtherCluster) || away.id != "" {
		t.Errorf("it did not say what it remembers: %v, %q", err, away.id)
	}
	away.id = "marker's"
	if err := c.Accepts(t.Context(), "marker's"); err != nil {
		t.Errorf("it is the same one: %v", err)
	}
}

// topics is a registry with one topic.
type topics struct{ offload.Registry }

func (topics) Topics(context.Context) ([]segment.Topic, error) {
	return []segment.Topic{{Name: "orders"}}, nil
}

// A root that this process has taken for its own is looked at in each pass.
func TestARootThatIsLostMeanwhile(t *testing.T) {
	k := &keeper{id: "one", topics: 1}
	c := &cluster{redis: k}
	r := ownRegistry{topics{}, c}
	read := func(what string, lost bool) {
		t.Helper()
		got, err := r.Topics(t.Context())
		if errors.Is(err, offload.ErrDataLost) != lost || (len(got) == 1) == lost {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	k.id = "two"
	read("nothing is claimed yet", false)
	k.id = "one"
	if err := c.Accepts(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	read("its own", false)
	k.id = ""
	read("only the id is lost", false)
	if k.id != "one" {
		t.Errorf("the id is %q", k.id)
	}
	k.id, k.topics = "", 0
	read("emptied", true)
	k.id = "two"
	read("another one", true)
	k.id = "one"
	read("claimed again", false)
}

func TestRedisThatDoesNotSayWhichItIs(t *testing.T) {
	for class, refused := range map[redisstore.Class]bool{redisstore.Permission: false, redisstore.Unavailable: true, redisstore.WrongType: true} {
		c := &cluster{redis: &keeper{err: &redisstore.Error{Op: "GET", Class: class, Err: errors.New("no")}}}
		err := c.Accepts(t.Context(), "x")
		if (err != nil) != refused || errors.Is(err, s3sink.ErrOtherCluster) {
			t.Errorf("%s: %v", class, err)
		}
		if id, err := c.ID(t.Context()); (err != nil) != refused || id != "" {
			t.Errorf("%s: %q, %v", class, id, err)
		}
	}
}

func TestClaimCluster(t *testing.T) {
	rig := newRig(t)
	s := sessionOf(t, rig.environ, quiet{})
	claim := func(act bool, was, is string, want error) {
		t.Helper()
		if w, i, err := s.claimCluster(t.Context(), act); w != was || i != is || !errors.Is(err, want) {
			t.Errorf("%q, %q, %v", w, i, err)
		}
	}
	claim(true, "", "", errNoMarker)
	rig.setMarker(t, "")
	claim(true, "", "", errNoClusterName)
	rig.setMarker(t, "one")
	claim(false, "", "one", nil)
	if got := rig.cluster(); got != "" {
		t.Errorf("without act: %q", got)
	}
	claim(true, "", "one", nil)
	claim(true, "one", "one", nil)
	rig.setMarker(t, "two")
	claim(false, "one", "two", nil)
	claim(true, "one", "two", nil)
	if got := rig.cluster(); got != "two" {
		t.Errorf("claimed: %q", got)
	}
	if err := checkOwner(t.Context(), s.store); err != nil {
		t.Error(err)
	}
	s.cfg.Redis.Layout.Namespace = "another"
	if _, _, err := s.claimCluster(t.Context(), true); !errors.As(err, new(cmdline.UsageError)) {
		t.Errorf("another namespace: %v", err)
	}
	for _, k := range []*keeper{{id: "three"}, {id: "four"}} {
		if err := setCluster(t.Context(), k, map[string]string{"three": "", "four": "five"}[k.id], "one"); !errors.Is(err, errClusterRaced) {
			t.Errorf("%+v: %v", k, err)
		}
	}
}

// The demo leaves no id behind.
func TestTheDemoLeavesNoID(t *testing.T) {
	server := redisserver.Start(t)
	mustRead(t, call(t, nil, "demo", "--messages", "160", "--dir", t.TempDir(), "--redis-uri", server.URI()), exitDone, "", "12 sealed segments moved")
	if got := strings.TrimSpace(server.Exec("KEYS", "*")); got != "" {
		t.Errorf("left: %q", got)
	}
}
