package test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/segment"
)

// The documented policy is one of a role. The S3 server of the tests knows
// policies of a bucket, which say the same of a named user.
const (
	policyUser   = "WORKERACCESSKEY"
	policySecret = "worker-secret-key-0123456789"
)

// policyActions are the actions of a statement of the documented policy that the
// program needs for its work.
func policyActions(t *testing.T, policy map[string]any) []string {
	t.Helper()
	var all []string
	for _, s := range policy["Statement"].([]any) {
		if s.(map[string]any)["Sid"] == doctorMayLook {
			continue
		}
		for _, a := range s.(map[string]any)["Action"].([]any) {
			all = append(all, a.(string))
		}
	}
	if !slices.Contains(all, "s3:PutObject") {
		t.Fatalf("actions %q", all)
	}
	return all
}

// documentedPolicy is the documentation's policy for this bucket and user,
// without some actions.
func documentedPolicy(t *testing.T, bucket string, without ...string) (policy string, actions []string) {
	t.Helper()
	raw, err := os.ReadFile("../docs/iam/s3-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	raw = bytes.ReplaceAll(bytes.ReplaceAll(raw, []byte("BUCKET"), []byte(bucket)), []byte("PREFIX"), []byte("korvet"))
	p := map[string]any{}
	if err := json.Unmarshal(raw, &p); err != nil {
		t.Fatal(err)
	}
	actions = policyActions(t, p)
	var kept []any
	for _, s := range p["Statement"].([]any) {
		statement := s.(map[string]any)
		statement["Principal"] = map[string]any{"AWS": []string{policyUser}}
		statement["Action"] = slices.DeleteFunc(statement["Action"].([]any), func(a any) bool { return slices.Contains(without, a.(string)) })
		if len(statement["Action"].([]any)) > 0 {
			kept = append(kept, statement)
		}
	}
	p["Statement"] = kept
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(text), actions
}

// newPolicyRig is a rig whose programs may do what the policy says, with a
// segment for a single put, one for a multipart upload, and all to be dropped
// and deleted at once.
func newPolicyRig(t *testing.T, without ...string) (r *rig, actions []string) {
	t.Helper()
	r = &rig{t: t, redis: redisserver.Start(t), s3: s3server.Start(t, s3server.Options{Users: true, Region: "eu-west-1"}), layout: segment.DefaultLayout(), ledger: map[string]written{}}
	r.s3.AddUser(t, policyUser, policySecret)
	policy, actions := documentedPolicy(t, r.s3.Bucket, without...)
	r.s3.SetPolicy(t, policy)
	r.env = []string{
		"KORVET_STORAGE_S3_REGION=", // it is asked for
		"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + policyUser, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + policySecret,
		"KORVET_STORAGE_S3_MULTIPART_THRESHOLD=5MB", "KORVET_STORAGE_S3_PART_SIZE=5MB", "KORVET_STORAGE_OFFLOAD_DELETE_GRACE=0",
	}
	r.topic("orders", 1)
	r.sealed(segment.Partition{Topic: "orders"}, 0, 100)
	r.sealed(segment.Partition{Topic: "orders"}, 1, 80_000)
	return r, actions
}

func TestDocumentedPolicySuffices(t *testing.T) {
	r, _ := newPolicyRig(t)
	pass := func(args ...string) {
		t.Helper()
		if stdout, stderr, code := r.run(args...); code != 0 || stderr != "" {
			t.Fatalf("%s: exit %d\n%s%s", args, code, stdout, stderr)
		}
	}
	pass("config", "check", "--connect")
	pass("run", "--once")
	r.mustBeDone()
	if n := r.s3.Requests(t)["CompleteMultipartUpload"]; n == 0 {
		t.Errorf("no object went up in parts: %v", r.s3.Requests(t))
	}
	r.redis.Exec("HSET", r.layout.TopicKey("orders"), "local.retention.ms", "0")
	pass("run", "--once")
	for key, e := range r.entries() {
		if e.Local != segment.Gone {
			t.Errorf("%s: %+v", key, e)
		}
	}
	r.redis.Exec("HSET", r.layout.TopicKey("orders"), "retention.ms", "1")
	pass("run", "--once")
	pass("run", "--once")
	if left := r.objects(); len(left) > 0 {
		t.Errorf("left on the store: %q", left)
	}
}

// What becomes of the work without any one of its actions.
//
//fault:store | The role lacks a right | each action of the documented policy taken away in turn, at a real server that knows policies | what is refused is named with the right that is missing; nothing is lost or removed on a guess
func TestDocumentedPolicyHasNothingToSpare(t *testing.T) {
	_, actions := documentedPolicy(t, "bucket")
	misses := map[string]func(*rig, string){
		"s3:GetObject":            (*rig).mustNotCopy,
		"s3:PutObject":            (*rig).mustNotCopy,
		"s3:DeleteObject":         (*rig).mustNotDelete,
		"s3:AbortMultipartUpload": (*rig).mustLeaveParts,
		"s3:ListBucket":           (*rig).mustNotList,
		"s3:GetBucketLocation":    (*rig).mustGuessRegion,
	}
	for _, action := range actions {
		miss, known := misses[action]
		if !known {
			t.Errorf("%s: what is it for?", action)
			continue
		}
		t.Run(strings.TrimPrefix(action, "s3:"), func(t *testing.T) {
			r, _ := newPolicyRig(t, action)
			miss(r, action)
		})
	}
}

// mustNotCopy: segments stay LOCAL, and are copied when the right is there.
func (r *rig) mustNotCopy(action string) {
	r.t.Helper()
	_, stderr, code := r.run("run", "--once")
	if code != 1 || !strings.Contains(stderr, "allow "+action) {
		r.t.Errorf("exit %d, %s", code, stderr)
	}
	for key, e := range r.entries() {
		if e.Tier != segment.Local {
			r.t.Errorf("%s: %+v", key, e)
		}
		r.mustBeInRedis(r.ledger[key])
	}
	r.allowAll()
	if stdout, stderr, code := r.run("run", "--once"); code != 0 {
		r.t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	r.mustBeDone()
}

// allowAll gives the user the whole documented policy.
func (r *rig) allowAll() {
	r.t.Helper()
	policy, _ := documentedPolicy(r.t, r.s3.Bucket)
	r.s3.SetPolicy(r.t, policy)
}

// mustNotDelete: the entry stays as long as the object does.
func (r *rig) mustNotDelete(action string) {
	r.t.Helper()
	r.redis.Exec("HSET", r.layout.TopicKey("orders"), "local.retention.ms", "0")
	r.run("run", "--once")
	r.run("run", "--once")
	r.redis.Exec("HSET", r.layout.TopicKey("orders"), "retention.ms", "1")
	r.run("run", "--once")
	_, stderr, code := r.run("run", "--once")
	if code != 1 || !strings.Contains(stderr, action) {
		r.t.Errorf("exit %d, %s", code, stderr)
	}
	for key, e := range r.entries() {
		if e.State != segment.Deleting || e.Object == nil {
			r.t.Errorf("%s: %+v", key, e)
		}
	}
	if left := r.objects(); len(left) != len(r.ledger) {
		r.t.Errorf("on the store: %q", left)
	}
}

// mustLeaveParts: an upload that came second is not forgotten.
func (r *rig) mustLeaveParts(string) {
	r.t.Helper()
	for _, want := range []bool{true, false} {
		if !want {
			r.allowAll()
		}
		number := segment.Number(len(r.ledger))
		r.sealed(segment.Partition{Topic: "orders"}, number, 80_000)
		path := fmt.Sprintf("%s/%s.parquet", r.layout.Folder(segment.Partition{Topic: "orders"}), number)
		taken := filepath.Join(r.root(), path)
		if err := os.MkdirAll(filepath.Dir(taken), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(taken, []byte("somebody else's"), 0o600); err != nil {
			r.t.Fatal(err)
		}
		before := r.parts()
		if stdout, stderr, code := r.run("run", "--once"); code != 0 {
			r.t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
		}
		if left := r.parts() > before; left != want {
			r.t.Errorf("parts are left: %v, want %v", left, want)
		}
	}
}

// parts counts the parts that the server keeps of unfinished uploads.
func (r *rig) parts() (n int) {
	r.t.Helper()
	err := filepath.WalkDir(filepath.Join(r.s3.Dir, ".sgwtmp", "multipart"), func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.t.Fatal(err)
	}
	return n
}

// mustNotList: all the work is done, and the check says what it would be for.
func (r *rig) mustNotList(action string) {
	r.t.Helper()
	if stdout, stderr, code := r.run("config", "check", "--connect"); code != 0 || !strings.Contains(stdout, "allow "+action) {
		r.t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	if stdout, stderr, code := r.run("run", "--once"); code != 0 {
		r.t.Errorf("exit %d\n%s%s", code, stdout, stderr)
	}
	r.mustBeDone()
}

// mustGuessRegion: this server takes requests for any region. What is said where
// one does not is tried in s3sink.
func (r *rig) mustGuessRegion(string) {
	r.t.Helper()
	if stdout, stderr, code := r.run("run", "--once"); code != 0 || r.s3.Requests(r.t)["GetBucketLocation"] == 0 {
		r.t.Errorf("exit %d, %v\n%s%s", code, r.s3.Requests(r.t), stdout, stderr)
	}
	r.mustBeDone()
}

// The policy of the bucket says who may not; this server does not know its
// conditions, so that it is only looked at.
func TestDocumentedBucketPolicyDeniesOnly(t *testing.T) {
	raw, err := os.ReadFile("../docs/iam/bucket-policy.json")
	if err != nil {
		t.Fatal(err)
	}
	policy := decode[struct {
		Statement []struct {
			Effect    string
			Action    any
			Resource  any
			Condition map[string]any
		}
	}](t, string(raw))
	if len(policy.Statement) != 2 {
		t.Fatalf("%+v", policy)
	}
	for _, s := range policy.Statement {
		if s.Effect != "Deny" || len(s.Condition) != 1 || !strings.Contains(fmt.Sprint(s.Resource), "arn:aws:s3:::BUCKET/") {
			t.Errorf("%+v", s)
		}
	}
}
