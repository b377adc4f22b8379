package parquetfile

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// The folder testdata/frozen holds files of every version that was ever
// written. They are never written again: a program that can't read one of them,
// or reads something else from it, loses somebody's data. MANIFEST has a line
// for each: SHA-256 of the file, SHA-256 of its contents, entries, name. The
// name begins with the version.
const frozen = "testdata/frozen"

// TestFrozen reads every file that was ever frozen. With -update it adds those
// of freeze that are not there yet, and touches no other.
func TestFrozen(t *testing.T) {
	if *update {
		freezeNew(t)
	}
	manifest, err := os.ReadFile(filepath.Join(frozen, "MANIFEST"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(manifest)) {
		want := strings.TrimSpace(line)
		name := want[strings.LastIndex(want, " ")+1:]
		known[name] = true
		t.Run(name, func(t *testing.T) {
			if got := frozenLine(t, name); got != want {
				t.Errorf("it is\n%s\nwant\n%s", got, want)
			}
		})
	}
	for _, path := range frozenFiles(t) {
		if name := filepath.Base(path); !known[name] {
			t.Errorf("%s is not in the manifest", name)
		}
	}
	for version := range SchemaVersion {
		if !anyBeginsWith(known, fmt.Sprintf("v%d-", version+1)) {
			t.Errorf("no file of version %d is frozen", version+1)
		}
	}
}

func anyBeginsWith(names map[string]bool, prefix string) bool {
	for name := range names {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func frozenFiles(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(frozen, "*.parquet"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no frozen files: %v", err)
	}
	return paths
}

// frozenLine reads a file in every way, which must agree, and makes its line of
// the manifest.
func frozenLine(t *testing.T, name string) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(frozen, name))
	if err != nil {
		t.Fatal(err)
	}
	f := openFile(t, file)
	if want := fmt.Sprintf("v%d-", f.Meta().Version); !strings.HasPrefix(name, want) {
		t.Errorf("its version is %d", f.Meta().Version)
	}
	all := readFile(t, file)
	for _, back := range []bool{false, true} {
		got, err := collect(t.Context(), f, Between{}, back)
		if err != nil {
			t.Fatal(err)
		}
		equalEntries(t, got, all)
	}
	return fmt.Sprintf("%x  %x  %d  %s", sha256.Sum256(file), digestOf(all), len(all), name)
}

// digestOf is of ids, names and values, each with its length, which is all that
// a file is for.
func digestOf(entries []dataset.Entry) []byte {
	h := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(h, "%s %d\n", e.ID, len(e.Fields))
		for _, f := range e.Fields {
			add(h, f.Name)
			add(h, f.Value)
		}
	}
	return h.Sum(nil)
}

func add(h hash.Hash, b []byte) {
	fmt.Fprintf(h, "%d:", len(b))
	h.Write(b)
}

// freezeNew freezes what today's writer makes of the edge cases, if a file of
// that name is not there.
func freezeNew(t *testing.T) {
	t.Helper()
	path := filepath.Join(frozen, "MANIFEST")
	manifest, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	odd := oddLayouts()
	for _, c := range append(dataset.Cases(), odd) {
		name := fmt.Sprintf("v%d-%s.parquet", SchemaVersion, c.Name)
		file := writeFile(t, goldenID, dataset.Pages(c.Entries, 100)...)
		if bytes.Contains(manifest, []byte(" "+name+"\n")) || len(file) > goldenFileLimit && c.Name != odd.Name {
			continue
		}
		if err := os.MkdirAll(frozen, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(frozen, name), file, 0o644); err != nil {
			t.Fatal(err)
		}
		manifest = append(append(manifest, frozenLine(t, name)...), '\n')
	}
	if err := os.WriteFile(path, manifest, 0o644); err != nil {
		t.Fatal(err)
	}
}

// oddLayouts is a case with all that the writer does seldom, in a small file:
// blocks of one entry, a row group of one large entry between others, names
// that outgrow the dictionary, empty maps, and ids whose order as text is not
// their order, across blocks.
func oddLayouts() dataset.Case {
	c := dataset.Case{Name: "odd-layouts"}
	text := func(b byte, n int) []byte { return bytes.Repeat([]byte{b}, n) }
	id := segment.ID{Ms: 99, Seq: 7}
	put := func(fields ...dataset.Field) {
		c.Entries = append(c.Entries, dataset.Entry{ID: id, Fields: fields})
		if id.Seq++; id.Seq == 12 || id.Seq == 102 {
			id = segment.ID{Ms: id.Ms + 1, Seq: 98}
		}
	}
	for i := range 90 { // more than a dictionary of names
		put(dataset.Field{Name: fmt.Appendf(text('n', 900), "%d", i), Value: []byte("v")})
	}
	for range 5 { // a block each
		put(dataset.Field{Name: []byte("v"), Value: text('b', 150<<10)}, dataset.Field{Name: []byte("v")})
	}
	for i := range 200 { // plain names, and the same ones
		put(dataset.Field{Name: fmt.Appendf(text('m', 900), "%d", i%60), Value: []byte{byte(i)}})
	}
	put()
	put(dataset.Field{Name: []byte("large"), Value: text('c', groupBytes)}) // a row group
	put()
	put(dataset.Field{Name: []byte("after"), Value: []byte("it")})
	return c
}

