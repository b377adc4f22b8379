package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/apache/iceberg-go/io"
	"github.com/apache/iceberg-go/table"
)

// root is the place below which all objects lie.
type root struct {
	url string // s3://bucket/prefix or file:///folder, without a slash at its end
}

// rootOf reads a remote path, which the settings have checked.
func rootOf(remotePath string) (root, error) {
	u, err := canonical(remotePath)
	if err != nil {
		return root{}, fmt.Errorf("remote-path: %w", err)
	}
	return root{u}, nil
}

// canonical is one writing for all that name one place: s3a and s3n are s3, and a
// folder without a scheme is a file.
func canonical(text string) (string, error) {
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%q is not a URL", text)
	}
	switch u.Scheme {
	case "s3", "s3a", "s3n":
		return strings.TrimSuffix("s3://"+u.Host+"/"+strings.Trim(path.Clean("/"+u.Path), "/"), "/"), nil
	case "file", "":
		return "file://" + path.Clean("/"+u.Path), nil
	}
	return strings.TrimSuffix(text, "/"), nil
}

// object is the location of an object, as a table has it. An S3 key stands there as
// it is: engines do not unescape it. A file's path is escaped as a URL's is.
func (r root) object(key string) string {
	if folder, ok := strings.CutPrefix(r.url, "file://"); ok {
		return "file://" + (&url.URL{Path: folder + "/" + key}).EscapedPath()
	}
	return r.url + "/" + key
}

// key is the path below the root of a location that object has made.
func (r root) key(location string) (string, bool) {
	rest, below := strings.CutPrefix(location, r.object(""))
	if !below || rest == "" {
		return "", false
	}
	if !strings.HasPrefix(r.url, "file://") {
		return rest, true
	}
	key, err := url.PathUnescape(rest)
	return key, err == nil
}

// holds says whether a place is the root, or below it.
func (r root) holds(location string) bool {
	place, err := canonical(location)
	return err != nil || place == r.url || strings.HasPrefix(place, r.url+"/")
}

// overlaps says whether one of the two is, or is below, the other.
func (r root) overlaps(location string) bool {
	place, err := canonical(location)
	return err != nil || r.holds(location) || strings.HasPrefix(r.url, strings.TrimSuffix(place, "/")+"/")
}

// guardedIO is the files of a table, without the right to write or to remove any
// below the root. A table's metadata can name whatever it likes as metadata of its
// own that is to be removed.
type guardedIO struct {
	io.WriteFileIO
	root root
}

var errBelowRoot = errors.New("it is below the remote path, where the only copies of segments lie")

func (g guardedIO) check(op, name string) error {
	if g.root.holds(name) {
		return &fs.PathError{Op: op, Path: name, Err: errBelowRoot}
	}
	return nil
}

// Remove refuses what is below the root.
func (g guardedIO) Remove(name string) error {
	if err := g.check("remove", name); err != nil {
		return err
	}
	return g.WriteFileIO.Remove(name)
}

// Create refuses what is below the root.
func (g guardedIO) Create(name string) (io.FileWriter, error) {
	if err := g.check("create", name); err != nil {
		return nil, err
	}
	return g.WriteFileIO.Create(name)
}

// WriteFile refuses what is below the root.
func (g guardedIO) WriteFile(name string, content []byte) error {
	if err := g.check("write", name); err != nil {
		return err
	}
	return g.WriteFileIO.WriteFile(name, content)
}

// guarded is a table all of whose files go through guardedIO.
func (r root) guarded(t *table.Table, cat table.CatalogIO) *table.Table {
	files := func(ctx context.Context) (io.IO, error) {
		all, err := t.FS(ctx)
		if err != nil {
			return nil, fmt.Errorf("open the files of the table: %w", err)
		}
		writable, ok := all.(io.WriteFileIO)
		if !ok {
			return nil, fmt.Errorf("the files of the table, at %s, can't be written", t.Location())
		}
		return guardedIO{writable, r}, nil
	}
	return table.New(t.Identifier(), t.Metadata(), t.MetadataLocation(), files, cat)
}
