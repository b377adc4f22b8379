package s3sink_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
)

func uploadsOf(t *testing.T, s s3sink.Store) (keys []string, all []s3sink.Unfinished) {
	t.Helper()
	for u, err := range s.(s3sink.Sweeper).Uploads(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		keys, all = append(keys, u.Key), append(all, u)
	}
	slices.Sort(keys)
	return keys, all
}

//fault:store | Unfinished uploads pile up | Ten uploads in parts whose process is gone, others beside the prefix, a real server | Those below the prefix are listed with their ages, and go; no other is touched
func TestSweepingUnfinishedUploads(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	s := openS3(t, server, "korvet", "korvet")
	if keys, _ := uploadsOf(t, s); len(keys) != 0 {
		t.Errorf("%q at first", keys)
	}
	for n := range 10 {
		server.BeginUpload(t, fmt.Sprintf("korvet/a/%d.parquet", n/2))
	}
	foreign := []string{"korvet2/a/0.parquet", "a/0.parquet", "other"}
	for _, key := range foreign {
		server.BeginUpload(t, key)
	}
	keys, all := uploadsOf(t, s)
	if len(keys) != 10 || keys[0] != "a/0.parquet" || keys[9] != "a/4.parquet" {
		t.Fatalf("%q", keys)
	}
	now, err := s.(s3sink.Sweeper).Now(t.Context())
	if err != nil || time.Since(now).Abs() > 3*time.Second {
		t.Errorf("the store's clock shows %s, %v", now, err)
	}
	for _, u := range all {
		if age := now.Sub(u.Begun); age < -2*time.Second || age > time.Minute {
			t.Errorf("%+v is %s old", u, age)
		}
		for range 2 { // again is as good as once
			if err := s.(s3sink.Sweeper).AbortUpload(t.Context(), u); err != nil {
				t.Errorf("abort %+v: %v", u, err)
			}
		}
	}
	if keys, _ := uploadsOf(t, s); len(keys) != 0 {
		t.Errorf("%q are left", keys)
	}
	if keys, _ := uploadsOf(t, openS3(t, server, "", "korvet")); len(keys) != len(foreign) {
		t.Errorf("of others: %q", keys)
	}
	if err := os.RemoveAll(server.Dir); err != nil {
		t.Fatal(err)
	}
	if err := s.(s3sink.Sweeper).AbortUpload(t.Context(), all[0]); err == nil {
		t.Error("without the bucket the upload counts as given up")
	}
	if _, err := s.(s3sink.Sweeper).Now(t.Context()); err == nil {
		t.Error("without the bucket the clock is told")
	}
}

func TestFoldersHaveNoUploads(t *testing.T) {
	s := openFiles(t, filepath.Join(t.TempDir(), "x"), "korvet")
	now, err := s.(s3sink.Sweeper).Now(t.Context())
	if keys, _ := uploadsOf(t, s); len(keys) != 0 || err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("%q, %s, %v", keys, now, err)
	}
	if err := s.(s3sink.Sweeper).AbortUpload(t.Context(), s3sink.Unfinished{Key: "a"}); err != nil {
		t.Error(err)
	}
}

// Whatever a store answers, the listing ends, and gives nothing that is not below
// the root.
func TestUploadListingsThatMakeNoSense(t *testing.T) {
	const head = `<?xml version="1.0"?><ListMultipartUploadsResult>`
	one := func(key, id string) string {
		return "<Upload><Key>" + key + "</Key><UploadId>" + id + "</UploadId><Initiated>2026-01-01T00:00:00Z</Initiated></Upload>"
	}
	for name, c := range map[string]struct {
		pages []string
		want  []string
		class s3sink.Class
	}{
		"two pages":            {[]string{"<IsTruncated>true</IsTruncated><NextKeyMarker>k/a</NextKeyMarker><NextUploadIdMarker>1</NextUploadIdMarker>" + one("k/a", "1"), one("k/b", "2")}, []string{"a", "b"}, ""},
		"no marker":            {[]string{"<IsTruncated>true</IsTruncated>" + one("k/a", "1")}, []string{"a"}, s3sink.ClassOther},
		"the same page":        {[]string{"<IsTruncated>true</IsTruncated><NextKeyMarker>k/a</NextKeyMarker>" + one("k/a", "1")}, []string{"a", "a"}, s3sink.ClassOther},
		"the prefix is missed": {[]string{one("other/a", "1") + one("k/", "2") + one("k/c", "") + one("k/d", "4")}, []string{"d"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := 0
			stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if _, ok := r.URL.Query()["uploads"]; !ok {
					return
				}
				page := c.pages[min(n, len(c.pages)-1)]
				n++
				fmt.Fprint(w, head+page+"</ListMultipartUploadsResult>")
			}))
			defer stub.Close()
			s := mustOpen(t, s3sink.Config{URL: "s3://bucket/k", Endpoint: stub.URL, Region: "us-east-1", AccessKeyID: "a", SecretAccessKey: "b"}, s3sink.Options{})
			var keys []string
			var failed error
			for u, err := range s.(s3sink.Sweeper).Uploads(t.Context()) {
				if failed = err; err == nil {
					keys = append(keys, u.Key)
				}
			}
			if !slices.Equal(keys, c.want) || s3sink.ClassOf(failed) != c.class {
				t.Errorf("%q, %v", keys, failed)
			}
		})
	}
}

