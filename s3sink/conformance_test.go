package s3sink_test

import (
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/memstore"
	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
	"korvet-offload/s3sink/storetest"
)

func TestS3(t *testing.T) {
	for name, opt := range map[string]s3server.Options{"http": {}, "https": {TLS: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s3server.Start(t, opt)
			storetest.Run(t, storetest.Suite{Large: 11 << 20, Open: func(t testing.TB, root, namespace string) s3sink.Store {
				return openS3(t, server, root, namespace)
			}, Lose: func(t testing.TB, root, key string) { removeFile(t, server.Dir, root, key) }})
			if left := unfinished(t, server); len(left) > 0 {
				t.Errorf("multipart uploads are left: %q", left)
			}
		})
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	storetest.Run(t, storetest.Suite{Large: 11 << 20, NoMeta: true, LateHash: true, Open: func(t testing.TB, root, namespace string) s3sink.Store {
		return openFiles(t, filepath.Join(dir, root), namespace)
	}, Lose: func(t testing.TB, root, key string) { removeFile(t, dir, root, key) }})
}

func TestMemory(t *testing.T) {
	roots := map[string]*memstore.Store{}
	storetest.Run(t, storetest.Suite{Large: 11 << 20, Open: func(_ testing.TB, root, namespace string) s3sink.Store {
		if roots[root] == nil {
			roots[root] = memstore.New(s3sink.Owner{Namespace: namespace})
			return roots[root]
		}
		return roots[root].As(s3sink.Owner{Namespace: namespace})
	}, Lose: func(_ testing.TB, root, key string) { roots[root].Lose(key) }})
}

func removeFile(t testing.TB, path ...string) {
	t.Helper()
	if err := os.Remove(filepath.Join(path...)); err != nil {
		t.Fatal(err)
	}
}

func s3Config(server *s3server.Server, root string) s3sink.Config {
	return s3sink.Config{
		URL: "s3://" + server.Bucket + "/" + root, Endpoint: server.Endpoint, Region: server.Region, CAFile: server.CAFile,
		AccessKeyID: server.Access, SecretAccessKey: server.Secret,
		MultipartThreshold: 6 << 20, PartSize: s3sink.MinPartSize,
	}
}

func openS3(t testing.TB, server *s3server.Server, root, namespace string) s3sink.Store {
	t.Helper()
	return mustOpen(t, s3Config(server, root), s3sink.Options{Owner: s3sink.Owner{Namespace: namespace}})
}

func openFiles(t testing.TB, dir, namespace string) s3sink.Store {
	t.Helper()
	u := url.URL{Scheme: "file", Path: dir}
	return mustOpen(t, s3sink.Config{URL: u.String()}, s3sink.Options{Owner: s3sink.Owner{Namespace: namespace}})
}

func mustOpen(t testing.TB, cfg s3sink.Config, opt s3sink.Options) s3sink.Store {
	t.Helper()
	store, err := s3sink.Open(cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// unfinished lists the parts that the server keeps of multipart uploads.
func unfinished(t testing.TB, server *s3server.Server) []string {
	t.Helper()
	var left []string
	err := filepath.WalkDir(filepath.Join(server.Dir, ".sgwtmp"), func(path string, e os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil
		}
		if err == nil && !e.IsDir() {
			left = append(left, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return left
}

// A folder that was claimed and has lost its marker is another folder, or a
// disk that is no longer mounted: nothing more is put there.
//
//fault:store | The folder of a folder store was removed, or its disk is not mounted | The folder is removed, and made again without its marker | Nothing is put there
func TestTheRootVanishes(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	s := openFiles(t, root, "korvet")
	if _, err := s.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	for _, again := range []func() error{func() error { return nil }, func() error { return os.Mkdir(root, 0o755) }} {
		if err := again(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Put(t.Context(), s3sink.Upload{Key: "a", Body: strings.NewReader("x"), Size: 1,
			SHA256: "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"})
		if s3sink.ClassOf(err) != s3sink.ClassNoBucket || !strings.Contains(err.Error(), "not mounted") {
			t.Errorf("put: %v", err)
		}
	}
}
