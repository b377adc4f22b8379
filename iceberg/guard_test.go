package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/iceberg-go/io"

	"korvet-offload/s3sink"
)

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		remote, place   string
		holds, overlaps bool
	}{
		{"s3://b/p", "s3://b/p", true, true},
		{"s3://b/p", "s3a://b/p/", true, true},
		{"s3://b/p", "s3n://b//p/x", true, true},
		{"s3://b/p", "s3://b/q/../p/x", true, true},
		{"s3://b/p", "s3://b/pp", false, false},
		{"s3://b/p", "s3://b", false, true},
		{"s3://b/p", "s3://b/", false, true},
		{"s3://b/p/q", "s3://b/p", false, true},
		{"s3://b/p", "s3://c/p", false, false},
		{"s3://b", "s3://b/anything", true, true},
		{"s3a://b/p/", "s3://b/p/x", true, true},
		{"file:///d/o", "file:///d/o", true, true},
		{"file:///d/o", "/d/o/x", true, true},
		{"file:///d/o", "file:/d/o/x", true, true},
		{"file:///d/o", "file://localhost/d/o/x", true, true},
		{"file:///d/o", "file:///d", false, true},
		{"file:///d/o", "file:///", false, true},
		{"file:///d/o", "file:///d/p", false, false},
		{"file:///d/o", "file:///d/%6f", true, true},
		{"file:///d/o", "%zz", true, true}, // what can't be told is refused
		{"file:///d/o", "s3://b/d/o", false, false},
	} {
		r, err := rootOf(tt.remote)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.holds(tt.place); got != tt.holds {
			t.Errorf("%s holds %s: %t", tt.remote, tt.place, got)
		}
		if got := r.overlaps(tt.place); got != tt.overlaps {
			t.Errorf("%s overlaps %s: %t", tt.remote, tt.place, got)
		}
	}
}

func TestLocations(t *testing.T) {
	for _, tt := range []struct{ remote, key, want string }{
		{"s3://b", "korvet:x:0/7.parquet", "s3://b/korvet:x:0/7.parquet"},
		{"s3a://b/p/", "korvet:x:0/7-1.parquet", "s3://b/p/korvet:x:0/7-1.parquet"},
		{"s3://b/p", "a%3Ab/7.parquet", "s3://b/p/a%3Ab/7.parquet"},
		{"file:///d/o", "korvet:x:0/7.parquet", "file:///d/o/korvet:x:0/7.parquet"},
		{"file:///d/a%20b", "k%3A#/7.parquet", "file:///d/a%20b/k%253A%23/7.parquet"},
	} {
		r, err := rootOf(tt.remote)
		if err != nil {
			t.Fatal(err)
		}
		got := r.object(tt.key)
		key, ok := r.key(got)
		if got != tt.want || key != tt.key || !ok {
			t.Errorf("%s + %s: %s, want %s; back: %q %t", tt.remote, tt.key, got, tt.want, key, ok)
		}
	}
	r := root{"s3://b/p"}
	for _, other := range []string{"s3://b/pp/x", "s3://b/p", "s3://b/p/", "s3://c/p/x", "file:///b/p/x"} {
		if key, ok := r.key(other); ok {
			t.Errorf("%s is %q below %s", other, key, r.url)
		}
	}
}

// Nothing below the root is written or removed, whatever a table's metadata names.
func TestGuardedFiles(t *testing.T) {
	dir := t.TempDir()
	object, other := filepath.Join(dir, "o", "7.parquet"), filepath.Join(dir, "t", "x")
	for _, path := range []string{object, other} {
		if os.MkdirAll(filepath.Dir(path), 0o755) != nil || os.WriteFile(path, []byte("x"), 0o600) != nil {
			t.Fatal(path)
		}
	}
	g := guardedIO{io.LocalFS{}, root{"file://" + dir + "/o"}}
	for name, do := range map[string]func(string) error{
		"remove": g.Remove,
		"write":  func(name string) error { return g.WriteFile(name, []byte("y")) },
		"create": func(name string) error {
			w, err := g.Create(name)
			if err == nil {
				err = w.Close()
			}
			return err
		},
	} {
		for _, path := range []string{object, "file://" + object, "file:" + object} {
			if err := do(path); !errors.Is(err, errBelowRoot) {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
		if text, err := os.ReadFile(object); err != nil || string(text) != "x" {
			t.Errorf("after %s: %q, %v", name, text, err)
		}
	}
	if err := g.Remove("file://" + other); err != nil {
		t.Error(err)
	}
	if _, whole := any(g).(io.BulkRemovableIO); whole {
		t.Error("the guard lets files be removed in bulk")
	}
}

func TestFileProperties(t *testing.T) {
	yes, no := true, false
	for _, tt := range []struct {
		cfg       s3sink.Config
		warehouse string
		want      string
	}{
		{s3sink.Config{URL: "file:///d", Endpoint: "https://e", AccessKeyID: "k"}, "", ""},
		{s3sink.Config{URL: "s3://b/p"}, "s3://b/w", ""},
		{s3sink.Config{URL: "s3://b/p", Endpoint: "https://e", Region: "r", AccessKeyID: "k", SecretAccessKey: "secret"}, "s3://b/w", "s3.endpoint=https://e s3.region=r"},
		{s3sink.Config{URL: "s3a://b/p", PathStyle: &yes}, "", "s3.force-virtual-addressing=false"},
		{s3sink.Config{URL: "s3://b/p", PathStyle: &no}, "s3://x.y/w", "s3.force-virtual-addressing=true"},
		{s3sink.Config{URL: "s3://b/p"}, "s3://x.y/w", "s3.force-virtual-addressing=false"},
	} {
		var got []string
		for _, name := range []string{"s3.endpoint", "s3.region", "s3.force-virtual-addressing", "s3.access-key-id", "s3.secret-access-key"} {
			if value, ok := fileProperties(tt.cfg, tt.warehouse)[name]; ok {
				got = append(got, name+"="+value)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.cfg, tt.warehouse, got, tt.want)
		}
	}
}
