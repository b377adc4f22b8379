package s3sink_test

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

// fill makes n empty objects below a root, and returns their keys.
func fill(t testing.TB, server *s3server.Server, root string, n int) []string {
	t.Helper()
	dir := filepath.Join(server.Dir, root, "korvet:storage:local:orders:0")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	keys := make([]string, n)
	for i := range keys {
		name := fmt.Sprintf("%d.parquet", i)
		keys[i] = filepath.Base(dir) + "/" + name
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

func mustDelete(t testing.TB, store s3sink.Store, keys []string) {
	t.Helper()
	for i, err := range store.Delete(t.Context(), keys) {
		if err != nil {
			t.Fatalf("delete %q: %v", keys[i], err)
		}
	}
}

func mustBeEmpty(t *testing.T, store s3sink.Store) {
	t.Helper()
	for info, err := range store.List(t.Context(), "") {
		t.Fatalf("left is %q, %v", info.Key, err)
	}
}

// withoutBatches puts a proxy before a server that takes none.
func withoutBatches(t testing.TB, server *s3server.Server) s3sink.Config {
	return forward(t, server, func(p *httputil.ProxyRequest) {
		if p.In.Method == http.MethodPost {
			p.Out.Method = http.MethodPatch // which the server does not know
		}
	}, nil)
}

// TestDeleteRequests counts what deletions cost.
func TestDeleteRequests(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	store := openS3(t, server, "front", "korvet")
	mustDelete(t, store, fill(t, server, "front", 2500))
	if got := server.Requests(t); got["DeleteObjects"] != 3 || got["DeleteObject"] != 0 {
		t.Errorf("requests: %v", got)
	}
	mustBeEmpty(t, store)

	store = mustOpen(t, withoutBatches(t, server), s3sink.Options{})
	mustDelete(t, store, fill(t, server, "front", 50))
	if got := server.Requests(t); got["DeleteObjects"] != 3 || got["DeleteObject"] != 50 {
		t.Errorf("requests: %v", got)
	}
	mustBeEmpty(t, store)
}

//fault:store | The bucket is gone when objects are to be deleted | The folder of a real server is moved away | No object counts as deleted
func TestDeleteInABucketThatIsGone(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	store := openS3(t, server, "root", "korvet")
	keys := fill(t, server, "root", 3)
	if err := os.Rename(server.Dir, server.Dir+"-moved"); err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]string{keys, keys[:1]} {
		for i, err := range store.Delete(t.Context(), batch) {
			if s3sink.ClassOf(err) != s3sink.ClassNoBucket {
				t.Errorf("delete %q: %v", batch[i], err)
			}
		}
	}
}

// TestDeleteLocked: a real server keeps one object of three.
//
//fault:store | One object of three is locked | A real server with a retention period | It stays and is named, the others go
func TestDeleteLocked(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	endpoint, err := url.Parse(server.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	admin, err := minio.New(endpoint.Host, &minio.Options{Creds: credentials.NewStaticV4(server.Access, server.Secret, "")})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.MakeBucket(t.Context(), "locked", minio.MakeBucketOptions{ObjectLocking: true}); err != nil {
		t.Fatal(err)
	}
	cfg := s3Config(server, "")
	cfg.URL = "s3://locked/root"
	store := mustOpen(t, cfg, s3sink.Options{})
	keys := []string{"a", "b", "c"}
	for _, key := range keys {
		if _, err := store.Put(t.Context(), storetest.Upload(key, nil)); err != nil {
			t.Fatal(err)
		}
	}
	mode, until := minio.Governance, time.Now().Add(time.Hour)
	if err := admin.PutObjectRetention(t.Context(), "locked", "root/b", minio.PutObjectRetentionOptions{Mode: &mode, RetainUntilDate: &until}); err != nil {
		t.Fatal(err)
	}
	for _, batch := range [][]string{keys, {"b"}} {
		for i, err := range store.Delete(t.Context(), batch) {
			if batch[i] != "b" && err != nil || batch[i] == "b" && s3sink.ClassOf(err) != s3sink.ClassLocked {
				t.Errorf("delete %q: %v", batch[i], err)
			}
		}
	}
	if _, err := store.Stat(t.Context(), "b"); err != nil {
		t.Errorf("what is locked: %v", err)
	}
}

// BenchmarkDelete tells what 2,500 objects cost: in batches, in a store
// without them, and in a folder.
func BenchmarkDelete(b *testing.B) {
	const n = 2500
	server := s3server.Start(b, s3server.Options{})
	for name, store := range map[string]s3sink.Store{
		"batch":  openS3(b, server, "front", "korvet"),
		"single": mustOpen(b, withoutBatches(b, server), s3sink.Options{}),
		"folder": openFiles(b, filepath.Join(server.Dir, "front"), "korvet"),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				keys := fill(b, server, "front", n)
				b.StartTimer()
				mustDelete(b, store, keys)
			}
		})
	}
}
