package s3server_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"korvet-offload/internal/testkit/s3server"
)

func TestServersSideBySide(t *testing.T) {
	a, b := s3server.Start(t, s3server.Options{}), s3server.Start(t, s3server.Options{TLS: true})
	if a.Endpoint == b.Endpoint || a.Dir == b.Dir || b.CAFile == "" {
		t.Errorf("%+v\n%+v", a, b)
	}
	res, err := http.Get(a.Endpoint + "/" + a.Bucket)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusOK {
		t.Error("anybody may list the bucket")
	}
	var n int
	for _, count := range a.Requests(t) {
		n += count
	}
	if n != 1 || len(b.Requests(t)) != 0 {
		t.Errorf("requests: %v, %v", a.Requests(t), b.Requests(t))
	}
	a.AddBucket(t, "second")
	if _, err := os.Stat(filepath.Join(filepath.Dir(a.Dir), "second")); err != nil {
		t.Error(err)
	}
	a.Stop()
	if _, err := http.Get(a.Endpoint); err == nil {
		t.Error("it still answers")
	}
}

func TestPutAndRemove(t *testing.T) {
	s := s3server.Start(t, s3server.Options{})
	s.Put(t, "a b/c:0/1.parquet", []byte("body"))
	file := filepath.Join(s.Dir, "a b/c:0/1.parquet")
	if got, err := os.ReadFile(file); err != nil || string(got) != "body" {
		t.Errorf("%q, %v", got, err)
	}
	s.Remove(t, "a b/c:0/1.parquet")
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAccessLog(t *testing.T) {
	s := s3server.Start(t, s3server.Options{})
	log := s.LogAccess(t)
	for range 2 {
		res, err := http.Get(log.Endpoint + "/" + s.Bucket + "/a b")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	log.Wait(t, 2)
	got := log.Take()
	if len(got) != 2 || got[0].Method != http.MethodGet || got[0].Path != "/bucket/a b" || got[0].Status != http.StatusForbidden || got[0].Sent == 0 {
		t.Errorf("%+v", got)
	}
	if rest := log.Take(); len(rest) != 0 {
		t.Errorf("%+v is told twice", rest)
	}
}
