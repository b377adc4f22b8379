package offload

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"korvet-offload/segment"
)

func (w *world) Delete(ctx context.Context, paths []string) []error {
	errs := make([]error, len(paths))
	err := w.call(ctx, fmt.Sprintf("delete %d", len(paths)), func() error {
		for i, p := range paths {
			if w.locked[p] {
				errs[i] = fmt.Errorf("delete %s: %w", p, ErrDeleteDenied)
				continue
			}
			delete(w.objects, p)
		}
		return nil
	})
	for i := range errs {
		if err != nil {
			errs[i] = err
		}
	}
	return errs
}

func (w *world) CreateOnly(ctx context.Context) (ok bool, err error) {
	err = w.call(ctx, "createonly", func() error { ok = w.createOnly; return nil })
	return ok, err
}

func (w *world) Put(ctx context.Context, u Upload) (info ObjectInfo, err error) {
	body, err := io.ReadAll(io.NewSectionReader(u.Body, 0, u.Size))
	if err != nil {
		return info, err
	}
	err = w.call(ctx, "put "+u.Path, func() error {
		if _, taken := w.objects[u.Path]; taken && w.createOnly {
			return fmt.Errorf("put %s: %w", u.Path, ErrObjectExists)
		}
		sum := sha256.Sum256(body)
		if hex.EncodeToString(sum[:]) != u.SHA256 {
			return errors.New("checksum does not match the body")
		}
		o := fakeObject{body: body, meta: u.Meta, sha: u.SHA256, etag: u.SHA256[:8]}
		info = o.info()
		if w.damageNext {
			w.damageNext, o = false, o.altered()
		}
		w.objects[u.Path] = o
		return nil
	})
	return info, err
}

// altered is an object with another byte, which the store knows nothing of
// before it looks.
func (o fakeObject) altered() fakeObject {
	o.body = slices.Clone(o.body)
	o.body[len(o.body)-2] ^= 1
	sum := sha256.Sum256(o.body)
	o.sha = hex.EncodeToString(sum[:])
	o.etag = o.sha[:8]
	return o
}

func (o fakeObject) info() ObjectInfo {
	return ObjectInfo{Size: int64(len(o.body)), ETag: o.etag, SHA256: o.sha, Meta: o.meta}
}

func (w *world) Stat(ctx context.Context, path string) (info ObjectInfo, err error) {
	err = w.call(ctx, "stat "+path, func() error {
		o, ok := w.objects[path]
		if !ok {
			return fmt.Errorf("stat %s: %w", path, ErrObjectMissing)
		}
		info = o.info()
		return nil
	})
	return info, err
}

func (w *world) Open(ctx context.Context, path string) (body io.ReadCloser, err error) {
	err = w.call(ctx, "open "+path, func() error {
		o, ok := w.objects[path]
		if !ok {
			return fmt.Errorf("open %s: %w", path, ErrObjectMissing)
		}
		body = io.NopCloser(bytes.NewReader(o.body))
		return nil
	})
	return body, err
}

// fakeEncoding writes JSON: what is under test is the order of steps, not the
// file format.
type fakeEncoding struct{ w *world }

type fakeFile struct {
	Of      FileOf
	Entries []fakeEntry
}

func (f fakeFile) contents() segment.Contents {
	c := segment.Contents{Count: int64(len(f.Entries))}
	if c.Count > 0 {
		c.FirstID, c.LastID = f.Entries[0].ID, f.Entries[c.Count-1].ID
	}
	return c
}

type fakeEncoder struct {
	world *world
	to    io.Writer
	file  fakeFile
}

func (f fakeEncoding) NewEncoder(w io.Writer, of FileOf) Encoder {
	return &fakeEncoder{world: f.w, to: w, file: fakeFile{Of: of}}
}

func (e *fakeEncoder) Write(p *segment.Page) error {
	e.world.mu.Lock()
	defer e.world.mu.Unlock()
	if err := e.world.hook("encode " + e.file.Of.StreamKey + "/" + e.file.Of.Segment.String()); err != nil {
		return err
	}
	for i := range p.Len() {
		entry := fakeEntry{ID: p.ID(i)}
		for lo, hi := p.Fields(i); lo < hi; lo++ {
			entry.Fields = append(entry.Fields, [2]string{string(p.Name(lo)), string(p.Value(lo))})
		}
		e.file.Entries = append(e.file.Entries, entry)
	}
	return nil
}

func (e *fakeEncoder) Close() (segment.Contents, error) {
	return e.file.contents(), json.NewEncoder(e.to).Encode(e.file)
}

func (f fakeEncoding) Check(r io.ReaderAt, size int64, of FileOf) (segment.Contents, error) {
	file, err := readFake(io.NewSectionReader(r, 0, size))
	if err != nil {
		return segment.Contents{}, err
	}
	if file.Of != of {
		return segment.Contents{}, fmt.Errorf("a file of %v", file.Of)
	}
	return file.contents(), nil
}

func readFake(r io.Reader) (f fakeFile, err error) {
	return f, json.NewDecoder(r).Decode(&f)
}

// object puts an object for a segment that was copied before the test begins.
func (w *world) object(p segment.Partition, n segment.Number, entries []fakeEntry) segment.Object {
	body, err := json.Marshal(fakeFile{Of: FileOf{StreamKey: segment.DefaultLayout().StreamKey(p), Segment: n}, Entries: entries})
	if err != nil {
		w.t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	o := fakeObject{body: body, sha: hex.EncodeToString(sum[:])}
	o.etag = o.sha[:8]
	path := segment.ObjectPath(segment.DefaultLayout().Folder(p), n, 0, "")
	w.objects[path] = o
	return segment.Object{Path: path, Bytes: int64(len(body)), ETag: o.etag, SHA256: o.sha}
}
