package command

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
)

// table prints rows below a header, columns aligned; cells of columns whose
// header begins with '>' stand to the right.
type table struct {
	header []string
	rows   [][]string
}

func newTable(header ...string) *table { return &table{header: header} }

// add appends a row: one value per column, printed as fmt prints it.
func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// write prints the table. tabwriter aligns a whole table to one side only, so
// right-hand columns are padded here.
func (t *table) write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	all := append([][]string{make([]string, len(t.header))}, t.rows...)
	right := make([]bool, len(t.header))
	for i, h := range t.header {
		all[0][i], right[i] = strings.CutPrefix(h, ">")
	}
	width := make([]int, len(t.header))
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	for _, row := range all {
		line := make([]string, len(row))
		for i, cell := range row {
			if right[i] {
				cell = strings.Repeat(" ", width[i]-len([]rune(cell))) + cell
			}
			line[i] = cell
		}
		if _, err := fmt.Fprintln(tw, strings.TrimRight(strings.Join(line, "\t"), " \t")); err != nil {
			return fmt.Errorf("print a table: %w", err)
		}
	}
	return tw.Flush()
}

// writeJSON prints a value as indented JSON.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// size is a number of bytes for people.
func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n), -1
	for value >= unit && i < 4 {
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTP"[i])
}

// ago is a duration for people; "-" when there is none.
func ago(d time.Duration) string {
	if d <= 0 {
		return "-"
	}
	if d >= time.Minute {
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	}
	return d.Round(10 * time.Millisecond).String()
}

// rate is how many per second.
func rate(n int64, d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64(float64(n) / d.Seconds())
}
