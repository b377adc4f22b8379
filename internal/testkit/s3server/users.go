package s3server

import (
	"context"
	"net/url"
	"os/exec"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// AddUser makes a user who may do nothing until a policy of the bucket says
// otherwise. The server was started with Options.Users and without TLS.
func (s *Server) AddUser(t testing.TB, access, secret string) {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(bin, "admin", "--access", s.Access, "--secret", s.Secret, "--region", s.Region, "--endpoint-url", s.Endpoint,
		"create-user", "--access", access, "--secret", secret, "--role", "user").CombinedOutput()
	if err != nil {
		t.Fatalf("add user %s: %v: %s", access, err, out)
	}
}

// SetPolicy gives the bucket a policy.
func (s *Server) SetPolicy(t testing.TB, policy string) {
	t.Helper()
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: credentials.NewStaticV4(s.Access, s.Secret, ""), Region: s.Region})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.SetBucketPolicy(context.Background(), s.Bucket, policy); err != nil {
		t.Fatalf("set the policy of the bucket: %v", err)
	}
}
