package command

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// outputCSV is a value of --output where there are rows.
const outputCSV = "csv"

// rowsFlag is outputFlag with CSV.
func rowsFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: outputTable, Usage: "print results as `FORMAT`: table, json or csv",
		Action: func(_ *cli.Context, format string) error {
			if format != outputTable && format != outputJSON && format != outputCSV {
				return cmdline.UsageError{Err: fmt.Errorf("--output %s: want %s, %s or %s", format, outputTable, outputJSON, outputCSV)}
			}
			return nil
		}}
}

// cell is a value as JSON and CSV have it, nil = it is not known, and as a table
// has it.
type cell struct {
	value any
	text  string
}

func textCell(text string) cell {
	if text == "" {
		return cell{nil, "-"}
	}
	return cell{text, text}
}

func numberCell[N int | int64 | segment.Number](n N) cell { return cell{n, fmt.Sprint(n)} }

// countCell is a number of which a negative one means that it is not known.
func countCell(n int64) cell {
	if n < 0 {
		return cell{nil, "-"}
	}
	return numberCell(n)
}

func sizeCell(n int64) cell { return cell{n, words.Size(n)} }

func idCell(id segment.ID) cell {
	if id.IsZero() {
		return cell{nil, "-"}
	}
	return textCell(id.String())
}

// timeCell is a time to a second for people; the zero time is not known.
func timeCell(t time.Time) cell {
	if t.IsZero() {
		return cell{nil, "-"}
	}
	return cell{t.UTC(), t.UTC().Format(time.RFC3339)}
}

// idTimeCell is when an entry of that id was added, where its id is a time.
func idTimeCell(id segment.ID) cell {
	if !segment.IsTime(id.Ms) {
		return cell{nil, "-"}
	}
	return timeCell(time.UnixMilli(int64(id.Ms))) //nolint:gosec // a time
}

// msCell is a time in epoch ms; 0 is not known.
func msCell(ms int64) cell {
	if ms <= 0 {
		return cell{nil, "-"}
	}
	return timeCell(timeOf(ms))
}

// column is the head of a column, in a table and as a field. A head that begins
// with '>' stands to the right; a column whose head is empty is in no table.
type column struct{ head, field string }

// rows prints rows as they come.
type rows interface {
	// add prints one row, with one cell for each column.
	add(cells ...cell) error
	// end prints what is left.
	end() error
}

// newRows prints rows of columns. name is what they are called together.
func newRows(w io.Writer, format, name string, columns []column) rows {
	switch format {
	case outputJSON:
		return &jsonRows{w: w, name: name, columns: columns}
	case outputCSV:
		return &csvRows{w: csv.NewWriter(w), columns: columns}
	}
	return &tableRows{w: w, columns: columns}
}

// tableAhead is by how many rows a table knows how wide its columns are. Cells
// further down that are wider push the others of their line to the right.
const tableAhead = 500

type tableRows struct {
	w       io.Writer
	columns []column
	table   *table
	widths  []int // nil until the first rows are printed
}

func (t *tableRows) add(cells ...cell) error {
	if t.table == nil {
		var heads []string
		for _, c := range t.columns {
			if c.head != "" {
				heads = append(heads, c.head)
			}
		}
		t.table = newTable(heads...)
	}
	var shown []any
	for i, c := range cells {
		if t.columns[i].head != "" {
			shown = append(shown, c.text)
		}
	}
	t.table.add(shown...)
	if len(t.table.rows) < tableAhead {
		return nil
	}
	return t.end()
}

func (t *tableRows) end() error {
	if t.table == nil {
		return nil
	}
	lines := t.table.rows
	if t.widths == nil {
		lines = append([][]string{t.table.header}, lines...)
		t.widths = make([]int, len(t.table.header))
		for _, line := range lines {
			for i, text := range line {
				t.widths[i] = max(t.widths[i], columns(text))
			}
		}
	}
	var out strings.Builder
	for _, line := range lines {
		out.WriteString(t.table.line(line, t.grown(line)))
		out.WriteByte('\n')
	}
	t.table.rows = nil
	return printed(io.WriteString(t.w, out.String()))
}

// grown are the widths, or more where a line needs it.
func (t *tableRows) grown(line []string) []int {
	widths := make([]int, len(t.widths))
	for i, w := range t.widths {
		widths[i] = max(w, columns(line[i]))
	}
	return widths
}

// jsonRows prints an object with one list, a row in each line.
type jsonRows struct {
	w       io.Writer
	name    string
	columns []column
	begun   bool
}

func (j *jsonRows) add(cells ...cell) error {
	var out strings.Builder
	if j.begun {
		out.WriteString(",\n")
	} else {
		j.begin(&out)
	}
	out.WriteString("  {")
	for i, c := range cells {
		if i > 0 {
			out.WriteByte(',')
		}
		value, err := json.Marshal(c.value)
		if err != nil {
			return fmt.Errorf("print JSON: %w", err)
		}
		fmt.Fprintf(&out, "%q:%s", j.columns[i].field, value)
	}
	out.WriteByte('}')
	return printed(io.WriteString(j.w, out.String()))
}

func (j *jsonRows) begin(out *strings.Builder) {
	j.begun = true
	fmt.Fprintf(out, "{%q:[\n", j.name)
}

func (j *jsonRows) end() error {
	var out strings.Builder
	if !j.begun {
		j.begin(&out)
	} else {
		out.WriteByte('\n')
	}
	out.WriteString("]}\n")
	return printed(io.WriteString(j.w, out.String()))
}

type csvRows struct {
	w       *csv.Writer
	columns []column
	begun   bool
}

func (c *csvRows) add(cells ...cell) error {
	c.begin()
	record := make([]string, len(cells))
	for i, one := range cells {
		switch v := one.value.(type) {
		case nil:
		case time.Time:
			record[i] = v.Format(time.RFC3339Nano)
		default:
			record[i] = fmt.Sprint(v)
		}
	}
	if err := c.w.Write(record); err != nil {
		return fmt.Errorf("print CSV: %w", err)
	}
	return nil
}

func (c *csvRows) begin() {
	if c.begun {
		return
	}
	c.begun = true
	var fields []string
	for _, one := range c.columns {
		fields = append(fields, one.field)
	}
	_ = c.w.Write(fields) // what goes wrong is said by Error at the end
}

func (c *csvRows) end() error {
	c.begin()
	c.w.Flush()
	if err := c.w.Error(); err != nil {
		return fmt.Errorf("print CSV: %w", err)
	}
	return nil
}

func printed(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("print a list: %w", err)
	}
	return nil
}
