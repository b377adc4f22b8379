package command

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// table prints rows below a header, columns aligned; cells of columns whose
// header begins with '>' stand to the right.
type table struct {
	header []string
	right  []bool // by column
	rows   [][]string
}

func newTable(header ...string) *table {
	t := &table{header: make([]string, len(header)), right: make([]bool, len(header))}
	for i, h := range header {
		t.header[i], t.right[i] = strings.CutPrefix(h, ">")
	}
	return t
}

// add appends a row: one value per column, printed as fmt prints it.
func (t *table) add(cells ...any) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = fmt.Sprint(c)
	}
	t.rows = append(t.rows, row)
}

// write prints the table: columns stand two blanks apart, lines end without
// blanks.
func (t *table) write(w io.Writer) error {
	all := append([][]string{t.header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, row := range all {
		for i, cell := range row {
			widths[i] = max(widths[i], columns(cell))
		}
	}
	var out strings.Builder
	for _, row := range all {
		out.WriteString(t.line(row, widths))
		out.WriteByte('\n')
	}
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print a table: %w", err)
	}
	return nil
}

// line pads the cells of a row.
func (t *table) line(row []string, widths []int) string {
	padded := make([]string, len(row))
	for i, cell := range row {
		blanks := strings.Repeat(" ", widths[i]-columns(cell))
		if padded[i] = cell + blanks; t.right[i] {
			padded[i] = blanks + cell
		}
	}
	return strings.TrimRight(strings.Join(padded, "  "), " ")
}

// columns is how many columns of a terminal a text takes: East Asian wide
// runes take two, marks that go on top of others none.
func columns(text string) (n int) {
	for _, r := range text {
		switch kind := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r):
		case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// ago is a duration for people, to two or three digits that matter; "-" when
// there is none.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d <= 0:
		return "-"
	case d < time.Millisecond:
		return "<1ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d.Round(10*time.Millisecond) < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	case d.Round(time.Second) < time.Hour:
		return d.Round(time.Second).String()
	case d.Round(time.Minute) < 2*day:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
}

// rate is how many per second.
func rate(n int64, d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64(float64(n) / d.Seconds())
}
