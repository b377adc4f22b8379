package network

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"korvet-offload/segment"
)

// A file system that hangs, as one behind a network does, holds the pass in a
// call that no deadline ends. The instance that it happens to does not keep the
// lead, and says that it needs a restart; when the call returns after all, it
// goes on as if nothing had been.
func TestAHungFileSystem(t *testing.T) {
	//fault:store | the file system below a file:// root hangs in a call | the kernel holds back the opening of one file, by a lease on it | the lease is not renewed, liveness fails and names the call, another instance leads, and all is well once the call returns
	t.Parallel()
	root := t.TempDir()
	w := newWorld(t, newServers(t), usual(), "KORVET_STORAGE_REMOTE_PATH=file://"+root)
	w.env = append(w.env, "KORVET_STORAGE_OFFLOAD_STALL_TIMEOUT=12s") // more than the time of a page, and the timeout
	w.redis.Exec("SREM", w.layout.TopicsKey(), drops, expires)        // copies is all the work
	first := w.start(w.redis.Addr, w.s3.Endpoint)
	second := launch(t, w.environ(w.redis.Addr, w.s3.Endpoint), "run")
	await(t, "the second one follows", 20*time.Second, second.said("another instance leads"))
	held := segment.ObjectPath(w.layout.Folder(segment.Partition{Topic: copies}), 0, 0, "")
	release := holdBack(t, filepath.Join(root, held))
	w.redis.Exec("SADD", w.layout.TopicsKey(), copies)

	dead := func(p *process) func() bool {
		return func() bool {
			status, why := p.probe("/livez")
			return status == http.StatusServiceUnavailable && strings.Contains(why, "no progress") && strings.Contains(why, held)
		}
	}
	await(t, "the first one needs a restart", 30*time.Second, dead(first))
	await(t, "another one leads", leaseTime+5*time.Second, second.said("this instance leads"))
	await(t, "and is not ready", 15*time.Second, func() bool {
		_, why := first.probe("/readyz")
		return strings.Contains(why, "no progress")
	})
	second.mustLive("its own pass has only begun to hang")

	release()
	await(t, "the first one lives again", 10*time.Second, func() bool { status, _ := first.probe("/livez"); return status == http.StatusOK })
	await(t, "it has noticed", 10*time.Second, first.said("this instance leads no longer"))
	await(t, "the work is done", 30*time.Second, func() bool { return w.left() == 4 }) // those of the other topics
	for _, p := range []*process{first, second} {
		await(t, "ready again", 15*time.Second, p.ready(true))
		p.mustStop()
	}
}

// An instance whose pass hangs in the kernel can't be waited for: it ends all
// the same, says so, and the code tells that it was not in order.
func TestStoppingWhileTheFileSystemHangs(t *testing.T) {
	//fault:store | the program is told to stop while a file system hangs | SIGTERM, while the kernel holds back the opening of one file | it gives up after 20 s, with a line that says so and code 1
	t.Parallel()
	root := t.TempDir()
	w := newWorld(t, newServers(t), usual(), "KORVET_STORAGE_REMOTE_PATH=file://"+root)
	w.redis.Exec("SREM", w.layout.TopicsKey(), drops, expires)
	p := w.start(w.redis.Addr, w.s3.Endpoint)
	held := segment.ObjectPath(w.layout.Folder(segment.Partition{Topic: copies}), 0, 0, "")
	defer holdBack(t, filepath.Join(root, held))()
	w.redis.Exec("SADD", w.layout.TopicsKey(), copies)
	await(t, "all other partitions are done", 20*time.Second, func() bool { return w.left() == 4+2 })
	p.signal(syscall.SIGTERM)
	if code, took := p.wait(stopTime + 3*time.Second); code != 1 || !p.said("still not stopped after 20s")() {
		t.Errorf("exit %d after %s", code, took)
	}
}

// holdBack makes a file whose opening the kernel holds back until release, or
// for 45 s at most (fs.lease-break-time).
func holdBack(t *testing.T, name string) (release func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal(fmt.Errorf("hold back the opening of %s (it needs a local file system that is ours): %w", name, err))
	}
	return func() {
		if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK); err != nil {
			t.Errorf("let %s be opened: %v", name, err)
		}
	}
}