// TestOddLayouts checks that the case is as odd as it says.
func TestOddLayouts(t *testing.T) {
	f := openFile(t, writeFile(t, goldenID, dataset.Pages(oddLayouts().Entries, 100)...))
	groups := f.lib.Metadata().RowGroups
	if len(groups) != 3 || groups[1].NumRows != 1 {
		t.Fatalf("%d row groups", len(groups))
	}
	blocks, err := f.blocks(0)
	if err != nil {
		t.Fatal(err)
	}
	single := 0
	for _, b := range blocks {
		if b.rows == 1 {
			single++
		}
	}
	encodings := map[string]bool{}
	for _, s := range groups[0].Columns[colKey].MetaData.EncodingStats {
		encodings[s.Encoding.String()] = true
	}
	if single < 3 || len(blocks) < 6 || len(encodings) < 2 {
		t.Errorf("%d blocks, %d of one entry; encodings of names: %v", len(blocks), single, encodings)
	}
}

// TestLibraryNeedsToBeTold holds what docs/file-format.md says of the library's
// own way to open a file with several row groups.
func TestLibraryNeedsToBeTold(t *testing.T) {
	file := writeFile(t, goldenID, dataset.Pages(oddLayouts().Entries, 100)...)
	open := func(options ...parquet.FileOption) (err error) {
		defer rescue(&err)
		_, err = parquet.OpenFile(bytes.NewReader(file), int64(len(file)), options...)
		return err
	}
	if err := open(parquet.SkipPageIndex(true)); err != nil {
		t.Errorf("without page index: %v", err)
	}
	if err := open(); err == nil {
		t.Error("it opens such files now: take the remark out of docs/file-format.md")
	}
}

// The folder testdata/refused holds files that must be refused, and ERRORS what
// is said of each: what was found, and what was expected.
const refused = "testdata/refused"

type full struct {
	ID     string            `parquet:"id"`
	Fields map[string][]byte `parquet:"fields"`
}

// refusedFiles makes the files that are kept in the folder.
func refusedFiles(t *testing.T) map[string][]byte {
	t.Helper()
	newer := writeFile(t, goldenID, dataset.Page(dataset.Envelope(1, 10, 2)...))
	at := bytes.Index(newer, []byte(keyVersion)) + len(keyVersion)
	newer[at+bytes.IndexByte(newer[at:], '1')] = '2'
	fields := map[string][]byte{"a": {1}}
	return map[string][]byte{
		"newer-version": newer,
		"no-metadata":   foreign(t, full{"1-0", fields}),
		"missing-column": foreign(t, struct {
			ID string `parquet:"id"`
		}{"1-0"}),
		"other-type": foreign(t, struct {
			ID     int64             `parquet:"id"`
			Fields map[string][]byte `parquet:"fields"`
		}{1, fields}),
		"text-values": foreign(t, struct {
			ID     string            `parquet:"id"`
			Fields map[string]string `parquet:"fields"`
		}{"1-0", map[string]string{"a": "b"}}),
		"extra-column": foreign(t, struct {
			ID     string            `parquet:"id"`
			Fields map[string][]byte `parquet:"fields"`
			Topic  string            `parquet:"topic"`
		}{"1-0", fields, "orders"}),
		"optional-id": foreign(t, struct {
			ID     *string           `parquet:"id,optional"`
			Fields map[string][]byte `parquet:"fields"`
		}{nil, fields}),
		"optional-fields": foreign(t, struct {
			ID     string            `parquet:"id"`
			Fields map[string][]byte `parquet:"fields,optional"`
		}{"1-0", fields}),
		"other-order": foreign(t, struct {
			Fields map[string][]byte `parquet:"fields"`
			ID     string            `parquet:"id"`
		}{fields, "1-0"}),
	}
}

// TestRefused checks that files of other kinds are refused, and the message.
func TestRefused(t *testing.T) {
	if *update {
		if err := os.MkdirAll(refused, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, file := range refusedFiles(t) {
			writeGolden(t, filepath.Join(refused, name+".parquet"), file)
		}
	}
	paths, err := filepath.Glob(filepath.Join(refused, "*.parquet"))
	if err != nil || len(paths) != len(refusedFiles(t)) {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	var said strings.Builder
	for _, path := range paths {
		file, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Open(bytes.NewReader(file), int64(len(file)))
		if !errors.Is(err, ErrNotSegmentFile) && !errors.Is(err, ErrVersion) {
			t.Errorf("%s: error %v", path, err)
		}
		fmt.Fprintf(&said, "%s: %v\n", filepath.Base(path), err)
	}
	golden := filepath.Join(refused, "ERRORS")
	if *update {
		if err := os.WriteFile(golden, []byte(said.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if said.String() != string(want) {
		t.Errorf("it says\n%s\nwant\n%s", said.String(), want)
	}
}
