package repair

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// sum is the SHA-256 of one entry, id and fields.
type sum [sha256.Size]byte

// maxSums bounds how many entries of a stream are compared one by one with the
// rows of an object: 64 bytes each.
const maxSums = 200_000

// reader reads objects whole. It holds one at a time, in a file of the spool
// directory that has no name.
type reader struct {
	store Store
	dir   string     // "" = the system's
	upto  segment.ID // where File.Begins ends
}

// stat looks whether an object is there.
func (r reader) stat(ctx context.Context, path string) (*File, error) {
	f := &File{Path: path, Lacks: -1}
	if name, ok := segment.ParseObjectPath(path); ok {
		f.Copy = name.Copy
	}
	info, err := r.store.Stat(ctx, path)
	switch {
	case errors.Is(err, offload.ErrObjectMissing):
		f.Missing, f.Damage = true, errMissing
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("look at object %s: %w", path, err)
	}
	f.Size, f.ETag, f.told, f.Damage = info.Size, info.ETag, info.SHA256, errUnread
	return f, nil
}

// read reads an object to its last row, and compares it with what the stream
// holds. Its bytes have to be those that were put: by known, which its entry tells
// ("" = nothing), by what the store keeps of it, or, where neither says, by what
// the writer makes of its rows. An error means that it could not be read, and says
// nothing of it.
func (r reader) read(ctx context.Context, path string, of parquetfile.FileID, known string, held *Held) (*File, error) {
	f, err := r.stat(ctx, path)
	if err != nil || f.Missing {
		return f, err
	}
	spool, err := r.fetch(ctx, f)
	if errors.Is(err, offload.ErrObjectMissing) { // since it was looked at
		return &File{Path: path, Copy: f.Copy, Lacks: -1, Missing: true, Damage: errMissing}, nil
	}
	if err != nil {
		return nil, err
	}
	defer spool.Close()
	remade, err := f.rows(ctx, spool, of, held, r.upto)
	var local *fs.PathError
	if cerr := ctx.Err(); cerr != nil || errors.As(err, &local) {
		return nil, fmt.Errorf("read object %s: %w", path, errors.Join(cerr, err))
	}
	switch f.Damage = err; {
	case err != nil:
	case f.kept() != "" && f.kept() != f.SHA256:
		f.Damage = fmt.Errorf("the store keeps SHA-256 %s of it, and its bytes have %s", f.kept(), f.SHA256)
	case f.kept() == "" && f.SHA256 != known && f.SHA256 != remade:
		f.Damage = errNotWritten
	}
	return f, nil
}

// fetch brings an object into a file without a name, and its SHA-256 into f.
func (r reader) fetch(ctx context.Context, f *File) (_ *os.File, err error) {
	body, err := r.store.Open(ctx, f.Path)
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", f.Path, err)
	}
	defer body.Close()
	spool, err := os.CreateTemp(r.dir, "korvet-offload-repair-")
	if err != nil {
		return nil, fmt.Errorf("make a file for object %s: %w; see korvet.storage.offload.spool-dir", f.Path, err)
	}
	defer func() {
		if err != nil {
			spool.Close()
		}
	}()
	if err := os.Remove(spool.Name()); err != nil {
		return nil, fmt.Errorf("make a file for object %s: %w", f.Path, err)
	}
	hash := sha256.New()
	switch n, err := io.Copy(io.MultiWriter(spool, hash), body); {
	case err != nil:
		return nil, fmt.Errorf("read object %s: %w", f.Path, err)
	case n != f.Size:
		return nil, fmt.Errorf("read object %s: %d bytes came, and the store says that it has %d: %w", f.Path, n, f.Size, io.ErrUnexpectedEOF)
	}
	f.SHA256 = hex.EncodeToString(hash.Sum(nil))
	return spool, nil
}

// rows reads all rows. It returns the SHA-256 of the file that the writer makes of
// them, or what is wrong with the file.
func (f *File) rows(ctx context.Context, from io.ReaderAt, of parquetfile.FileID, held *Held, upto segment.ID) (remade string, err error) {
	file, err := parquetfile.Open(from, f.Size)
	if err != nil {
		return "", err
	}
	if is := file.Meta().FileID; is != of {
		return "", fmt.Errorf("%w: it is %.300s", parquetfile.ErrOtherSegment, is)
	}
	left := held.all()
	hash := sha256.New()
	again := parquetfile.NewWriter(hash, of)
	err = file.Read(ctx, func(p *segment.Page) error {
		f.CRC32C = p.Digest(f.CRC32C)
		for i := range p.Len() {
			if want, there := left[p.ID(i)]; there && want == sumOf(p, i) {
				delete(left, p.ID(i))
			}
		}
		if err := again.Write(p); err != nil {
			return err
		}
		f.Begins.add(p, upto)
		return nil
	})
	if err != nil {
		return "", err
	}
	if _, err := again.Close(); err != nil {
		return "", err
	}
	if f.Contents = file.Meta().Contents; left != nil {
		f.Lacks = int64(len(left))
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// add adds the rows of a page up to an id, behind which it cuts the page off.
func (s *start) add(p *segment.Page, upto segment.ID) {
	n := 0
	for n < p.Len() && p.ID(n).Compare(upto) <= 0 {
		add(&s.Contents, p.ID(n))
		n++
	}
	p.Truncate(n)
	s.CRC32C = p.Digest(s.CRC32C)
}

// kept is the SHA-256 that was put with the object, and kept beside its bytes;
// "" = there is none. A folder keeps none: it tells that of the bytes as they are.
func (f *File) kept() string {
	if f.ETag == "" {
		return ""
	}
	return f.told
}

// unchanged says whether an object still is what was read. Where the store has
// neither an ETag nor a checksum, which change with its bytes, it is read again.
func (r reader) unchanged(ctx context.Context, f *File) (bool, error) {
	now, err := r.stat(ctx, f.Path)
	if err != nil {
		return false, err
	}
	if now.Missing || now.Size != f.Size || now.ETag != f.ETag || now.told != f.told {
		return false, nil
	}
	if now.ETag != "" || now.told != "" {
		return true, nil
	}
	spool, err := r.fetch(ctx, now)
	if err != nil {
		return false, err
	}
	return now.SHA256 == f.SHA256, spool.Close()
}
