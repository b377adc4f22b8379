package s3server

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

const command = "github.com/versity/versitygw/cmd/versitygw"

// binary returns the path of the server, which it builds at the first use on
// this machine. Several test processes may ask at once.
func binary() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	pinned, err := os.ReadFile(filepath.Join(root, "tools.sum"))
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	sum := sha256.Sum256(append(pinned, runtime.GOARCH...))
	dir := filepath.Join(cache, "korvet-offload", "tools", hex.EncodeToString(sum[:8]))
	return filepath.Join(dir, "versitygw"), build(root, dir)
}

func build(root, dir string) error {
	target := filepath.Join(dir, "versitygw")
	if _, err := os.Stat(target); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lockFile(filepath.Join(dir, "lock"))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(target); err == nil {
		return nil // another process has built it meanwhile
	}
	fresh := target + ".new"
	cmd := exec.Command("go", "build", "-modfile=tools.mod", "-o", fresh, command)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s, pinned in tools.mod (it takes the module from the Go proxy or the module cache): %w: %s", command, err, out)
	}
	return os.Rename(fresh, target)
}

// lockFile holds a lock that ends with the process, if not before.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// moduleRoot is the folder above the test that holds tools.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "tools.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no tools.mod above the test's folder")
		}
		dir = filepath.Dir(dir)
	}
}
