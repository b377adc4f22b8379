package goreaders

import (
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
)

func TestArrow(t *testing.T) { eachCase(t, readArrow) }

// readArrow reads a file into Arrow records. Their map type keeps order and
// duplicates.
func readArrow(t *testing.T, path string) []row {
	f, err := file.OpenParquetFile(path, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return readArrowFile(t, f)
}

func readArrowFile(t *testing.T, f *file.Reader) []row {
	t.Helper()
	r, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{BatchSize: 1000}, memory.DefaultAllocator)
	if err != nil {
		t.Fatal(err)
	}
	records, err := r.GetRecordReader(t.Context(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Release()
	rows := []row{}
	for records.Next() {
		rows = append(rows, arrowRows(t, records.RecordBatch())...)
	}
	if err := records.Err(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func arrowRows(t *testing.T, rec arrow.RecordBatch) []row {
	t.Helper()
	ids, ok := rec.Column(0).(*array.String)
	if !ok {
		t.Fatalf("column id is a %T", rec.Column(0))
	}
	maps, ok := rec.Column(1).(*array.Map)
	if !ok {
		t.Fatalf("column fields is a %T", rec.Column(1))
	}
	keys, values := maps.Keys().(*array.String), maps.Items().(*array.Binary)
	rows := make([]row, rec.NumRows())
	for i := range rows {
		rows[i] = row{ID: ids.Value(i), Fields: [][2]string{}}
		lo, hi := maps.ValueOffsets(i)
		for j := int(lo); j < int(hi); j++ {
			rows[i].Fields = append(rows[i].Fields, [2]string{show([]byte(keys.Value(j))), show(values.Value(j))})
		}
	}
	return rows
}
