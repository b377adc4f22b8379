package command

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/objectfile"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// errOtherLife says that two objects of a segment are not copies of one stream.
var errOtherLife = errors.New("they are of another life of the topic, or redis was emptied since; it may be their only copy (cat FILE shows it): remove it by hand if nobody needs it")

// earlierCopy says why an object is not an earlier copy of what the one that the
// entry of its segment names holds. Copies of one stream begin with the same
// message, and only grow at the end: an object whose first message is another one
// was made before the topic was, or in another Redis. It reads the two footers,
// and of each file the first message and the one that the older ends with, which
// may have been deleted since.
func earlierCopy(ctx context.Context, store s3sink.Store, id parquetfile.FileID, older catalog.Object, named segment.Object) error {
	was, err := openCopy(ctx, store, older.Info.Key, older.Info.Size, id)
	if err != nil {
		return fmt.Errorf("it is no file of this segment that can be read: %w", err)
	}
	defer was.close()
	is, err := openCopy(ctx, store, named.Path, named.Bytes, id)
	if err != nil {
		return fmt.Errorf("%s, which the entry names, can't be read: %w", named.Path, err)
	}
	defer is.close()
	w, n := was.file.Meta().Contents, is.file.Meta().Contents
	if w.Count == 0 {
		return nil
	}
	if n.Count == 0 || w.FirstID != n.FirstID || w.LastID.Compare(n.LastID) > 0 {
		return fmt.Errorf("its messages, %s to %s, are not among those of %s, %s to %s: %w", w.FirstID, w.LastID, named.Path, n.FirstID, n.LastID, errOtherLife)
	}
	for _, at := range []segment.ID{w.FirstID, w.LastID} {
		a, _, err := was.row(ctx, at)
		if err != nil {
			return err
		}
		b, there, err := is.row(ctx, at)
		if err != nil {
			return err
		}
		if a != b && (there || at == w.FirstID) {
			return fmt.Errorf("its message %s is not that of %s: %w", at, named.Path, errOtherLife)
		}
	}
	return nil
}

// openFile is a segment file on the store.
type openFile struct {
	path   string
	reader *objectfile.Reader
	file   *parquetfile.File
}

func openCopy(ctx context.Context, store s3sink.Store, path string, size int64, id parquetfile.FileID) (*openFile, error) {
	r := objectfile.New(ctx, store, path, size)
	f, err := parquetfile.Open(r, size)
	if err == nil && f.Meta().FileID != id {
		err = fmt.Errorf("%w: it is %.300s", parquetfile.ErrOtherSegment, f.Meta().FileID)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &openFile{path, r, f}, nil
}

func (f *openFile) close() { _ = f.reader.Close() } // it was only read

// row is a digest of the message with an id, and whether there is one.
func (f *openFile) row(ctx context.Context, id segment.ID) (digest uint32, there bool, err error) {
	table := crc32.MakeTable(crc32.Castagnoli)
	err = f.file.ReadBetween(ctx, parquetfile.Between{From: id, To: id}, func(p *segment.Page, lo, hi int) error {
		for i := lo; i < hi; i++ {
			there = true
			first, last := p.Fields(i)
			for j := first; j < last; j++ {
				digest = crc32.Update(digest, table, fmt.Appendf(nil, "%d %d ", len(p.Name(j)), len(p.Value(j))))
				digest = crc32.Update(crc32.Update(digest, table, p.Name(j)), table, p.Value(j))
			}
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("read message %s of %s: %w", id, f.path, err)
	}
	return digest, there, err
}
