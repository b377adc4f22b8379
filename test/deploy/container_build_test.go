package deploy

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// workshop builds images with buildah, in a folder of its own.
type workshop struct {
	t   *testing.T
	dir string
}

// The image that the build stage begins with, and the user of ours.
const (
	baseImage = "localhost/toolchain:test"
	imageUser = 65532
)

// newWorkshop has a base image for the build stage: no registry is asked. It
// is this machine's shell and certificates; the Go toolchain is mounted.
func newWorkshop(t *testing.T) workshop {
	t.Helper()
	w := workshop{t, t.TempDir()}
	w.takeSources()
	rootfs := filepath.Join(w.dir, "base", "rootfs")
	for _, dir := range []string{"tmp", "gocache", "go/pkg/mod", "usr/local/go"} {
		if err := os.MkdirAll(filepath.Join(rootfs, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	files := []string{"/etc/ssl/certs/ca-certificates.crt"}
	for _, name := range []string{"/bin/sh", "/bin/mkdir", "/bin/cp"} {
		files = append(append(files, name), libraries(t, name)...)
	}
	for _, name := range files {
		copyFile(t, name, filepath.Join(rootfs, name))
	}
	dockerfile := "FROM scratch\nCOPY rootfs/ /\nENV PATH=/usr/local/go/bin:/bin GOPATH=/go GOCACHE=/gocache\n"
	if err := os.WriteFile(filepath.Join(w.dir, "base", "Dockerfile"), []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	w.buildah("build", "--isolation", "chroot", "--tag", baseImage, filepath.Join(w.dir, "base"))
	return w
}

// sources is the build context: what .dockerignore lets in, as it is now, so that
// nobody changes it between two builds.
func (w workshop) sources() string { return filepath.Join(w.dir, "sources") }

func (w workshop) takeSources() {
	w.t.Helper()
	names := []string{"Dockerfile", ".dockerignore"}
	for line := range strings.Lines(readFile(w.t, ".dockerignore")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			names = append(names, name)
		}
	}
	for _, name := range names {
		from, to := filepath.Join(root, name), filepath.Join(w.sources(), name)
		info, err := os.Stat(from)
		switch {
		case err != nil:
			w.t.Fatal(err)
		case info.IsDir():
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				w.t.Fatal(err)
			}
		default:
			copyFile(w.t, from, to)
		}
	}
}

// libraries are what a program of this machine is linked with.
func libraries(t *testing.T, name string) (files []string) {
	t.Helper()
	out, err := exec.Command("ldd", name).Output()
	if err != nil {
		t.Fatalf("ldd %s: %v", name, err)
	}
	for _, field := range strings.Fields(string(out)) {
		if strings.HasPrefix(field, "/") {
			files = append(files, field)
		}
	}
	return files
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, content, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (w workshop) buildah(args ...string) string {
	w.t.Helper()
	args = append([]string{"--storage-driver", "vfs", "--root", filepath.Join(w.dir, "storage"), "--runroot", filepath.Join(w.dir, "run")}, args...)
	return strings.TrimSpace(output(w.t, "buildah", args...))
}

// build builds the Dockerfile for an architecture, with the modules that this
// machine has; what it has compiled already need not be again.
func (w workshop) build(tag, arch string) {
	w.t.Helper()
	env := goEnv(w.t, "GOROOT", "GOMODCACHE", "GOCACHE", "GOHOSTARCH")
	args := []string{"build", "--isolation", "chroot", "--format", "docker", "--timestamp", "1700000000", "--platform", "linux/" + arch, "--tag", tag}
	for _, arg := range []string{
		"BUILDPLATFORM=linux/" + env[3], "BUILD_IMAGE=" + baseImage, "GOPROXY=off",
		"VERSION=" + testVersion, "REVISION=" + testRevision, "CREATED=2023-11-14T22:13:20Z",
	} {
		args = append(args, "--build-arg", arg)
	}
	for _, v := range []string{env[0] + ":/usr/local/go:ro", env[1] + ":/go/pkg/mod", env[2] + ":/gocache"} {
		args = append(args, "--volume", v)
	}
	w.buildah(append(args, w.sources())...)
}

func goEnv(t *testing.T, names ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// container makes a container of an image and returns its name and the folder
// that is its root.
func (w workshop) container(tag string) (name, dir string) {
	w.t.Helper()
	name = w.buildah("from", "--pull-never", tag)
	return name, w.buildah("mount", name)
}

// image is what the tests read of an image's configuration.
type image struct {
	Architecture string
	Config       struct {
		User         string
		Env, Cmd     []string
		Entrypoint   []string
		Labels       map[string]string
		Volumes      map[string]any
		ExposedPorts map[string]any
		Healthcheck  struct{ Test []string }
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

func (w workshop) inspect(tag string) image {
	w.t.Helper()
	var all struct{ Docker image }
	if err := json.Unmarshal([]byte(w.buildah("inspect", "--type", "image", tag)), &all); err != nil {
		w.t.Fatal(err)
	}
	return all.Docker
}

// room is the root of a container as Kubernetes gives it to a Pod that is
// locked down: read-only but for the volume, and for a user without rights.
type room struct {
	root, spool string
	env         []string
}

func newRoom(t *testing.T, dir string, i image) room {
	t.Helper()
	spool := t.TempDir()
	if err := os.Chown(spool, imageUser, imageUser); err != nil {
		t.Fatalf("%v: these tests want to be root, as containers are made of mounts", err)
	}
	for up := filepath.Dir(spool); up != "/tmp" && up != "/"; up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil { // that user has to get there
			t.Fatal(err)
		}
	}
	return room{dir, spool, slices.Clone(i.Config.Env)}
}

// command runs the program in there; it is the process itself, so that a
// signal reaches it.
func (r room) command(env []string, args ...string) *exec.Cmd {
	const script = `set -e
mount --bind "$1" "$1"
mount --bind "$2" "$1/spool"
mount -o remount,bind,ro "$1"
root=$1; user=$3; shift 3
exec chroot --userspec="$user" "$root" /korvet-offload "$@"`
	cmd := exec.Command("unshare", append([]string{"--mount", "sh", "-c", script, "sh", r.root, r.spool, fmt.Sprintf("%d:%[1]d", imageUser)}, args...)...)
	cmd.Env = slices.Concat(r.env, env)
	return cmd
}
