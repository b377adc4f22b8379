package s3sink

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newFolder(t *testing.T) *files {
	t.Helper()
	return newFiles(filepath.Join(t.TempDir(), "root"), Options{Owner: Owner{Namespace: "korvet"}}.withDefaults())
}

// everything lists all names below a folder.
func everything(t *testing.T, dir string) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			names = append(names, strings.TrimPrefix(path, dir+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestFileModes(t *testing.T) {
	old := syscall.Umask(0o022)
	defer syscall.Umask(old)
	f := newFolder(t)
	for _, unnamed := range []bool{true, false} {
		f.noUnnamed = !unnamed
		key := map[bool]string{true: "a/b", false: "c/d"}[unnamed]
		if _, err := f.Put(t.Context(), upload(key, []byte("x"))); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]fs.FileMode{".": fs.ModeDir | 0o750, filepath.Dir(key): fs.ModeDir | 0o750, key: 0o640} {
			if info, err := os.Stat(filepath.Join(f.dir, path)); err != nil || info.Mode() != want {
				t.Errorf("%s: %v, %v", path, info.Mode(), err)
			}
		}
	}
}

// TestWithoutUnnamedFiles runs the other way to put: nothing but the object is
// left, also of puts that fail, and old leftovers go.
//
//fault:crash | A killed process has left a temporary file, on a file system without unnamed files | Old and young leftovers in the folder | The next put removes the old ones, and nothing passes for an object
func TestWithoutUnnamedFiles(t *testing.T) {
	f := newFolder(t)
	f.noUnnamed = true
	if _, err := f.Put(t.Context(), upload("d/a", []byte("x"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put(t.Context(), upload("d/a", []byte("y"))); !errors.Is(err, ErrExists) {
		t.Errorf("second put: %v", err)
	}
	short := upload("d/b", []byte("x"))
	short.Size = 100
	if _, err := f.Put(t.Context(), short); ClassOf(err) != ClassInvalid {
		t.Errorf("short body: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Put(ctx, upload("d/c", []byte("x"))); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if got := everything(t, f.dir); len(got) != 1 || got[0] != "d/a" {
		t.Fatalf("left: %q", got)
	}

	old, young, other := ".x.0123456789abcdef.tmp", ".y.0123456789abcdef.tmp", ".x.0123.tmp"
	for _, name := range []string{old, young, other} {
		writeFile(t, filepath.Join(f.dir, "d", name), "")
	}
	for _, name := range []string{old, other} {
		past := time.Now().Add(-25 * time.Hour)
		if err := os.Chtimes(filepath.Join(f.dir, "d", name), past, past); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Put(t.Context(), upload("d/e", nil)); err != nil {
		t.Fatal(err)
	}
	if got := everything(t, f.dir); strings.Join(got, " ") != "d/"+other+" d/"+young+" d/a d/e" {
		t.Errorf("left: %q", got)
	}
	if _, err := f.Put(t.Context(), upload("d/"+young, nil)); ClassOf(err) != ClassInvalid {
		t.Errorf("a key like an unfinished file: %v", err)
	}
}

//fault:input | Symbolic links lead out of the root | Links to folders and files outside | Nothing is put, read or deleted there
func TestNothingOutsideTheRoot(t *testing.T) {
	f := newFolder(t)
	outside := t.TempDir()
	if err := os.Mkdir(f.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(outside, "file"), "secret")
	for name, to := range map[string]string{"abs": outside, "up": "../" + filepath.Base(outside), "link": filepath.Join(outside, "file")} {
		if err := os.Symlink(to, filepath.Join(f.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"abs/x", "abs/new/x", "link", "abs/file"} {
		if _, err := f.Put(t.Context(), upload(key, []byte("x"))); err == nil {
			t.Errorf("put %s went through", key)
		}
		if _, err := f.Stat(t.Context(), key); ClassOf(err) != ClassInvalid {
			t.Errorf("stat %s: %v", key, err)
		}
	}
	_ = f.Delete(t.Context(), []string{"abs/file"})
	if got := everything(t, outside); len(got) != 1 || got[0] != "file" {
		t.Errorf("outside: %q", got)
	}
}

//fault:store | The folder of a folder store is not mounted | A path whose parent is missing | The error says so, and nothing is made there
func TestFolderThatIsNotThere(t *testing.T) {
	f := newFiles(filepath.Join(t.TempDir(), "not", "mounted"), Options{}.withDefaults())
	_, err := f.Put(t.Context(), upload("k", nil))
	if ClassOf(err) != ClassNoBucket || !strings.Contains(err.Error(), "mend remote-path") {
		t.Errorf("put: %v", err)
	}
	if _, err := f.Stat(t.Context(), "k"); ClassOf(err) != ClassNoBucket {
		t.Errorf("stat: %v", err)
	}
	if p := f.Check(t.Context()); len(p) != 1 || ClassOf(p[0].Err) != ClassNoBucket {
		t.Errorf("check: %+v", p)
	}
}

// TestDeleteWithoutPermission: not even root may remove a file of /proc.
//
//fault:store | A file may not be deleted | A folder store over /proc | Denied, and what is not there counts as gone
func TestDeleteWithoutPermission(t *testing.T) {
	f := newFiles("/proc/self", Options{}.withDefaults())
	errs := f.Delete(t.Context(), []string{"status", "no-such-file", "no/such/file"})
	if ClassOf(errs[0]) != ClassDenied || !strings.Contains(errs[0].Error(), "status: ") || errs[1] != nil || errs[2] != nil {
		t.Errorf("got %v", errs)
	}
	if e := f.classify("delete", "k", &os.PathError{Op: "unlinkat", Path: "k", Err: syscall.EROFS}); e.Class != ClassDenied {
		t.Errorf("read-only: %v", e)
	}
}

// TestDeleteOnAnotherDisk: on a disk that is not mounted everything seems to
// be deleted.
//
//fault:store | The disk of a folder store is not mounted when objects are to be deleted | The owner marker is gone | Nothing counts as deleted, nothing is deleted
func TestDeleteOnAnotherDisk(t *testing.T) {
	f := newFolder(t)
	keys := []string{"a", "b/c", MarkerKey}
	if got := classes(keys, f.Delete(t.Context(), keys)); got != "a:no-bucket b/c:no-bucket "+MarkerKey+":invalid" {
		t.Errorf("before the root is made: %s", got)
	}
	if _, err := f.CreateOnly(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := classes(keys, f.Delete(t.Context(), keys)); got != MarkerKey+":invalid" {
		t.Errorf("in its root: %s", got)
	}
	if err := os.Remove(filepath.Join(f.dir, MarkerKey)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(f.dir, "a"), "not ours")
	if got := classes(keys, f.Delete(t.Context(), keys)); got != "a:no-bucket b/c:no-bucket "+MarkerKey+":invalid" {
		t.Errorf("in a root without the marker: %s", got)
	}
	if got := everything(t, f.dir); len(got) != 1 {
		t.Errorf("left: %q", got)
	}
}

func TestDeleteKeepsFolders(t *testing.T) {
	f := newFolder(t)
	for _, key := range []string{"a/b/c", "a/d"} {
		if _, err := f.Put(t.Context(), upload(key, nil)); err != nil {
			t.Fatal(err)
		}
	}
	keys := []string{"a/b/c", "a/d", "a/b", "a"}
	if got := classes(keys, f.Delete(t.Context(), keys)); got != "" {
		t.Error(got)
	}
	if _, err := os.Stat(filepath.Join(f.dir, "a", "b")); err != nil || len(everything(t, f.dir)) > 0 {
		t.Errorf("left: %q, %v", everything(t, f.dir), err)
	}
}

func TestFileInTheWay(t *testing.T) {
	f := newFolder(t)
	if _, err := f.Put(t.Context(), upload("a", nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Put(t.Context(), upload("a/b", nil)); ClassOf(err) != ClassInvalid {
		t.Errorf("put below a file: %v", err)
	}
	if _, err := f.Stat(t.Context(), "a/b"); !errors.Is(err, ErrMissing) {
		t.Errorf("stat below a file: %v", err)
	}
}

//fault:store | The disk of a folder store is full | /dev/full | The error says to make room
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	f := newFolder(t)
	e := f.classify("put", "k", copyBody(t.Context(), full, upload("k", []byte("x")), Options{}.withDefaults().Pace))
	if e.Class != ClassFull || !strings.Contains(e.Error(), "no space left") {
		t.Errorf("got %v", e)
	}
}

// slowBody says when it is read, and then takes for ever.
type slowBody struct{ reached *os.File }

func (b slowBody) ReadAt(p []byte, at int64) (int, error) {
	if at > 1<<20 {
		_, _ = b.reached.WriteString("\n")
		select {}
	}
	clear(p)
	return len(p), nil
}

// TestKilledWriterLeavesNothing kills a process in the middle of a put. The
// process is this test binary, started with a folder in its environment.
//
//fault:crash | The process is killed in the middle of a put into a folder | A child process is killed while its body is read | Nothing is left, the next put goes through
func TestKilledWriterLeavesNothing(t *testing.T) {
	if dir := os.Getenv("S3SINK_TEST_WRITE_TO"); dir != "" {
		u := upload("a/k", nil)
		u.Body, u.Size = slowBody{os.Stdout}, 8<<20
		_, err := newFiles(dir, Options{}.withDefaults()).Put(t.Context(), u)
		t.Fatal("put returned: ", err)
	}
	dir := filepath.Join(t.TempDir(), "root")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWriterLeavesNothing$")
	cmd.Env = append(os.Environ(), "S3SINK_TEST_WRITE_TO="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if n, err := out.Read(make([]byte, 1)); n != 1 {
		t.Fatal("the writer did not get to the middle: ", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it says that it was killed
	if got := everything(t, dir); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err != nil {
		t.Errorf("the writer had not begun: %v", err)
	}
	if _, err := newFiles(dir, Options{}.withDefaults()).Put(t.Context(), upload("a/k", []byte("x"))); err != nil {
		t.Error(err)
	}
}

func BenchmarkFileStat(b *testing.B) {
	f := newFiles(filepath.Join(b.TempDir(), "root"), Options{}.withDefaults())
	const size = 64 << 20
	if _, err := f.Put(b.Context(), upload("k", bytes.Repeat([]byte("x"), size))); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := f.Stat(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}
