package segcache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Whoever else has files in the folder keeps them, and they count for nothing.
func TestForeignFilesAreLeftAlone(t *testing.T) {
	dir := t.TempDir()
	names := []string{"README", "1.parquet", strings.Repeat("a", 63) + ".parquet", strings.Repeat("A", 64) + ".parquet", "." + strings.Repeat("a", 64) + ".tmp"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), content(7, 100_000), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	k := open(t, dir, 1500)
	k.good(k.put(content(1, 1000)), 1)
	k.good(k.put(content(2, 1000)), 2)
	for _, name := range names {
		if !strings.Contains(k.names(), name) {
			t.Errorf("%s is gone", name)
		}
	}
	if n := len(strings.Fields(k.names())); n != len(names)+1 {
		t.Error(k.names())
	}
}

// Two processes that share a folder share its files, and keep to its size together.
func TestTwoProcessesShareAFolder(t *testing.T) {
	dir := t.TempDir()
	a, b := open(t, dir, 5500), open(t, dir, 5500)
	var all sync.WaitGroup
	for _, k := range []*kit{a, b} {
		var keys []Key
		for i := range byte(10) {
			keys = append(keys, k.put(content(i, 1000)))
		}
		all.Go(func() {
			for round := range 50 {
				key := keys[(round*7+3)%10]
				if got, err := k.read(key); err != nil && !errors.Is(err, ErrPass) || err == nil && !bytes.Equal(got, k.all[key]) {
					t.Errorf("%v, %d bytes", err, len(got))
				}
			}
		})
	}
	all.Wait()
	if n := strings.Count(a.names(), ".parquet"); n < 3 || n > 5 {
		t.Errorf("%d files of 1000 bytes in a folder of 5500", n)
	}
}

// dieFetching leaves an unfinished file, as a process does that is killed.
func dieFetching(dir string) {
	c, err := Open(Config{Dir: dir, Size: 1 << 20}, func(error) {})
	if err != nil {
		os.Exit(3)
	}
	s := &store{all: map[Key][]byte{}}
	key := s.put(content(1, 1000))
	_, _ = c.Get(context.Background(), key, func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(bytes.NewReader(content(1, 500)), dying{})), nil
	})
	os.Exit(4)
}

type dying struct{}

func (dying) Read([]byte) (int, error) {
	p, _ := os.FindProcess(os.Getpid())
	_ = p.Kill()
	select {}
}

// What a process leaves that dies goes; what a living one writes stays.
func TestUnfinishedFilesOfTheDead(t *testing.T) {
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.Command(self, "torn", dir).Run(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
	alive := open(t, t.TempDir(), 1<<20)
	alive.dir = dir
	if n := strings.Count(alive.names(), ".tmp"); n != 1 {
		t.Fatalf("%d unfinished files in %s", n, alive.names())
	}
	k := open(t, dir, 1<<20)
	if k.names() != "" {
		t.Errorf("%s is left", k.names())
	}
	begun, goOn := make(chan struct{}), make(chan struct{})
	key := k.put(content(3, 1000))
	done := make(chan error)
	go func() {
		_, err := k.Get(t.Context(), key, func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(bytes.NewReader(k.all[key][:500]), waiting{begun, goOn}, bytes.NewReader(k.all[key][500:]))), nil
		})
		done <- err
	}()
	<-begun
	other := open(t, dir, 1<<20) // it looks around while that is written
	if n := strings.Count(other.names(), ".tmp"); n != 1 {
		t.Errorf("%d unfinished files in %s", n, other.names())
	}
	close(goOn)
	if err := <-done; err != nil {
		t.Error(err)
	}
	other.all[key] = k.all[key]
	other.good(key, 0)
}

type waiting struct{ begun, goOn chan struct{} }

func (w waiting) Read([]byte) (int, error) {
	close(w.begun)
	<-w.goOn
	return 0, io.EOF
}

// A folder that can't be written to passes files on, and is left alone for a while.
func TestAFolderThatCantBeWrittenTo(t *testing.T) {
	k := open(t, t.TempDir(), 1<<20)
	now := time.Now()
	k.now = func() time.Time { return now }
	key := k.put(content(1, 1000))
	if err := k.root.Close(); err != nil { // nothing works in it any more, as on a disk that has gone
		t.Fatal(err)
	}
	for range 3 {
		if _, err := k.read(key); !errors.Is(err, ErrPass) {
			t.Fatal(err)
		}
	}
	if len(k.failed) != 1 || k.fetched != 0 {
		t.Errorf("told %v, fetched %d times", k.failed, k.fetched)
	}
	now = now.Add(restTime)
	if _, err := k.read(key); !errors.Is(err, ErrPass) || len(k.failed) != 2 {
		t.Errorf("%v %v", err, k.failed)
	}
}

func TestFoldersThatAreNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(Config{Dir: dir, Size: 1 << 20}, nil); err == nil || !strings.Contains(err.Error(), "cache.dir") {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestConfigValidate(t *testing.T) {
	c := DefaultConfig()
	if errs := c.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
	c.Size = 1<<20 - 1
	if got := fmt.Sprint(c.Validate()); got != "[cache.size 1048575: want 1MB or more]" {
		t.Error(got)
	}
}
