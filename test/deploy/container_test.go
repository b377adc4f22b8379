package deploy

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/x509"
	"debug/elf"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
)

const (
	testVersion  = "v1.2.3-test"
	testRevision = "0123456789abcdef0123456789abcdef01234567"
	amd64Image   = "localhost/korvet-offload:amd64"
	arm64Image   = "localhost/korvet-offload:arm64"
	// What a registry keeps and a node pulls, and what is on the node's disk.
	maxPulled, maxOnDisk = 30 << 20, 45 << 20
)

func TestContainer(t *testing.T) {
	w := newWorkshop(t)
	w.build(amd64Image, "amd64")
	name, dir := w.container(amd64Image)
	i := w.inspect(amd64Image)
	t.Run("configuration", func(t *testing.T) { imageSays(t, i) })
	t.Run("files", func(t *testing.T) { imageHolds(t, dir) })
	t.Run("size", func(t *testing.T) { imageIsSmall(t, dir) })
	t.Run("version", func(t *testing.T) {
		got := w.buildah("run", "--isolation", "chroot", name, "--", "/korvet-offload", "version")
		if !strings.HasPrefix(got, "korvet-offload "+testVersion+" ("+testRevision[:12]+") go1.") {
			t.Errorf("%q", got)
		}
	})
	t.Run("same bytes", func(t *testing.T) {
		if !bytes.Equal(sum(t, filepath.Join(dir, "korvet-offload")), sum(t, w.builtHere())) {
			t.Error("the program is another one when it is built elsewhere")
		}
		w.build("localhost/korvet-offload:again", "amd64")
		if a, b := i.RootFS.DiffIDs, w.inspect("localhost/korvet-offload:again").RootFS.DiffIDs; len(a) == 0 || !slices.Equal(a, b) {
			t.Errorf("layers %q and %q", a, b)
		}
	})
	t.Run("arm64", func(t *testing.T) {
		w.build(arm64Image, "arm64")
		_, dir := w.container(arm64Image)
		if got := machine(t, filepath.Join(dir, "korvet-offload")); got != elf.EM_AARCH64 || w.inspect(arm64Image).Architecture != "arm64" {
			t.Errorf("built for %s, and the image says %s", got, w.inspect(arm64Image).Architecture)
		}
	})
	t.Run("run once", func(t *testing.T) { runsOnce(t, newRoom(t, dir, i)) })
	t.Run("daemon", func(t *testing.T) { runsAndIsAsked(t, newRoom(t, dir, i)) })
}

func imageSays(t *testing.T, i image) {
	c := i.Config
	if i.Architecture != "amd64" || c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/korvet-offload"}) || !slices.Equal(c.Cmd, []string{"run"}) {
		t.Errorf("%s, user %s, %q %q", i.Architecture, c.User, c.Entrypoint, c.Cmd)
	}
	if !slices.Equal(c.Healthcheck.Test, []string{"CMD", "/korvet-offload", "healthcheck"}) {
		t.Errorf("healthcheck %q", c.Healthcheck.Test)
	}
	if _, ok := c.Volumes["/spool"]; !ok || !slices.Contains(c.Env, "TMPDIR=/spool") {
		t.Errorf("volumes %v, environment %q", c.Volumes, c.Env)
	}
	if _, ok := c.ExposedPorts["9477/tcp"]; !ok {
		t.Errorf("ports %v", c.ExposedPorts)
	}
	for label, want := range map[string]string{"title": "korvet-offload", "licenses": "Apache-2.0", "version": testVersion,
		"revision": testRevision, "created": "2023-11-14T22:13:20Z"} {
		if got := c.Labels["org.opencontainers.image."+label]; got != want {
			t.Errorf("label %s: %q, want %q", label, got, want)
		}
	}
}

// imageHolds looks at all files: there is no shell, and nothing can be
// changed by the program's user but the volume.
func imageHolds(t *testing.T, dir string) {
	var got []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel := strings.TrimPrefix(path, dir)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; (owner == imageUser) != (rel == "/spool") || info.Mode().Perm()&0o022 != 0 {
			t.Errorf("%s: owner %d, %s", rel, owner, info.Mode())
		}
		if !d.IsDir() || rel == "/spool" {
			got = append(got, rel)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/LICENSE", "/etc/group", "/etc/passwd", "/etc/ssl/certs/ca-certificates.crt", "/korvet-offload", "/spool"}
	if slices.Sort(got); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	authorities, err := os.ReadFile(filepath.Join(dir, "etc/ssl/certs/ca-certificates.crt"))
	if err != nil || !x509.NewCertPool().AppendCertsFromPEM(authorities) {
		t.Errorf("no authorities: %v", err)
	}
	if f, err := elf.Open(filepath.Join(dir, "korvet-offload")); err != nil || f.Section(".interp") != nil {
		t.Errorf("the program needs a dynamic linker: %v", err)
	}
}

func imageIsSmall(t *testing.T, dir string) {
	f, err := os.Open(filepath.Join(dir, "korvet-offload"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var pulled counter
	z := gzip.NewWriter(&pulled)
	onDisk, err := io.Copy(z, f)
	if err == nil {
		err = z.Close()
	}
	if err != nil || pulled > maxPulled || onDisk > maxOnDisk {
		t.Errorf("%v: %d bytes, %d compressed; want %d and %d at most", err, onDisk, pulled, maxOnDisk, maxPulled)
	}
	t.Logf("%.1f MB to pull, %.1f MB on disk", float64(pulled)/1e6, float64(onDisk)/1e6)
}

// counter counts what is written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func sum(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := sha256.Sum256(content)
	return s[:]
}

// builtHere builds the program as the Dockerfile does, outside of a container.
func (w workshop) builtHere() string {
	w.t.Helper()
	const pkg = "korvet-offload/internal/command."
	file := filepath.Join(w.dir, "korvet-offload")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-tags", "timetzdata",
		"-ldflags", "-s -w -buildid= -X "+pkg+"linkedVersion="+testVersion+" -X "+pkg+"linkedRevision="+testRevision, "-o", file, ".")
	cmd.Dir, cmd.Env = w.sources(), append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		w.t.Fatalf("%v\n%s", err, out)
	}
	return file
}