var errAway = errors.New("away")

// clusterStub is a Redis with an id.
type clusterStub struct {
	id    string
	asked []string
	err   error
}

func (c *clusterStub) Accepts(_ context.Context, id string) error {
	c.asked = append(c.asked, id)
	if id != c.id {
		return s3sink.ErrOtherCluster
	}
	return c.err
}

func (c *clusterStub) ID(context.Context) (string, error) { return c.id, nil }

func TestMarkersWithACluster(t *testing.T) {
	server := s3server.Start(t, s3server.Options{})
	dir := t.TempDir()
	for name, open := range map[string]func(root string, c s3sink.Cluster) s3sink.Store{
		"s3": func(root string, c s3sink.Cluster) s3sink.Store {
			return mustOpen(t, s3Config(server, root), s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet", Cluster: c}})
		},
		"file": func(root string, c s3sink.Cluster) s3sink.Store {
			u := url.URL{Scheme: "file", Path: filepath.Join(dir, root)}
			return mustOpen(t, s3sink.Config{URL: u.String()}, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet", Cluster: c}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			first := &clusterStub{id: "one"}
			if _, err := open("new", first).CreateOnly(t.Context()); err != nil {
				t.Fatal(err)
			}
			m, err := s3sink.ReadMarker(t.Context(), open("new", nil))
			if err != nil || m.Namespace != "korvet" || m.Cluster != "one" || time.Since(m.Created).Abs() > time.Minute {
				t.Fatalf("%+v, %v", m, err)
			}
			for range 2 { // whoever comes later reads it
				again := open("new", first)
				if _, err := again.CreateOnly(t.Context()); err != nil {
					t.Error(err)
				}
				if err := again.CheckOwner(t.Context()); err != nil {
					t.Error(err)
				}
			}
			other := open("new", &clusterStub{id: "two"})
			_, err = other.CreateOnly(t.Context())
			for what, err := range map[string]error{"claim": err, "check": other.CheckOwner(t.Context())} {
				if s3sink.ClassOf(err) != s3sink.ClassInvalid || !strings.Contains(err.Error(), s3sink.MarkerKey) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := open("new", &clusterStub{id: "one", err: errAway}).CheckOwner(t.Context()); s3sink.ClassOf(err) != s3sink.ClassOther {
				t.Errorf("redis is away: %v", err)
			}
			if err := open("new", nil).CheckOwner(t.Context()); err != nil {
				t.Errorf("without a cluster: %v", err)
			}
		})
	}
}

// A marker of an older version names no cluster, and is left as it is.
func TestMarkersOfOlderVersions(t *testing.T) {
	dir := t.TempDir()
	old := `{"v":1,"namespace":"korvet","created":"2026-01-01T00:00:00Z"}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, s3sink.MarkerKey), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	stub := &clusterStub{id: "one"}
	s := mustOpen(t, s3sink.Config{URL: "file://" + dir}, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet", Cluster: stub}})
	if _, err := s.CreateOnly(t.Context()); err != nil || len(stub.asked) != 0 {
		t.Errorf("%v, asked %q", err, stub.asked)
	}
	now, err := os.ReadFile(filepath.Join(dir, s3sink.MarkerKey))
	if err != nil || string(now) != old {
		t.Errorf("%s, %v", now, err)
	}
	empty, err := s3sink.ReadMarker(t.Context(), openFiles(t, t.TempDir(), "korvet"))
	if err != nil || empty != (s3sink.Marker{}) {
		t.Errorf("%+v, %v", empty, err)
	}
	sum := sha256.Sum256(nil)
	if err := os.WriteFile(filepath.Join(dir, s3sink.MarkerKey), []byte(hex.EncodeToString(sum[:])), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s3sink.ReadMarker(t.Context(), s); s3sink.ClassOf(err) != s3sink.ClassInvalid {
		t.Errorf("no marker: %v", err)
	}
}
