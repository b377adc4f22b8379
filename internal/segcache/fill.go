package segcache

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// copyBuffer is how much is read at once, in bytes.
const copyBuffer = 256 << 10

// bring finds a file in the folder and reads it, or fetches it, and says what it
// is once it is right.
func (c *Cache) bring(ctx context.Context, k Key, fetch Fetch) (os.FileInfo, error) {
	if is, err := c.examine(ctx, k); err == nil || ctx.Err() != nil {
		return is, err
	}
	select {
	case c.places <- struct{}{}:
		defer func() { <-c.places }()
	default:
		return nil, fmt.Errorf("%w: %d others are being fetched", ErrPass, fillsAtOnce)
	}
	if err := c.reserve(k.Size); err != nil {
		return nil, err
	}
	is, err := c.fill(ctx, k, fetch)
	c.release(k.Size)
	if errors.Is(err, errFolder) {
		c.rest(err)
		return nil, fmt.Errorf("%w: %w", ErrPass, err)
	}
	if err == nil {
		_ = c.makeRoom() // another process may have filled the folder meanwhile; the next fill looks again
	}
	return is, err
}

// examine reads a file that lies there.
func (c *Cache) examine(ctx context.Context, k Key) (os.FileInfo, error) {
	file, is, err := c.openFile(k.SHA256)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if is.Size() != k.Size {
		return nil, fmt.Errorf("%s has %d bytes", file.Name(), is.Size())
	}
	n, sum, err := copyHashed(ctx, io.Discard, file, k.Size)
	if err != nil {
		return nil, err
	}
	after, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if n != k.Size || sum != k.SHA256 || !same(is, after) {
		return nil, fmt.Errorf("%s holds something else", file.Name())
	}
	return after, nil
}

// errFolder marks what is wrong with the folder, not with the store.
var errFolder = errors.New("keep a file in the cache")

func inFolder(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errFolder, err)
}

// reserve makes room for a file that is to come.
func (c *Cache) reserve(n int64) error {
	c.mu.Lock()
	resting := c.now().Before(c.rests)
	c.reserved += n
	c.mu.Unlock()
	if resting {
		c.release(n)
		return fmt.Errorf("%w: its folder could not be written to", ErrPass)
	}
	if err := c.makeRoom(); err != nil { // what is reserved counts
		c.release(n)
		if errors.Is(err, errFolder) {
			c.rest(err)
		}
		return fmt.Errorf("%w: %w", ErrPass, err)
	}
	return nil
}

func (c *Cache) release(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reserved -= n
}

// rest stops fetching for a while, and tells why.
func (c *Cache) rest(err error) {
	c.mu.Lock()
	c.rests = c.now().Add(restTime)
	c.mu.Unlock()
	c.failed(err)
}

// fill fetches a file. It has its name only when it is right and on disk.
func (c *Cache) fill(ctx context.Context, k Key, fetch Fetch) (is os.FileInfo, err error) {
	body, err := fetch(ctx)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	temp := temporaryName(k.SHA256)
	file, err := c.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, inFolder(err)
	}
	defer file.Close()
	defer func() {
		if err != nil {
			_ = c.root.Remove(temp) // or the next sweep does
		}
	}()
	if err := lock(file); err != nil {
		return nil, inFolder(err)
	}
	n, sum, err := copyHashed(ctx, folderWriter{file}, body, k.Size+1)
	if err != nil {
		return nil, err
	}
	if n != k.Size || sum != k.SHA256 {
		return nil, fmt.Errorf("%w: %s of its bytes came, and their SHA-256 is %s; want %d, and %s (korvet-offload verify says more)", ErrDamaged, atMost(n, k.Size), sum, k.Size, k.SHA256)
	}
	if err := c.name(file, temp, k.SHA256); err != nil {
		return nil, inFolder(err)
	}
	return file.Stat()
}

func atMost(n, size int64) string {
	if n > size {
		return fmt.Sprintf("more than %d", size)
	}
	return fmt.Sprint(n)
}

// name makes a file durable and gives it its name, in this order: after a crash
// there is a whole file or none.
func (c *Cache) name(file *os.File, temp, sum string) error {
	if err := file.Sync(); err != nil {
		return err
	}
	if err := c.root.Rename(temp, nameOf(sum)); err != nil {
		return err
	}
	dir, err := c.root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// folderWriter says of what can't be written whose fault it is.
type folderWriter struct{ io.Writer }

func (w folderWriter) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	return n, inFolder(err)
}

// copyHashed copies at most limit bytes, and gives their SHA-256 in hex. It ends
// with ctx.
func copyHashed(ctx context.Context, to io.Writer, from io.Reader, limit int64) (int64, string, error) {
	h := sha256.New()
	n, err := io.CopyBuffer(onlyWriter{io.MultiWriter(to, h)}, until{ctx, io.LimitReader(from, limit)}, make([]byte, copyBuffer))
	return n, hex.EncodeToString(h.Sum(nil)), err
}

type onlyWriter struct{ io.Writer }

// until reads as long as a context has not ended.
type until struct {
	ctx context.Context //nolint:containedctx // it lives for one copy
	io.Reader
}

func (u until) Read(b []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.Reader.Read(b)
}

func temporaryName(sum string) string {
	return "." + sum + "." + rand.Text()[:16] + ".tmp"
}
