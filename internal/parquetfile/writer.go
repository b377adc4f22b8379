package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"korvet-offload/segment"
)

// Where pages and row groups end. The entries alone decide, never how they
// were cut into calls: changing one of these numbers changes the bytes of
// every file and so needs a new createdBy.
const (
	// A block is one page of each column, over the same rows.
	blockRows  = 8192
	blockBytes = 256 << 10 // of cost: names, values and overhead, uncompressed

	// groupBytes is the compressed size from which a row group is closed.
	groupBytes = 4 << 20

	// dictionaryBytes of distinct field names are kept in a row group's
	// dictionary; the names that follow are written plainly.
	dictionaryBytes = 64 << 10

	// fieldCost and rowCost are at least what the library adds, per field and
	// per row, when it measures a column, so that a page never reaches
	// libraryPage before its block ends.
	fieldCost = 16
	rowCost   = 32

	// libraryPage is the size from which the library would end a page by
	// itself. Only an entry that fills a block alone can reach it.
	libraryPage = 2 * blockBytes
)

// MaxEntryBytes is what the names, or the values, of one entry may have: a
// row can't be split over two pages, and a page's size is a signed 32-bit
// number, compressed (with room for what does not compress) or not.
const MaxEntryBytes = math.MaxInt32 - 32<<20

// batchRows are handed to the library at once.
const batchRows = 256

// Writer writes one segment file. It is not safe for concurrent use.
type Writer struct {
	id       FileID
	out      output
	lib      *parquet.GenericWriter[any]
	cols     []*parquet.ColumnWriter
	batch    batch
	block    extent
	group    int64 // lib.Size() where the row group began
	contents segment.Contents
	err      error // first error: the file is lost
}

// extent is what a block holds so far.
type extent struct {
	rows int
	cost int
}

// NewWriter begins a file that goes to w. Nothing is written before the first
// row group is full or Close is called.
//
// A Writer is for one file. The library can reset its own, but then leaves the
// columns' paths out of the next footer; the memory that matters comes from
// pools that all writers share.
func NewWriter(w io.Writer, id FileID) *Writer { return newWriter(w, id, new(codec)) }

func newWriter(to io.Writer, id FileID, c compress.Codec) *Writer {
	w := &Writer{id: id, out: output{to: to}, batch: newBatch()}
	w.lib = parquet.NewGenericWriter[any](&w.out, writerOptions(c)...)
	w.cols = w.lib.ColumnWriters()
	return w
}

// Write adds the entries of a page, which may be reused when it returns. Ids
// must ascend, from page to page too. After an error the file is lost and
// every further call gives that error.
func (w *Writer) Write(p *segment.Page) error {
	if w.err != nil {
		return w.err
	}
	if err := w.write(p); err != nil {
		w.err = fmt.Errorf("write segment file %s: %w", w.id, err)
	}
	return w.err
}

func (w *Writer) write(p *segment.Page) (err error) {
	defer rescue(&err)
	for i := range p.Len() {
		if err := w.add(p, i); err != nil {
			return fmt.Errorf("entry %s: %w", p.ID(i), err)
		}
	}
	// The batch refers to the page's memory, so it must not outlive the call.
	return w.flushBatch()
}

// Close writes what is left and the footer, and says what the file holds. It
// does not close the destination.
func (w *Writer) Close() (segment.Contents, error) {
	if w.err != nil {
		return segment.Contents{}, w.err
	}
	if err := w.close(); err != nil {
		w.err = fmt.Errorf("write segment file %s: %w", w.id, err)
		return segment.Contents{}, w.err
	}
	w.err = errClosed
	return w.contents, nil
}

var errClosed = errors.New("write segment file: it is closed")

func (w *Writer) close() (err error) {
	defer rescue(&err)
	if err := w.endBlock(); err != nil {
		return err
	}
	if err := w.endGroup(); err != nil {
		return err
	}
	if err := w.writeFooter(); err != nil {
		return fmt.Errorf("footer: %w", err)
	}
	return nil
}

