package goreaders

import (
	"os"
	"testing"

	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"
)

func TestXitongsys(t *testing.T) { eachCase(t, readXitongsys) }

// readXitongsys reads the columns with their levels: into Go maps this reader
// would lose duplicates.
func readXitongsys(t *testing.T, path string) []row {
	f, err := osFile{}.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := reader.NewParquetColumnReader(f, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.ReadStop()
	n := r.GetNumRows()
	const root = "segment\x01"
	ids := readColumn(t, r, root+"id", n)
	keys := readColumn(t, r, root+"fields\x01key_value\x01key", n)
	values := readColumn(t, r, root+"fields\x01key_value\x01value", n)

	rows := make([]row, 0, n)
	for j := range keys.values {
		if keys.levels[j] == 0 {
			rows = append(rows, row{ID: ids.values[len(rows)].(string), Fields: [][2]string{}})
		}
		if keys.values[j] == nil {
			continue // an empty map
		}
		last := &rows[len(rows)-1]
		last.Fields = append(last.Fields, [2]string{
			show([]byte(keys.values[j].(string))), show([]byte(values.values[j].(string))),
		})
	}
	return rows
}

type column struct {
	values []any
	levels []int32 // of repetition
}

func readColumn(t *testing.T, r *reader.ParquetReader, path string, rows int64) column {
	t.Helper()
	if rows == 0 {
		return column{}
	}
	values, levels, _, err := r.ReadColumnByPath(path, rows)
	if err != nil {
		t.Fatalf("column %q: %v", path, err)
	}
	return column{values, levels}
}

// osFile is a file as this library wants it.
type osFile struct{ *os.File }

// Open opens the same file once more where there is no name.
func (o osFile) Open(name string) (source.ParquetFile, error) {
	if name == "" {
		name = o.Name()
	}
	f, err := os.Open(name)
	return osFile{f}, err
}

func (osFile) Create(name string) (source.ParquetFile, error) {
	f, err := os.Create(name)
	return osFile{f}, err
}
