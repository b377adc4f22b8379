package s3sink_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
)

func openInspector(t *testing.T, cfg s3sink.Config) s3sink.Inspector {
	t.Helper()
	in, err := s3sink.OpenInspector(cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.Close)
	return in
}

// outcomes are what came of the steps: "" where all is well.
func outcomes(t s3sink.Trials) map[s3sink.Step]string {
	all := map[s3sink.Step]string{}
	for _, one := range t.Done {
		switch {
		case one.Err == nil:
			all[one.Step] = ""
		case one.IsUntried():
			all[one.Step] = "untried"
		case s3sink.ClassOf(one.Err) == s3sink.ClassOther:
			all[one.Step] = one.Err.Error()
		default:
			all[one.Step] = string(s3sink.ClassOf(one.Err))
		}
	}
	return all
}

// empty checks that nothing is left in a folder but files with these names.
func empty(t *testing.T, dir string, but ...string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, ".sgwtmp") {
			return err
		}
		for _, name := range but {
			if d.Name() == name {
				return nil
			}
		}
		t.Errorf("%s is left", path)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInspectGoodBucket(t *testing.T) {
	for name, opt := range map[string]s3server.Options{"http": {}, "https": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			server := s3server.Start(t, opt)
			in := openInspector(t, s3Config(server, "korvet"))
			f := in.Inspect(t.Context())
			b := f.Bucket
			if b == nil || f.Folder != nil || b.Reach != nil || f.Owner.Err != nil || f.Owner.Value != (s3sink.Marker{}) {
				t.Fatalf("%+v %+v", f, b)
			}
			if b.Prefix != "korvet/" || b.Secure != opt.TLS || b.Region != server.Region || b.Skew.Err != nil || b.Skew.Value.Abs() > 2*time.Second {
				t.Errorf("%+v", b)
			}
			for what, err := range map[string]error{"versioning": b.Versioning.Err, "lifecycle": b.Lifecycle.Err, "lock": b.Lock.Err, "encryption": b.Encryption.Err, "uploads": b.Uploads.Err} {
				if err != nil && s3sink.ClassOf(err) != s3sink.ClassUnsupported {
					t.Errorf("%s: %v", what, err)
				}
			}
			tried := in.Try(t.Context())
			for step, what := range outcomes(tried) {
				if what != "" {
					t.Errorf("%s: %s", step, what)
				}
			}
			if len(tried.Done) != 10 || len(tried.Left) > 0 {
				t.Errorf("%d steps, left %q", len(tried.Done), tried.Left)
			}
			empty(t, server.Dir)
			if left := unfinished(t, server); len(left) > 0 {
				t.Errorf("multipart uploads are left: %q", left)
			}
		})
	}
}

func TestInspectSeesTheOwner(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	store := openS3(t, server, "korvet", "other")
	if _, err := store.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := openInspector(t, s3Config(server, "korvet")).Inspect(t.Context()); f.Owner.Value.Namespace != "other" || f.Owner.Err != nil {
		t.Errorf("%+v", f.Owner)
	}
}

func TestInspectBadBuckets(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	nowhere := s3Config(server, "korvet")
	nowhere.URL = "s3://nobucket/korvet"
	wrongKey := s3Config(server, "korvet")
	wrongKey.SecretAccessKey = "wrong"
	away := s3Config(server, "korvet")
	away.Endpoint = "http://127.0.0.1:1"
	for class, cfg := range map[s3sink.Class]s3sink.Config{
		s3sink.ClassNoBucket: nowhere, s3sink.ClassCredentials: wrongKey, s3sink.ClassUnavailable: away,
	} {
		in := openInspector(t, cfg)
		if f := in.Inspect(t.Context()); s3sink.ClassOf(f.Bucket.Reach) != class {
			t.Errorf("%s: %v", class, f.Bucket.Reach)
		}
		for _, one := range in.Try(t.Context()).Done {
			if one.Err == nil || strings.Contains(one.Err.Error(), "wrong ") {
				t.Errorf("%s: %s: %v", class, one.Step, one.Err)
			}
		}
	}
}

