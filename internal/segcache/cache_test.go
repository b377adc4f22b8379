package segcache

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "torn" { // a process that dies while it fetches
		dieFetching(os.Args[2])
	}
	goleak.VerifyTestMain(m)
}

// store has contents by their keys, and counts what was fetched.
type store struct {
	mu      sync.Mutex
	fetched int
	all     map[Key][]byte
	before  func(context.Context) error // each fetch
}

func (s *store) put(content []byte) Key {
	sum := sha256.Sum256(content)
	k := Key{hex.EncodeToString(sum[:]), int64(len(content))}
	s.all[k] = content
	return k
}

func (s *store) fetch(k Key) Fetch {
	return func(ctx context.Context) (io.ReadCloser, error) {
		s.mu.Lock()
		s.fetched++
		s.mu.Unlock()
		if s.before != nil {
			if err := s.before(ctx); err != nil {
				return nil, err
			}
		}
		return io.NopCloser(bytes.NewReader(s.all[k])), nil
	}
}

// kit is a cache in a folder, and a store behind it.
type kit struct {
	t   *testing.T
	dir string
	*store
	*Cache
	mu     sync.Mutex
	failed []error
}

func open(t *testing.T, dir string, size int64) *kit {
	t.Helper()
	k := &kit{t: t, dir: dir, store: &store{all: map[Key][]byte{}}}
	c, err := Open(Config{Dir: dir, Size: size}, func(err error) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.failed = append(k.failed, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	k.Cache = c
	t.Cleanup(func() { _ = c.Close() })
	return k
}

// read gets a file and gives what is in it.
func (k *kit) read(key Key) ([]byte, error) {
	f, err := k.Get(k.t.Context(), key, k.fetch(key))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// good reads a file that must be right, and says how often the store was asked by
// then.
func (k *kit) good(key Key, fetched int) {
	k.t.Helper()
	b, err := k.read(key)
	if err != nil || !bytes.Equal(b, k.all[key]) {
		k.t.Fatalf("%v, %d bytes", err, len(b))
	}
	if k.fetched != fetched {
		k.t.Fatalf("fetched %d times, want %d", k.fetched, fetched)
	}
}

func (k *kit) names() string {
	k.t.Helper()
	all, err := os.ReadDir(k.dir)
	if err != nil {
		k.t.Fatal(err)
	}
	var names []string
	for _, e := range all {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

func content(seed byte, n int) []byte {
	return bytes.Repeat([]byte{seed, seed + 1, seed + 2, 0, 255}, n/5)
}

func TestAFileIsFetchedOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "here")
	k := open(t, dir, 1<<20)
	key := k.put(content(1, 1000))
	k.good(key, 1)
	k.good(key, 1)
	again := open(t, dir, 1<<20) // another process, or this one after a restart
	again.put(content(1, 1000))
	again.good(key, 0)
	again.good(key, 0)
	if k.names() != key.SHA256+".parquet" {
		t.Error(k.names())
	}
	info, err := os.Stat(filepath.Join(dir, key.SHA256+".parquet"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

func TestManyWhoAskCostOneFetch(t *testing.T) {
	k := open(t, t.TempDir(), 1<<20)
	key := k.put(content(1, 1000))
	goOn := make(chan struct{})
	k.before = func(context.Context) error { <-goOn; return nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if b, err := k.read(key); err != nil || len(b) != 1000 {
				t.Errorf("%v, %d bytes", err, len(b))
			}
		})
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := k.Get(gone, key, k.fetch(key)); !errors.Is(err, context.Canceled) {
		t.Errorf("who does not wait any longer: %v", err)
	}
	close(goOn)
	all.Wait()
	if k.fetched != 1 {
		t.Errorf("fetched %d times", k.fetched)
	}
}

// What is torn, cut, changed or foreign is never given out, neither by the process
// that has fetched it nor by the next; it is fetched anew.
func TestDamagedFilesAreNeverGivenOut(t *testing.T) {
	for name, damage := range map[string]func(file string) error{
		"cut":     func(file string) error { return os.Truncate(file, 500) },
		"empty":   func(file string) error { return os.Truncate(file, 0) },
		"longer":  func(file string) error { return appendTo(file, "x") },
		"changed": overwrite,
		"replaced": func(file string) error {
			other := file + ".other"
			if err := os.WriteFile(other, content(9, 1000), 0o600); err != nil {
				return err
			}
			return os.Rename(other, file)
		},
		"gone":   os.Remove,
		"folder": func(file string) error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) },
		"link": func(file string) error {
			other := filepath.Join(filepath.Dir(file), "elsewhere")
			return errors.Join(os.WriteFile(other, content(9, 1000), 0o600), os.Remove(file), os.Symlink("elsewhere", file))
		},
		"link to outside": func(file string) error {
			return errors.Join(os.Remove(file), os.Symlink("/etc/passwd", file))
		},
		"a pipe": func(file string) error { return errors.Join(os.Remove(file), exec.Command("mkfifo", file).Run()) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " restart ", restart), func(t *testing.T) {
				k := open(t, t.TempDir(), 1<<20)
				key := k.put(content(1, 1000))
				k.good(key, 1)
				if err := damage(filepath.Join(k.dir, key.SHA256+".parquet")); err != nil {
					t.Fatal(err)
				}
				if restart {
					_ = k.Close()
					k = open(t, k.dir, 1<<20)
					k.put(content(1, 1000))
				}
				b, err := k.read(key)
				if name == "folder" { // it can't be replaced, so the file is passed on
					if !errors.Is(err, ErrPass) || len(k.failed) != 1 {
						t.Errorf("%v %v", err, k.failed)
					}
					return
				}
				if err != nil || !bytes.Equal(b, k.all[key]) {
					t.Errorf("%v, %d bytes", err, len(b))
				}
				if k.fetched == 0 {
					t.Error("it was not fetched anew")
				}
			})
		}
	}
}

func appendTo(file, text string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.WriteString(f, text)
	return err
}

// overwrite changes a byte and leaves the size.
func overwrite(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteAt([]byte("X"), 700)
	return errors.Join(err, os.Chtimes(file, time.Time{}, time.Now().Add(time.Second))) // the clock of a file system is coarse
}

// What the store gives must be what was asked for.
func TestOtherContentIsRefused(t *testing.T) {
	for name, comes := range map[string][]byte{"other": content(2, 1000), "short": content(1, 995), "long": content(1, 1005), "none": nil} {
		k := open(t, t.TempDir(), 1<<20)
		key := k.put(content(1, 1000))
		k.all[key] = comes
		if b, err := k.read(key); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), key.SHA256) {
			t.Errorf("%s: %v, %d bytes", name, err, len(b))
		}
		if k.names() != "" {
			t.Errorf("%s: %s is left", name, k.names())
		}
		if len(k.failed) != 0 {
			t.Errorf("%s: %v", name, k.failed)
		}
	}
}

