package test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// doctorMayLook is the statement of the documented policy that the doctor alone
// has a use for.
const doctorMayLook = "DoctorMayLook"

// golden compares what the doctor printed, without what differs from one
// machine to the next, with a file; UPDATE_GOLDEN=1 writes that.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, r := range []struct{ what, by string }{
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`Redis \d+\.\d+\.\d+`, "Redis VERSION"},
		{`\d+\.\d [KMGTP]iB in use, \d+ %`, "SOME in use, N %"},
		{`(?m)(settings\.spool +)\S.*$`, "${1}SPOOL"},
		{`about \S+ \S+ are needed`, "about SOME are needed"},
		{`this host's clock is (the same to a millisecond|[\dµms.]+ (ahead|behind))`, "this host's clock is NEAR"},
		{`_korvet_offload_doctor/[a-z0-9]+`, "_korvet_offload_doctor/RANDOM"},
	} {
		got = regexp.MustCompile(r.what).ReplaceAllString(got, r.by)
	}
	file := filepath.Join("testdata", "doctor", name+".txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

// mustBeClean checks that nothing of the doctor is left on the store.
func (r *rig) mustBeClean() {
	r.t.Helper()
	left, err := filepath.Glob(filepath.Join(r.s3.Dir, "korvet", "_korvet*", "*"))
	if err != nil || len(left) > 0 {
		r.t.Errorf("left: %q %v", left, err)
	}
	if n := r.parts(); n > 0 {
		r.t.Errorf("%d parts are left", n)
	}
}

func TestDoctorOfAGoodSetUp(t *testing.T) {
	r := &rig{t: t, redis: redisserver.Start(t, redisserver.Args("--appendonly", "yes", "--maxmemory", "200mb")),
		s3: s3server.Start(t, s3server.Options{TLS: true}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
	r.env = []string{"KORVET_STORAGE_S3_CA_FILE=" + r.s3.CAFile}
	r.topic("orders", 4)
	stdout, stderr, code := r.run("doctor")
	if code != 0 || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	golden(t, "good", stdout)
	r.mustBeClean()
	stdout, _, code = r.run("doctor", "--output", "json")
	v := decode[doctorResult](t, stdout)
	if code != 0 || !v.Complete || v.Count.Fail != 0 || len(v.Findings) != v.Count.OK+v.Count.Warn+v.Count.Skips {
		t.Errorf("exit %d: %+v", code, v)
	}
}

type doctorResult struct {
	Findings []struct{ ID, Area, Verdict, Seen, Do string }
	Count    struct{ OK, Warn, Fail, Skips int }
	Complete bool
}

// verdicts are the findings that are not ok, as "fail redis.policy".
func (v doctorResult) verdicts() map[string]bool {
	all := map[string]bool{}
	for _, f := range v.Findings {
		if f.Verdict != "ok" {
			all[f.Verdict+" "+f.ID] = true
		}
	}
	return all
}

// doctor runs it for the JSON that it prints.
func (r *rig) doctor(want int) doctorResult {
	r.t.Helper()
	stdout, stderr, code := r.run("doctor", "--output", "json")
	if code != want {
		r.t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	return decode[doctorResult](r.t, stdout)
}

// mustSay checks that there are these findings.
func (v doctorResult) mustSay(t *testing.T, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !v.verdicts()[w] {
			t.Errorf("no %q in %v", w, v.verdicts())
		}
	}
}

func TestDoctorOfABadSetUp(t *testing.T) {
	r := &rig{t: t, redis: redisserver.Start(t,
		redisserver.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--min-replicas-to-write", "0", "--timeout", "20", "--client-output-buffer-limit", "normal 1mb 0 0"),
		redisserver.Users(aclDefault, "user poor on >poor ~* &* +@all -unlink -xrange")),
		s3: s3server.Start(t, s3server.Options{Users: true}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
	r.topic("orders", 1, "local.retention.ms", "1000")
	r.redis.Exec("HSET", r.layout.TopicKey("odd"), "retention.ms", "soon")
	r.redis.Exec("SADD", r.layout.TopicsKey(), "odd")
	r.redis.Exec("SET", r.layout.LeaseKey(), "somebody")
	r.s3.AddUser(t, policyUser, policySecret)
	r.s3.SetPolicy(t, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["`+policyUser+`"]},"Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}]}`)
	r.env = []string{"KORVET_REDIS_URI=" + r.redis.UserURI("poor", "poor"), "KORVET_STORAGE_S3_ACCESS_KEY_ID=" + policyUser, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + policySecret,
		"KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=1", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=1h", "KORVET_STORAGE_S3_STORAGE_CLASS=GLACIER"}
	stdout, stderr, code := r.run("doctor")
	if code != 1 || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	golden(t, "bad", stdout)
	r.mustBeClean()
	if strings.Contains(stdout+stderr, policySecret) || strings.Contains(stdout+stderr, "poor@") {
		t.Error("a secret is shown")
	}
}

// What is away is the finding, and the rest is looked at all the same.
func TestDoctorWhenPartsAreAway(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	good := r.env
	r.env = slices.Concat(good, []string{"KORVET_REDIS_URI=redis://" + closedPort(t)})
	v := r.doctor(1)
	v.mustSay(t, "fail redis.reach", "skip settings.retention")
	if v.verdicts()["fail store.put"] || len(v.Findings) < 15 {
		t.Errorf("%+v", v)
	}
	r.env = slices.Concat(good, []string{"KORVET_STORAGE_S3_ENDPOINT=http://" + closedPort(t)})
	v = r.doctor(1)
	v.mustSay(t, "fail store.reach", "warn redis.persistence")
	r.env = slices.Concat(good, []string{"KORVET_STORAGE_REMOTE_PATH=s3://nobucket/x"})
	r.doctor(1).mustSay(t, "fail store.reach")
	r.env = slices.Concat(good, []string{"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=wrong"})
	r.doctor(1).mustSay(t, "fail store.reach")
	r.env = good
	if _, stderr, code := r.run("doctor", "--output", "xml"); code != 2 || !strings.Contains(stderr, "--output xml") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A Redis that is not what the settings say is looked at all the same, where
// that can be done.
func TestDoctorOfTheWrongRedis(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	good := r.env
	replica := redisserver.Start(t)
	replica.Exec("REPLICAOF", "127.0.0.1", "1")
	r.env = slices.Concat(good, []string{"KORVET_REDIS_URI=" + replica.URI()})
	r.doctor(1).mustSay(t, "fail redis.reach")
	r.env = slices.Concat(good, []string{"KORVET_REDIS_CLUSTER=true"})
	r.doctor(1).mustSay(t, "fail redis.mode", "warn redis.persistence")
	node := redisserver.Start(t, redisserver.Cluster(true))
	r.env = slices.Concat(good, []string{"KORVET_REDIS_URI=" + node.URI()})
	r.doctor(1).mustSay(t, "fail redis.mode", "warn redis.topics")
	r.env = slices.Concat(good, []string{"KORVET_STORAGE_OFFLOAD_WAIT_AOF=true"})
	r.doctor(1).mustSay(t, "fail redis.wait-aof", "warn redis.persistence")
}

func TestDoctorOfAFrozenRedis(t *testing.T) {
	r := newRig(t)
	r.env = append(r.env, "KORVET_REDIS_TIMEOUT=500ms")
	r.redis.Freeze()
	defer r.redis.Thaw()
	began := time.Now()
	r.doctor(1).mustSay(t, "fail redis.reach")
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("took %s", took)
	}
}

// Ctrl-C ends it, and what was put is removed first.
//
//fault:crash | The doctor is interrupted between putting an object and removing it | SIGINT while a proxy holds back the answer to a read | The object is removed, what was not looked at is said, exit 1
func TestDoctorIsInterrupted(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	endpoint, reading := heldReads(t, r.s3.Endpoint)
	r.env = append(r.env, "KORVET_STORAGE_S3_ENDPOINT="+endpoint)
	p := r.start("doctor")
	select {
	case <-reading:
	case <-time.After(20 * time.Second):
		t.Fatalf("nothing is read: %s", p.log())
	}
	p.signal(syscall.SIGINT)
	if code := p.wait(t, 20*time.Second); code != 1 || !strings.Contains(p.log(), "interrupted") ||
		!strings.Contains(p.stdout.String(), "store.cleanup            nothing is left") {
		t.Errorf("exit %d: %s\n%s", code, p.log(), p.stdout.String())
	}
	if r.s3.Requests(t)["PutObject"] != 1 {
		t.Errorf("%v", r.s3.Requests(t))
	}
	r.mustBeClean()
}

// heldReads stands before a store and holds back the answers to whoever reads
// a throw-away object; reading is closed when that happens first.
func heldReads(t *testing.T, endpoint string) (address string, reading chan struct{}) {
	t.Helper()
	reading = make(chan struct{})
	var once sync.Once
	return before(t, endpoint, func(_ http.ResponseWriter, req *http.Request) bool {
		if req.Method != http.MethodGet || !strings.Contains(req.URL.Path, "_korvet_offload_doctor/") {
			return false
		}
		once.Do(func() { close(reading) })
		<-req.Context().Done()
		return true
	}), reading
}

// before stands before a store, which gets what answer does not answer.
func before(t *testing.T, endpoint string, answer func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	u, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(u) // it keeps the host, which is signed
	proxy.Transport = &http.Transport{DisableKeepAlives: true}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if !answer(w, req) {
			proxy.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// A bucket whose rules are at odds with the topics, as the server of these
// tests can't have them.
//
//fault:store | The bucket's rules remove, hide or lock objects before their time | A proxy that answers for a real store: expiry after a day, an archive class, versions for ever, a lock of 30 days | The doctor and every start name the rule and the topic
func TestDoctorReadsTheRulesOfABucket(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1, "retention.ms", "604800000")
	says := map[string]string{
		"versioning":  `<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>`,
		"object-lock": `<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Days>30</Days></DefaultRetention></Rule></ObjectLockConfiguration>`,
		"encryption":  `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`,
		"lifecycle": `<LifecycleConfiguration><Rule><ID>short</ID><Status>Enabled</Status><Filter><Prefix>korvet/</Prefix></Filter><Expiration><Days>1</Days></Expiration>
<Transition><Days>1</Days><StorageClass>GLACIER</StorageClass></Transition></Rule></LifecycleConfiguration>`,
	}
	endpoint := before(t, r.s3.Endpoint, func(w http.ResponseWriter, req *http.Request) bool {
		for what, text := range says {
			if req.Method == http.MethodGet && req.URL.Query().Has(what) {
				_, _ = io.WriteString(w, text)
				return true
			}
		}
		return false
	})
	r.env = append(r.env, "KORVET_STORAGE_S3_ENDPOINT="+endpoint)
	v := r.doctor(1)
	v.mustSay(t, "fail store.expiry", "warn store.unfinished", "warn store.archive", "warn store.versioning", "warn store.lock")
	for _, f := range v.Findings {
		if f.ID == "store.expiry" && f.Seen != `rule "short" for "korvet/" removes objects after 1 day, and topic orders keeps them for 7 days` || f.ID == "store.encryption" && f.Seen != "aws:kms" {
			t.Errorf("%+v", f)
		}
	}
	r.mustBeClean()
	_, stderr, code := r.run("run", "--once")
	if code != 0 || strings.Count(stderr, "preflight: rule") != 2 || !strings.Contains(stderr, "4 warnings, 1 failure") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
}

// The documented users and roles are enough for the doctor, too.
func TestDoctorAsTheDocumentedUsers(t *testing.T) {
	r := newACLRig(t)
	r.topic("orders", 1)
	v := r.doctor(0)
	v.mustSay(t, "skip redis.timeout", "skip redis.output-buffer", "skip redis.min-replicas", "skip redis.persistence")
	for _, f := range v.Findings {
		if f.ID == "redis.timeout" && f.Do != "grant +config|get to see it" {
			t.Errorf("%+v", f)
		}
	}
	p, _ := newPolicyRig(t)
	if v := p.doctor(0); v.verdicts()["skip store.versioning"] || v.verdicts()["skip store.lock"] || v.verdicts()["skip store.uploads"] {
		t.Errorf("%v", v.verdicts())
	}
	p.s3.SetPolicy(t, withoutDoctor(t, p.s3.Bucket))
	p.doctor(0).mustSay(t, "skip store.versioning", "skip store.uploads")
	p.mustBeClean()
}

// withoutDoctor is the documented policy for the work alone.
func withoutDoctor(t *testing.T, bucket string) string {
	t.Helper()
	text, _ := documentedPolicy(t, bucket)
	var p struct {
		Version   string
		Statement []map[string]any
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	kept := p.Statement[:0]
	for _, s := range p.Statement {
		if s["Sid"] != doctorMayLook {
			kept = append(kept, s)
		}
	}
	if len(kept) == len(p.Statement) {
		t.Fatalf("no statement %s", doctorMayLook)
	}
	p.Statement = kept
	out, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// Every start looks at what is cheap, and says what is not right, once.
func TestPreflight(t *testing.T) {
	r := &rig{t: t, redis: redisserver.Start(t, redisserver.Args("--maxmemory", "100mb")), s3: s3server.Start(t, s3server.Options{}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
	r.topic("orders", 1)
	if stdout, stderr, code := r.run("run", "--once"); code != 0 || stderr != "" {
		t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_WAIT_REPLICAS=1")
	_, stderr, code := r.run("run", "--once")
	if code != 0 || strings.Count(stderr, `preflight: 0 replicas in step, wait-replicas 1`) != 1 || !strings.Contains(stderr, `"check":"redis.replicas"`) ||
		!strings.Contains(stderr, "ok, 0 warnings, 1 failure; run korvet-offload doctor for all") {
		t.Errorf("exit %d\n%s", code, stderr)
	}
	d := r.ticking()
	await(t, "it looked", 20*time.Second, func() bool { return strings.Contains(d.worker.log(), "run korvet-offload doctor for all") })
	d.worker.signal(syscall.SIGTERM)
	if code := d.worker.wait(t, 20*time.Second); code != 0 || strings.Count(d.worker.log(), "wait-replicas 1") != 1 || strings.Count(d.worker.log(), "doctor for all") != 1 {
		t.Errorf("exit %d\n%s", code, d.worker.log())
	}
}

// A Redis, or a store, that does not answer does not hold a start up.
func TestPreflightDoesNotWait(t *testing.T) {
	r := newRig(t)
	r.topic("orders", 1)
	r.env = append(r.env, "KORVET_STORAGE_S3_ENDPOINT=http://"+blackHole(t))
	d := &running{rig: r, address: closedPort(t)}
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+d.address)
	d.worker = r.start("run")
	await(t, "it looked", 30*time.Second, func() bool { return strings.Contains(d.worker.log(), "run korvet-offload doctor for all") })
	d.mustLive()
}
