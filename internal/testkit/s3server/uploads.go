package s3server

import (
	"bytes"
	"net/url"
	"slices"
	"testing"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

func (s *Server) core(t testing.TB) *minio.Core {
	t.Helper()
	u, err := url.Parse(s.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	c, err := minio.NewCore(u.Host, &minio.Options{Creds: credentials.NewStaticV4(s.Access, s.Secret, ""), Region: s.Region})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// BeginUpload begins an upload in parts, sends one, and leaves it there, as a
// process does that is killed. It returns the upload's id. The server was started
// without TLS.
func (s *Server) BeginUpload(t testing.TB, key string) string {
	t.Helper()
	c := s.core(t)
	id, err := c.NewMultipartUpload(t.Context(), s.Bucket, key, minio.PutObjectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	part := bytes.NewReader(make([]byte, 1000))
	if _, err := c.PutObjectPart(t.Context(), s.Bucket, key, id, 1, part, part.Size(), minio.PutObjectPartOptions{}); err != nil {
		t.Fatal(err)
	}
	return id
}

// Unfinished are the ids of all uploads that were begun and not finished, sorted.
func (s *Server) Unfinished(t testing.TB) (ids []string) {
	t.Helper()
	all, err := s.core(t).ListMultipartUploads(t.Context(), s.Bucket, "", "", "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range all.Uploads {
		ids = append(ids, u.UploadID)
	}
	slices.Sort(ids)
	return ids
}