func TestTryAsReader(t *testing.T) {
	server := s3server.Start(t, s3server.Options{Users: true})
	server.AddUser(t, "READER", "reader-secret-0123456789")
	server.SetPolicy(t, `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":["READER"]},
"Action":["s3:GetObject","s3:ListBucket"],"Resource":["arn:aws:s3:::bucket","arn:aws:s3:::bucket/*"]}]}`)
	cfg := s3Config(server, "korvet")
	cfg.AccessKeyID, cfg.SecretAccessKey = "READER", "reader-secret-0123456789"
	in := openInspector(t, cfg)
	if f := in.Inspect(t.Context()); f.Bucket.Reach != nil {
		t.Errorf("%v", f.Bucket.Reach)
	}
	tried := in.Try(t.Context())
	const denied, untried = string(s3sink.ClassDenied), "untried"
	want := map[s3sink.Step]string{
		s3sink.StepPut: denied, s3sink.StepHead: "", s3sink.StepGet: "", s3sink.StepList: "", s3sink.StepCreateOnly: untried,
		s3sink.StepChecksum: denied, s3sink.StepParts: denied, s3sink.StepPartsOnly: untried, s3sink.StepAbort: denied, s3sink.StepDelete: denied,
	}
	for step, got := range outcomes(tried) {
		if got != want[step] {
			t.Errorf("%s: %q, want %q", step, got, want[step])
		}
	}
	if len(tried.Left) > 0 {
		t.Errorf("left %q", tried.Left)
	}
}

// A caller that gives up does not leave anything behind.
func TestTryCleansUpAfterCancel(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cfg := s3Config(server, "korvet")
	in, err := s3sink.OpenInspector(cfg, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	seen := make(chan struct{})
	go func() {
		defer close(seen)
		for ctx.Err() == nil && server.Requests(t)["PutObject"] == 0 {
			<-time.After(time.Millisecond)
		}
		cancel()
	}()
	tried := in.Try(ctx)
	<-seen
	if len(tried.Left) > 0 || !tried.Done[len(tried.Done)-2].IsUntried() {
		t.Errorf("%+v", tried)
	}
	empty(t, server.Dir)
}

func TestInspectFolder(t *testing.T) {
	dir := t.TempDir()
	in := openInspector(t, s3sink.Config{URL: "file://" + dir})
	f := in.Inspect(t.Context())
	if f.Bucket != nil || f.Folder.Reach != nil || f.Folder.Missing || f.Folder.Space.Err != nil || f.Folder.Space.Value.Total == 0 || f.Folder.Type == "" || f.Folder.ReadOnly {
		t.Errorf("%+v", f.Folder)
	}
	tried := in.Try(t.Context())
	for step, what := range outcomes(tried) {
		if what != "" {
			t.Errorf("%s: %s", step, what)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 || len(tried.Left) > 0 || len(tried.Done) != 9 {
		t.Errorf("%v %v %+v", left, err, tried)
	}
}

func TestInspectFolderThatIsNotThere(t *testing.T) {
	dir := t.TempDir()
	in := openInspector(t, s3sink.Config{URL: "file://" + dir + "/new"})
	if f := in.Inspect(t.Context()); f.Folder.Reach != nil || !f.Folder.Missing {
		t.Errorf("%+v", f.Folder)
	}
	for _, one := range in.Try(t.Context()).Done {
		if !errors.Is(one.Err, s3sink.ErrNotYet) || !one.IsUntried() {
			t.Errorf("%s: %v", one.Step, one.Err)
		}
	}
	if _, err := os.Stat(dir + "/new"); err == nil {
		t.Error("the folder was made")
	}
	in = openInspector(t, s3sink.Config{URL: "file://" + dir + "/no/where"})
	if f := in.Inspect(t.Context()); s3sink.ClassOf(f.Folder.Reach) != s3sink.ClassNoBucket {
		t.Errorf("%+v", f.Folder)
	}
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	in = openInspector(t, s3sink.Config{URL: "file://" + dir + "/file"})
	if f := in.Inspect(t.Context()); s3sink.ClassOf(f.Folder.Reach) != s3sink.ClassInvalid {
		t.Errorf("%+v", f.Folder)
	}
}

func TestInspectTmpfs(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		t.Fatal("/dev/shm is not there: mount a tmpfs")
	}
	dir, err := os.MkdirTemp("/dev/shm", "korvet-offload-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if f := openInspector(t, s3sink.Config{URL: "file://" + dir}).Inspect(t.Context()); f.Folder.Type != "tmpfs" || f.Folder.Mount {
		t.Errorf("%+v", f.Folder)
	}
	if f := openInspector(t, s3sink.Config{URL: "file:///dev/shm"}).Inspect(t.Context()); !f.Folder.Mount {
		t.Errorf("%+v", f.Folder)
	}
}
