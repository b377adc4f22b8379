package s3sink

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// syncs notes what a folder store makes durable, and at which moment.
type syncs struct {
	folder *files
	said   []string
	fail   int // the how-manieth sync fails; 0 = none
}

func watchSyncs(f *files) *syncs {
	s := &syncs{folder: f}
	f.sync = s.sync
	return s
}

// sync notes a file by its size, and whether it has a name yet; a folder by
// the names in it.
func (s *syncs) sync(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		s.said = append(s.said, s.describe(file))
	} else {
		_, err := os.Lstat(filepath.Join(s.folder.dir, "d", "k"))
		s.said = append(s.said, fmt.Sprintf("file of %d bytes, named %v", info.Size(), err == nil))
	}
	if s.fail > 0 && len(s.said) == s.fail {
		return &os.PathError{Op: "sync", Path: "k", Err: syscall.EIO}
	}
	return file.Sync()
}

func (s *syncs) describe(dir *os.File) string {
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
	if err != nil {
		return err.Error()
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return err.Error()
	}
	rel, _ := filepath.Rel(s.folder.dir, at)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return rel + " with " + strings.Join(names, " ")
}

func (s *syncs) take() []string {
	said := s.said
	s.said = nil
	return said
}

// What Put reports is durable: each folder that was made in the one around it,
// then the content before it has a name, then the name; and what Stat shows and
// what Delete reports, too.
//
//fault:crash | The machine loses power just after an object was put into a folder, or deleted from it | The syncs of files and folders are written down with what lies on the disk at that moment | Content is synced before it has a name, each name before the call returns
func TestEverySyncIsMade(t *testing.T) {
	for _, unnamed := range []bool{true, false} {
		f := newFolder(t)
		f.noUnnamed = !unnamed
		s := watchSyncs(f)
		mustSync := func(what string, want ...string) {
			t.Helper()
			if got := s.take(); !slices.Equal(got, want) {
				t.Errorf("unnamed %v: %s made durable\n%q, want\n%q", unnamed, what, got, want)
			}
		}
		put := func(f *files, key string) {
			t.Helper()
			if _, err := f.Put(t.Context(), upload(key, []byte("body"))); err != nil {
				t.Fatal(err)
			}
		}
		put(f, "d/k")
		mustSync("the first put", ".. with root", ". with d", "file of 4 bytes, named false", "d with k")
		if _, err := f.Stat(t.Context(), "d/k"); err != nil {
			t.Fatal(err)
		}
		mustSync("a look", "file of 4 bytes, named true", "d with k")
		put(f, "d/l")
		mustSync("a second put", "file of 4 bytes, named true", "d with k l")
		if err := f.Delete(t.Context(), []string{"d/l"})[0]; err != nil {
			t.Fatal(err)
		}
		mustSync("a deletion", "d with k")

		// A process that was killed after it made a folder may not have synced it.
		again := newFiles(f.dir, f.opt)
		again.noUnnamed = f.noUnnamed
		s = watchSyncs(again)
		put(again, "d/m")
		mustSync("another process", ".. with root", ". with d", "file of 4 bytes, named true", "d with k m")
	}
}

//fault:store | The disk answers EIO when a file or a folder is to be made durable | The first, second, third and fourth sync of a put fails | The put fails and says so, content that is not durable gets no name, the next put and look go through
func TestSyncThatFails(t *testing.T) {
	for _, unnamed := range []bool{true, false} {
		for fail := 1; fail <= 4; fail++ {
			f := newFolder(t)
			f.noUnnamed = !unnamed
			s := watchSyncs(f)
			s.fail = fail
			_, err := f.Put(t.Context(), upload("d/k", []byte("body")))
			if !errors.Is(err, syscall.EIO) || !strings.HasPrefix(err.Error(), "put file://"+f.dir+"/d/k: ") || !strings.Contains(err.Error(), "dmesg") {
				t.Errorf("sync %d: %v", fail, err)
			}
			there := false
			if _, err := os.Stat(f.dir); err == nil {
				there = slices.Contains(everything(t, f.dir), "d/k")
			}
			if there != (fail == 4) {
				t.Errorf("unnamed %v, sync %d: the object is there: %v", unnamed, fail, there)
			}
			s.fail = 0
			if _, err := f.Put(t.Context(), upload("d/k", []byte("body"))); there != errors.Is(err, ErrExists) || !there && err != nil {
				t.Errorf("sync %d: the next put: %v", fail, err)
			}
			if info, err := f.Stat(t.Context(), "d/k"); err != nil || info.Size != 4 {
				t.Errorf("sync %d: the next look: %+v, %v", fail, info, err)
			}
		}
	}
}