func machine(t *testing.T, file string) elf.Machine {
	t.Helper()
	f, err := elf.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return f.Machine
}

// streamEnv is a Redis with a stream, and what tells the program of it.
func streamEnv(t *testing.T, more ...string) []string {
	t.Helper()
	r := redisserver.Start(t)
	for range 10 {
		r.Exec("XADD", "events", "*", "hello", "world")
	}
	return append([]string{"KORVET_REDIS_URI=" + r.URI(), "KORVET_STREAMS_0_KEY=events", "KORVET_STREAMS_0_SEGMENT_ENTRIES=5",
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0s", "PATH=" + os.Getenv("PATH")}, more...)
}

// parquetFiles are the files that have been written below a folder.
func parquetFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".parquet") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// runsOnce moves a segment to a folder, with nothing to write to but the
// volume, and shows that there is really nothing else.
func runsOnce(t *testing.T, r room) {
	env := streamEnv(t, "KORVET_STORAGE_REMOTE_PATH=file:///spool/objects", "KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY=0")
	await(t, "a file of the first segment", time.Minute, func() bool {
		if out, err := r.command(env, "run", "--once").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return len(parquetFiles(t, r.spool)) > 0
	})
	info, err := os.Stat(parquetFiles(t, r.spool)[0])
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != imageUser {
		t.Errorf("%v, %v: want it to belong to %d", err, info, imageUser)
	}
	out, err := r.command(append(env, "TMPDIR=/"), "config", "check", "--connect").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "read-only file system") {
		t.Errorf("the root can be written: %v\n%s", err, out)
	}
}

// runsAndIsAsked runs it until it is told to stop, against an S3 server.
func runsAndIsAsked(t *testing.T, r room) {
	s3 := s3server.Start(t, s3server.Options{})
	env := streamEnv(t, "KORVET_STORAGE_REMOTE_PATH=s3://"+s3.Bucket+"/korvet", "KORVET_STORAGE_S3_ENDPOINT="+s3.Endpoint,
		"KORVET_STORAGE_S3_REGION="+s3.Region, "KORVET_STORAGE_S3_ACCESS_KEY_ID="+s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY="+s3.Secret,
		"KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=500ms", "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="+freeAddress(t),
		"KORVET_STORAGE_OFFLOAD_LOG_FORMAT=console", "TZ=Asia/Kathmandu")
	if out, err := r.command(env, "healthcheck").CombinedOutput(); err == nil {
		t.Errorf("healthy before it runs: %s", out)
	}
	d := start(t, r.command(env, "run"))
	await(t, "readiness", time.Minute, func() bool { return r.command(env, "healthcheck", "--ready").Run() == nil })
	if out, err := r.command(env, "healthcheck").CombinedOutput(); err != nil || string(out) != "alive\n" {
		t.Errorf("%v, %q", err, out)
	}
	await(t, "an object of the first segment", time.Minute, func() bool { return len(parquetFiles(t, s3.Dir)) > 0 })
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-d.ended:
	case <-time.After(20 * time.Second):
		t.Error("still there 20 seconds after SIGTERM")
	}
	if code := d.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit %d", code)
	}
	zone, err := time.LoadLocation("Asia/Kathmandu")
	if err != nil {
		t.Fatal(err)
	}
	if hour := time.Now().In(zone).Format("15:"); !strings.HasPrefix(d.log(), hour) && !strings.HasPrefix(d.log(), time.Now().In(zone).Add(-5*time.Minute).Format("15:")) {
		t.Errorf("its log knows no time zones: it is %s there\n%s", hour, d.log())
	}
}

// started is a program that runs until the test ends.
type started struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu  sync.Mutex
	out bytes.Buffer
}

func start(t *testing.T, cmd *exec.Cmd) *started {
	t.Helper()
	s := &started{cmd: cmd, ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = s, s
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.ended
		if t.Failed() {
			t.Log(s.log())
		}
	})
	return s
}

// Write takes what the program says.
func (s *started) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Write(p)
}

func (s *started) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.String()
}
