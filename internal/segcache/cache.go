// Package segcache keeps segment files that were read from the store in a folder,
// so that they are read there once and can be sent by the kernel.
//
// A file is known by the SHA-256 of its content, which its manifest entry tells,
// so it can't be mistaken for another copy, and never grows old.
//
// Guarantees: a file is given out only after this process has read it whole and
// has found that SHA-256, and while its size, its time and its identity are those
// from then; what a crash has torn, and what others have put into the folder, is
// never given out. A file takes its name once it is complete and on disk. However
// many ask for one file, it is fetched once. The files that are complete take no
// more than Config.Size, each process that fills the folder sees to it. Files with
// names that this package does not make are left alone.
//
// Non-guarantees: while several processes fill one folder at once it can be over
// its size by what each is filling. A file that is removed while somebody still
// reads it takes its space until then. Somebody who changes a file and puts its time
// back is not found out before the next process.
package segcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// Errors of Get.
var (
	// ErrPass says that the file is not in the folder, or not yet: read it from
	// the store.
	ErrPass = errors.New("not in the cache")
	// ErrDamaged says that the store has something else than what was asked for.
	ErrDamaged = errors.New("object is not what its manifest entry says")
)

const (
	// fillWait is how long Get waits for a file that is being fetched.
	fillWait = 5 * time.Second
	// fillsAtOnce is how many files are fetched at once.
	fillsAtOnce = 4
	// restTime is for how long nothing is fetched after the folder could not be
	// written to.
	restTime = 30 * time.Second
	// touchTime is how old the time of a file's last use may be.
	touchTime = time.Second
)

// Key says which file.
type Key struct {
	SHA256 string // of the content, 64 lower-case hex digits
	Size   int64  // bytes
}

// Fetch opens the object on the store. The context governs the reading as well.
type Fetch func(ctx context.Context) (io.ReadCloser, error)

// Cache is a folder of files. It is safe for concurrent use, also by several
// processes.
type Cache struct {
	root   *os.Root
	size   int64
	failed func(error)
	now    func() time.Time
	wait   time.Duration
	places chan struct{} // of those who fetch

	making sync.Mutex // held while files are chosen that go

	mu       sync.Mutex
	good     map[string]os.FileInfo // what this process has read and found right, by SHA-256
	flights  map[string]*flight     // files that are being fetched, or read
	reserved int64                  // bytes that are being fetched
	rests    time.Time              // until when nothing is fetched
	closed   bool
	flying   sync.WaitGroup
}

// flight is one file on its way, whoever waits for it.
type flight struct {
	done   chan struct{}
	err    error // once done
	cancel context.CancelFunc
}

// Open opens the folder of a configuration, makes it if it is not there, and
// removes what processes that are gone have left unfinished. Failed is told when a
// file could not be kept, by several goroutines at once.
func Open(c Config, failed func(error)) (*Cache, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of the cache (korvet.storage.offload.cache.dir): %w", err)
	}
	root, err := os.OpenRoot(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the cache (korvet.storage.offload.cache.dir): %w", err)
	}
	cache := &Cache{root: root, size: c.Size, failed: failed, now: time.Now, wait: fillWait, places: make(chan struct{}, fillsAtOnce),
		good: map[string]os.FileInfo{}, flights: map[string]*flight{}}
	if err := cache.makeRoom(); errors.Is(err, errFolder) { // there may be more in it than there may be now
		return nil, errors.Join(err, root.Close())
	}
	return cache, nil
}

// Close ends what is being fetched and waits for it. Files that were given out
// stay open.
func (c *Cache) Close() error {
	c.mu.Lock()
	c.closed = true
	for _, f := range c.flights {
		f.cancel()
	}
	c.mu.Unlock()
	c.flying.Wait()
	return c.root.Close()
}

// Get opens a file, which the caller closes. One that is not there is fetched; who
// asks waits for that some seconds, then gets ErrPass while the fetching goes on.
func (c *Cache) Get(ctx context.Context, k Key, fetch Fetch) (*os.File, error) {
	if !isSum(k.SHA256) || k.Size <= 0 || k.Size > c.size {
		return nil, fmt.Errorf("%w: %d bytes, SHA-256 %q", ErrPass, k.Size, k.SHA256)
	}
	if f, err := c.open(k); err == nil {
		return f, nil
	}
	f, err := c.join(ctx, k, fetch)
	if err != nil {
		return nil, err
	}
	late := time.NewTimer(c.wait)
	defer late.Stop()
	select {
	case <-f.done:
	case <-late.C:
		return nil, fmt.Errorf("%w: it is still being fetched", ErrPass)
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for a file of the cache: %w", context.Cause(ctx))
	}
	if f.err != nil {
		return nil, f.err
	}
	return c.open(k)
}

// open opens a file that this process has read and that nobody has touched since.
func (c *Cache) open(k Key) (*os.File, error) {
	c.mu.Lock()
	was := c.good[k.SHA256]
	c.mu.Unlock()
	if was == nil {
		return nil, ErrPass
	}
	file, is, err := c.openFile(k.SHA256)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPass, err)
	}
	if !same(was, is) || is.Size() != k.Size {
		return nil, errors.Join(ErrPass, file.Close())
	}
	if now := c.now(); now.Sub(usedAt(is)) > touchTime {
		_ = c.root.Chtimes(nameOf(k.SHA256), now, time.Time{}) // it goes a little sooner then
	}
	return file, nil
}

// openFile opens a file under a name of ours, if it is one.
func (c *Cache) openFile(sum string) (*os.File, os.FileInfo, error) {
	is, err := c.root.Lstat(nameOf(sum))
	if err != nil {
		return nil, nil, err
	}
	if !is.Mode().IsRegular() { // reading it might never end
		return nil, nil, fmt.Errorf("%s is no file", nameOf(sum))
	}
	file, err := c.root.Open(nameOf(sum))
	if err != nil {
		return nil, nil, err
	}
	opened, err := file.Stat()
	if err == nil && !os.SameFile(is, opened) {
		err = fmt.Errorf("%s was replaced meanwhile", nameOf(sum))
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, opened, nil
}

// same says whether a file is, by all that is cheap to see, what it was.
func same(was, is os.FileInfo) bool {
	return os.SameFile(was, is) && was.Size() == is.Size() && was.ModTime().Equal(is.ModTime())
}

// join waits with others for a file, or begins.
func (c *Cache) join(ctx context.Context, k Key, fetch Fetch) (*flight, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flights[k.SHA256]; f != nil {
		return f, nil
	}
	if c.closed {
		return nil, fmt.Errorf("%w: it is closed", ErrPass)
	}
	// It goes on when who asked first does not wait any longer: others may.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight{done: make(chan struct{}), cancel: cancel}
	c.flights[k.SHA256] = f
	c.flying.Go(func() {
		defer cancel()
		is, err := c.bring(ctx, k, fetch)
		c.land(k, f, is, err)
	})
	return f, nil
}

// land tells those who wait what came of a flight.
func (c *Cache) land(k Key, f *flight, is os.FileInfo, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.good[k.SHA256] = is
	}
	f.err = err
	delete(c.flights, k.SHA256)
	close(f.done)
}