// add puts entry i of the page into the batch, and ends blocks before and
// after it as its size demands.
func (w *Writer) add(p *segment.Page, i int) error {
	id := p.ID(i)
	if w.contents.Count > 0 && id.Compare(w.contents.LastID) <= 0 {
		return fmt.Errorf("%w: it follows %s", ErrOrder, w.contents.LastID)
	}
	cost, err := entryCost(p, i)
	if err != nil {
		return err
	}
	if err := w.makeRoom(cost); err != nil {
		return err
	}
	w.batch.add(p, i)
	w.block.rows++
	w.block.cost += cost
	w.count(id)
	switch {
	case w.block.rows == blockRows || w.block.cost >= blockBytes:
		return w.endBlock()
	case w.batch.rows() == batchRows:
		return w.flushBatch()
	}
	return nil
}

// makeRoom ends the block if an entry of that cost would make it too large,
// and the row group if it would be a row group of its own: the entries before
// it must not bring a group of the largest size over the limit.
func (w *Writer) makeRoom(cost int) error {
	if w.block.rows > 0 && w.block.cost+cost > blockBytes {
		if err := w.endBlock(); err != nil {
			return err
		}
	}
	if cost >= groupBytes && w.lib.Size() > w.group {
		return w.endGroup()
	}
	return nil
}

func (w *Writer) count(id segment.ID) {
	if w.contents.Count == 0 {
		w.contents.FirstID = id
	}
	w.contents.LastID = id
	w.contents.Count++
}

// entryCost is what the entry counts towards its block. It refuses an entry
// that no page could hold or whose field names can't be Parquet STRINGs.
func entryCost(p *segment.Page, i int) (int, error) {
	lo, hi := p.Fields(i)
	overhead := rowCost + fieldCost*(hi-lo)
	names, values := overhead, overhead
	for j := lo; j < hi; j++ {
		name := p.Name(j)
		if !utf8.Valid(name) {
			return 0, fmt.Errorf("field %d, %s: %w", j-lo, quote(name), segment.ErrFieldName)
		}
		names += len(name)
		values += len(p.Value(j))
	}
	if names > MaxEntryBytes || values > MaxEntryBytes {
		return 0, fmt.Errorf("%w: %d bytes of names and %d of values, %d at most of either",
			ErrTooLarge, names-overhead, values-overhead, MaxEntryBytes-overhead)
	}
	return names + values - overhead, nil
}

// quote shows a name in one short line, whatever it holds.
func quote(name []byte) string {
	if len(name) > 40 {
		return fmt.Sprintf("%q... (%d bytes)", name[:40], len(name))
	}
	return fmt.Sprintf("%q", name)
}

func (w *Writer) flushBatch() error {
	for c, values := range w.batch.values {
		if len(values) == 0 {
			continue
		}
		if _, err := w.cols[c].WriteRowValues(values); err != nil {
			return err
		}
	}
	w.batch.reset()
	return nil
}

// endBlock ends the page of every column, and the row group if it is large
// enough.
func (w *Writer) endBlock() error {
	if err := w.flushBatch(); err != nil {
		return err
	}
	for _, c := range w.cols {
		if err := c.Flush(); err != nil {
			return err
		}
	}
	alone := w.block.cost >= groupBytes // see makeRoom
	w.block = extent{}
	if !alone && w.lib.Size()-w.group < groupBytes {
		return nil
	}
	return w.endGroup()
}

// endGroup writes the row group out. The block has ended.
func (w *Writer) endGroup() error {
	if err := w.lib.Flush(); err != nil {
		return err
	}
	w.group = w.lib.Size()
	return nil
}

// writerOptions are single options and not one WriterConfig, because the
// library merges a config into its defaults, and can't turn a default off.
func writerOptions(c compress.Codec) []parquet.WriterOption {
	return []parquet.WriterOption{
		newSchema(),
		parquet.DataPageVersion(1),
		parquet.PageBufferSize(libraryPage),
		parquet.DictionaryMaxBytes(dictionaryBytes),
		parquet.Compression(c),
		// Values and names come from outside and may be of any size: neither
		// a footer nor a page header may repeat them.
		parquet.DataPageStatistics(false),
		parquet.SkipPageBounds("fields", "key_value", "key"),
		parquet.SkipPageBounds("fields", "key_value", "value"),
		parquet.ColumnIndexSizeLimit(func([]string) int { return maxIDBytes }),
	}
}

// maxIDBytes is the length of the longest id, so bounds of ids are exact.
const maxIDBytes = len("18446744073709551615-18446744073709551615")

// output is where the library writes: through to the destination, or, while
// the footer is made, into memory.
type output struct {
	to   io.Writer
	tail *bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	if o.tail != nil {
		return o.tail.Write(b)
	}
	return o.to.Write(b)
}