func TestWhatCantBeKeptIsPassedOn(t *testing.T) {
	k := open(t, t.TempDir(), 10_000)
	large := k.put(content(1, 10_005))
	for name, key := range map[string]Key{"too large": large, "no checksum": {"", 5}, "bad checksum": {"../../x", 5}, "upper case": {strings.ToUpper(large.SHA256), 5}, "empty": {large.SHA256, 0}} {
		if _, err := k.read(key); !errors.Is(err, ErrPass) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if k.fetched != 0 || k.names() != "" {
		t.Errorf("%d %s", k.fetched, k.names())
	}
	failure := errors.New("the store is away")
	k.before = func(context.Context) error { return failure }
	if _, err := k.read(k.put(content(1, 1000))); !errors.Is(err, failure) || errors.Is(err, ErrPass) {
		t.Error(err)
	}
}

// Who asks does not wait for ever, and what is fetched is there for the next.
func TestSlowFetches(t *testing.T) {
	k := open(t, t.TempDir(), 1<<20)
	k.wait = time.Millisecond
	key := k.put(content(1, 1000))
	goOn := make(chan struct{})
	k.before = func(context.Context) error { <-goOn; return nil }
	if _, err := k.read(key); !errors.Is(err, ErrPass) {
		t.Fatal(err)
	}
	close(goOn)
	k.flying.Wait()
	k.wait = time.Minute
	k.good(key, 1)
}

// So many are fetched at once; Close ends them and waits.
func TestFetchesAtOnce(t *testing.T) {
	k := open(t, t.TempDir(), 1<<20)
	begun := make(chan struct{})
	k.before = func(ctx context.Context) error {
		begun <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	results := make(chan error, fillsAtOnce)
	for i := range fillsAtOnce {
		key := k.put(content(byte(i), 1000))
		go func() {
			_, err := k.read(key)
			results <- err
		}()
		<-begun
	}
	if _, err := k.read(k.put(content(100, 1000))); !errors.Is(err, ErrPass) {
		t.Errorf("one more: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	for range fillsAtOnce {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if _, err := k.read(k.put(content(101, 1000))); !errors.Is(err, ErrPass) {
		t.Errorf("after Close: %v", err)
	}
	if k.names() != "" {
		t.Errorf("%s is left", k.names())
	}
}

// The folder keeps to its size, and what was not used for longest goes first.
func TestTheLeastUsedGoes(t *testing.T) {
	k := open(t, t.TempDir(), 3500)
	now := time.Now()
	k.now = func() time.Time { now = now.Add(time.Minute); return now }
	var keys []Key
	for i := range byte(3) {
		keys = append(keys, k.put(content(10*i, 1000)))
		k.good(keys[i], int(i)+1)
	}
	k.good(keys[0], 3) // used again
	f, err := k.Get(t.Context(), keys[1], k.fetch(keys[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	k.good(keys[0], 3)
	k.good(keys[2], 3)
	keys = append(keys, k.put(content(40, 1000)))
	k.good(keys[3], 4) // 1 goes
	if b, err := io.ReadAll(f); err != nil || !bytes.Equal(b, k.all[keys[1]]) {
		t.Errorf("one that is open while it goes: %v, %d bytes", err, len(b))
	}
	k.good(keys[0], 4)
	k.good(keys[2], 4)
	k.good(keys[1], 5)
	_ = k.Close()
	small := open(t, k.dir, 1500) // a smaller size takes effect at once
	if n := strings.Count(small.names(), ".parquet"); n != 1 {
		t.Errorf("%d files in %s", n, small.names())
	}
}
