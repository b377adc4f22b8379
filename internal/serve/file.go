package serve

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"korvet-offload/segment"
)

// contentType is that of the files.
const contentType = "application/vnd.apache.parquet"

// file answers with the file of a segment, or a range of it.
func (s *server) file(w *reply, r *http.Request, p segment.Partition, n segment.Number) error {
	e, err := s.entry(r.Context(), p, n)
	if err != nil {
		return err
	}
	object, err := s.objectOf(p, n, e)
	if err != nil {
		return err
	}
	c := &content{ctx: r.Context(), files: s.parts.Files, object: object, zeroCopy: s.config.ZeroCopy}
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("ETag", tagOf(object))
	h.Set("Cache-Control", "no-cache") // that the manifest still names it is asked each time
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.parquet"`, n))
	if sum, err := hex.DecodeString(object.SHA256); err == nil && len(sum) == sha256.Size {
		h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum)+":")
	}
	oneRange(r)
	if r.Method == http.MethodHead {
		if err := c.probe(); err != nil {
			return s.again(r.Context(), p, n, object, err)
		}
	}
	var at time.Time
	if e.RemoteAt > 0 {
		at = time.UnixMilli(e.RemoteAt)
	}
	http.ServeContent(w, r, "", at, c)
	if c.failed != nil {
		return s.again(r.Context(), p, n, object, c.failed)
	}
	return nil
}

// oneRange leaves a request a Range that is worth it: several are answered by the
// whole file, which HTTP allows, and so is one under a condition that is a time
// and not an ETag, which does not tell two copies of one second apart.
func oneRange(r *http.Request) {
	condition := r.Header.Get("If-Range")
	if strings.Contains(r.Header.Get("Range"), ",") || condition != "" && !strings.HasPrefix(condition, `"`) {
		r.Header.Del("Range")
	}
}

// tagOf is the ETag of an object: its SHA-256, or what the store knows it by.
func tagOf(o segment.Object) string {
	if isSum.MatchString(o.SHA256) {
		return `"` + o.SHA256 + `"`
	}
	sum := sha256.Sum256([]byte(o.Path + "\x00" + o.ETag + "\x00" + strconv.FormatInt(o.Bytes, 10)))
	return `"o-` + hex.EncodeToString(sum[:16]) + `"`
}

var isSum = regexp.MustCompile(`^[0-9a-f]{64}$`)

// objectOf is the object of an entry that may be served.
func (s *server) objectOf(p segment.Partition, n segment.Number, e segment.Entry) (segment.Object, error) {
	switch {
	case e.State != segment.Sealed || e.Tier != segment.Remote:
		return segment.Object{}, refused{http.StatusNotFound, fmt.Sprintf("segment %s/%s has no file: it is %s %s", p, n, e.State, e.Tier)}
	case e.Object == nil || e.Object.Bytes <= 0 || !segment.IsObjectOf(e.Object.Path, s.parts.Layout.Folder(p), n):
		return segment.Object{}, fmt.Errorf("segment %s/%s: its entry names no file of it: %w", p, n, ErrDamaged)
	}
	return *e.Object, nil
}

// again says what it means that an object could not be read: its entry may have
// changed since.
func (s *server) again(ctx context.Context, p segment.Partition, n segment.Number, was segment.Object, err error) error {
	if !errors.Is(err, ErrMissing) && !errors.Is(err, ErrDamaged) {
		return err
	}
	e, now := s.entry(ctx, p, n)
	switch {
	case now != nil:
		return now
	case e.Object == nil || e.Object.Path != was.Path || e.Object.ETag != was.ETag:
		return refused{http.StatusServiceUnavailable, fmt.Sprintf("segment %s/%s has changed meanwhile; ask again", p, n)}
	}
	return fmt.Errorf("segment %s/%s: %w: %w", p, n, ErrDamaged, err)
}

// content is the file of a segment as http.ServeContent wants it. It is opened when
// its first byte is sent: most questions are answered without it.
type content struct {
	ctx      context.Context //nolint:containedctx // that of the one request that it lives for
	files    Files
	object   segment.Object
	zeroCopy bool
	offset   int64
	failed   error // why it could not be read
}

// Seek implements io.Seeker.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += c.offset
	case io.SeekEnd:
		offset += c.object.Bytes
	}
	if offset < 0 {
		return 0, errors.New("seek to before the beginning")
	}
	c.offset = offset
	return offset, nil
}

// Read implements io.Reader. Nobody calls it: the reply opens the content and knows
// how much of it is wanted.
func (c *content) Read([]byte) (int, error) {
	return 0, c.broke(errors.New("a file is sent by its reply alone"))
}

func (c *content) broke(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = fmt.Errorf("object %s ends before its %d bytes: %w", c.object.Path, c.object.Bytes, ErrDamaged)
	}
	c.failed = err
	return err
}

// open gives n bytes from the offset on: an *os.File that stands there, or what
// comes from the store.
func (c *content) open(n int64) (io.ReadCloser, error) {
	file, here, err := c.files.Local(c.ctx, c.object)
	if err != nil {
		return nil, c.broke(err)
	}
	if !here {
		body, err := c.files.OpenRange(c.ctx, c.object, c.offset, n)
		if err != nil {
			return nil, c.broke(err)
		}
		return body, nil
	}
	if err := c.stand(file); err != nil {
		return nil, c.broke(errors.Join(err, file.Close()))
	}
	return file, nil
}

// stand checks a file's size and goes to the offset.
func (c *content) stand(file *os.File) error {
	is, err := file.Stat()
	if err != nil {
		return err
	}
	if is.Size() != c.object.Bytes {
		return fmt.Errorf("object %s has %d bytes and not %d: %w", c.object.Path, is.Size(), c.object.Bytes, ErrDamaged)
	}
	_, err = file.Seek(c.offset, io.SeekStart)
	return err
}

// probe looks whether the object is there, and goes to its end.
func (c *content) probe() error {
	body, err := c.files.OpenRange(c.ctx, c.object, c.object.Bytes-1, 2)
	if err != nil {
		return err
	}
	defer body.Close()
	switch n, err := io.Copy(io.Discard, body); {
	case err != nil:
		return err
	case n != 1:
		return fmt.Errorf("object %s does not have %d bytes: %w", c.object.Path, c.object.Bytes, ErrDamaged)
	}
	return nil
}
