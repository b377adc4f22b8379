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