// TestDiskFillsUp writes with a limit of 1 MiB per file, in a process of its
// own: this test binary, started with a folder in its environment.
//
//fault:store | The disk of a folder store is full in the middle of a file | A process whose files may have 1 MiB puts 8 MiB, with and without unnamed files | The put fails and says what to do, nothing is left of the file, a smaller one goes through
func TestDiskFillsUp(t *testing.T) {
	if dir := os.Getenv("S3SINK_TEST_FILL"); dir != "" {
		fillUp(t, dir)
		return
	}
	for _, unnamed := range []string{"true", "false"} {
		dir := filepath.Join(t.TempDir(), "root")
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDiskFillsUp$")
		cmd.Env = append(os.Environ(), "S3SINK_TEST_FILL="+dir, "S3SINK_TEST_UNNAMED="+unnamed)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("unnamed %s: %v\n%s", unnamed, err, out)
		}
		if got := everything(t, dir); !slices.Equal(got, []string{"d/small"}) {
			t.Errorf("unnamed %s: left: %q", unnamed, got)
		}
	}
}

func fillUp(t *testing.T, dir string) {
	signal.Ignore(syscall.SIGXFSZ) // the write says EFBIG then
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1 << 20, Max: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	f := newFiles(dir, Options{}.withDefaults())
	f.noUnnamed = os.Getenv("S3SINK_TEST_UNNAMED") == "false"
	_, err := f.Put(t.Context(), upload("d/k", make([]byte, 8<<20)))
	if ClassOf(err) != ClassFull || !strings.Contains(err.Error(), "make room") || !strings.Contains(err.Error(), "d/k: ") {
		t.Errorf("got %v", err)
	}
	if _, err := f.Put(t.Context(), upload("d/small", []byte("x"))); err != nil {
		t.Error(err)
	}
}

// vanishing is a body in the middle of which something happens to the disk.
type vanishing struct{ happens func() }

func (v vanishing) ReadAt(p []byte, at int64) (int, error) {
	if at > 1<<20 {
		v.happens()
	}
	clear(p)
	return len(p), nil
}

//fault:store | The folder of a folder store vanishes in the middle of a put | The folder is removed, or moved away, while the body is read | The put fails or the object is where the folder is now, and no object is reported that is nowhere
func TestFolderVanishesInMidPut(t *testing.T) {
	for name, happens := range map[string]func(dir string) error{
		"removed": os.RemoveAll,
		"moved":   func(dir string) error { return os.Rename(dir, dir+"-moved") },
	} {
		for _, unnamed := range []bool{true, false} {
			f := newFolder(t)
			f.noUnnamed = !unnamed
			u := upload("d/k", make([]byte, 8<<20))
			done := false
			u.Body = vanishing{func() {
				if !done {
					done = true
					if err := happens(filepath.Join(f.dir, "d")); err != nil {
						t.Error(err)
					}
				}
			}}
			_, err := f.Put(t.Context(), u)
			_, serr := os.Stat(filepath.Join(f.dir, "d-moved", "k"))
			if (err == nil) != (serr == nil) {
				t.Errorf("%s, unnamed %v: put: %v; the object: %v", name, unnamed, err, serr)
			}
			if _, err := f.Stat(context.Background(), "d/k"); !errors.Is(err, ErrMissing) {
				t.Errorf("%s, unnamed %v: a look: %v", name, unnamed, err)
			}
		}
	}
}

// A disk that was mounted read-only after a fault takes nothing, and says what
// to do.
//
//fault:store | The disk of a folder store is read-only, or answers EIO | The errors EROFS, EIO and ESTALE of the file system | One line names the folder, the file, the cause and what to do
func TestDiskErrors(t *testing.T) {
	f := newFolder(t)
	for errno, c := range map[syscall.Errno]struct {
		class Class
		says  string
	}{
		syscall.EROFS:  {ClassDenied, "writable"},
		syscall.EIO:    {ClassUnavailable, "dmesg"},
		syscall.ESTALE: {ClassUnavailable, "mount"},
		syscall.ENODEV: {ClassUnavailable, "mount"},
	} {
		err := f.classify("put", "d/k", &fs.PathError{Op: "write", Path: "k", Err: errno})
		if err.Class != c.class || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "put file://"+f.dir+"/d/k: ") {
			t.Errorf("%v: class %s: %v", errno, err.Class, err)
		}
	}
}
