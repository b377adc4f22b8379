package parquetfile

import (
	"fmt"
	"strconv"

	"korvet-offload/segment"
)

// SchemaVersion is the version of the files that this program writes and the
// newest that it reads.
const SchemaVersion = 1

// The footer's metadata. The names are part of the format.
const (
	keyVersion   = "korvet.offload.schema-version"
	keyStreamKey = "korvet.offload.stream-key"
	keySegment   = "korvet.offload.segment"
	keyFirstID   = "korvet.offload.first-id"
	keyLastID    = "korvet.offload.last-id"
	keyCount     = "korvet.offload.count"
)

// createdBy is in the form that readers parse. The version is that of this
// writer's page layout and not of the build: the same segment gives the same
// bytes, whichever build writes it.
const createdBy = "korvet-offload version 1.0.0 (build 0)"

// FileID names the segment whose file it is.
type FileID struct {
	StreamKey string
	Segment   segment.Number
}

// String is <stream key>/<segment>, as object paths have it.
func (f FileID) String() string { return f.StreamKey + "/" + f.Segment.String() }

// Meta is what a file's footer says of it.
type Meta struct {
	Version int // of the schema
	FileID
	segment.Contents
}

// pairs lists the metadata as it is written, names and values in turn. An
// empty file has no first and last id, which is written as "".
func (m Meta) pairs() [][2]string {
	first, last := "", ""
	if m.Count > 0 {
		first, last = m.FirstID.String(), m.LastID.String()
	}
	return [][2]string{
		{keyVersion, strconv.Itoa(m.Version)},
		{keyStreamKey, m.StreamKey},
		{keySegment, m.Segment.String()},
		{keyFirstID, first},
		{keyLastID, last},
		{keyCount, strconv.FormatInt(m.Count, 10)},
	}
}

// parseMeta reads the metadata through lookup, the version first: what the
// other fields of a later version mean is not known.
func parseMeta(lookup func(key string) (string, bool)) (m Meta, err error) {
	p := metaParser{lookup: lookup}
	if m.Version, err = p.version(); err != nil {
		return Meta{}, err
	}
	m.StreamKey = p.text(keyStreamKey)
	parse(&p, keySegment, &m.Segment, segment.ParseNumber)
	parse(&p, keyCount, &m.Count, func(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) })
	if m.Count > 0 {
		parse(&p, keyFirstID, &m.FirstID, segment.ParseID)
		parse(&p, keyLastID, &m.LastID, segment.ParseID)
	}
	if p.err == nil && m.Count < 0 {
		p.err = fmt.Errorf("%w: metadata %s = %d: want 0 or more", ErrNotSegmentFile, keyCount, m.Count)
	}
	if p.err == nil && m.FirstID.Compare(m.LastID) > 0 {
		p.err = fmt.Errorf("%w: metadata %s = %s is above %s = %s", ErrNotSegmentFile, keyFirstID, m.FirstID, keyLastID, m.LastID)
	}
	if p.err != nil {
		return Meta{}, p.err
	}
	return m, nil
}

// metaParser keeps the first error, so that each field can be read in one line.
type metaParser struct {
	lookup func(string) (string, bool)
	err    error
}

func (p *metaParser) version() (int, error) {
	text, ok := p.lookup(keyVersion)
	if !ok {
		return 0, fmt.Errorf("%w: metadata %s is missing", ErrNotSegmentFile, keyVersion)
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < 1 {
		return 0, fmt.Errorf("%w: metadata %s = %.40q: want a number from 1 upwards", ErrNotSegmentFile, keyVersion, text)
	}
	if v > SchemaVersion {
		return 0, fmt.Errorf("%w: found %d, this program reads up to %d; use a newer one", ErrVersion, v, SchemaVersion)
	}
	return v, nil
}

func (p *metaParser) text(key string) string {
	v, ok := p.lookup(key)
	if !ok && p.err == nil {
		p.err = fmt.Errorf("%w: metadata %s is missing", ErrNotSegmentFile, key)
	}
	return v
}

func parse[T any](p *metaParser, key string, to *T, read func(string) (T, error)) {
	text := p.text(key)
	if p.err != nil {
		return
	}
	v, err := read(text)
	if err != nil {
		p.err = fmt.Errorf("%w: metadata %s = %.60q: %w", ErrNotSegmentFile, key, text, err)
		return
	}
	*to = v
}
