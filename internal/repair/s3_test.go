package repair

import (
	"os"
	"path/filepath"
	"testing"

	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// on S3 an object can rot while size, ETag and checksum are told as before; only
// its bytes show it.
func TestOnS3(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	r := newRigOn(t, s3sink.Config{URL: "s3://" + server.Bucket + "/root", Endpoint: server.Endpoint, Region: server.Region,
		AccessKeyID: server.Access, SecretAccessKey: server.Secret}, segment.Partition{Topic: "orders"})
	r.write(4)
	r.move()
	r.dir = filepath.Join(server.Dir, "root")
	for n := range segment.Number(4) {
		if n != 1 {
			body, err := os.ReadFile(filepath.Join(r.dir, r.path(n, 0)))
			if err != nil {
				t.Fatal(err)
			}
			rot(t, filepath.Join(r.dir, r.path(n, 0)), flipped(body))
		}
	}
	before := r.files()
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Recopy, Done)
	if e := r.entry(0); e.Object.Path != r.path(0, 1) || e.Object.ETag == "" {
		t.Errorf("the entry is %s", e.Encode())
	}
	r.local(1)
	r.want(r.repair(Options{Yes: true}, r.finding(1, scrub.SourceMissing)), Reflip, Done)
	r.local(2)
	r.want(r.repair(Options{Yes: true}, r.finding(2, scrub.SourceMissing)), Leave, Left) // it has rotted
	r.forget(3)
	r.server.Exec("DEL", r.key(3))
	r.want(r.repair(Options{Yes: true, IncludeExpired: true}, r.finding(3, scrub.Orphan)), Leave, Left)
	r.wantKept(before)
	r.wantReadable(0, 1)
}

// rot changes the bytes of a file and nothing else that its server keeps of it.
func rot(t *testing.T, file string, body []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(body, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
