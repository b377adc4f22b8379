package command

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"korvet-offload/internal/cmdline"
)

func TestTable(t *testing.T) {
	for name, tt := range map[string]struct {
		header []string
		rows   [][]any
		want   string
	}{
		"nothing below the header": {header: []string{"A", ">B"}, want: "A  B\n"},
		"right-hand columns": {
			header: []string{"NAME", ">COUNT", "PLACE"},
			rows:   [][]any{{"a", 5, "here"}, {"longer", 1234567, "there"}},
			want: "NAME      COUNT  PLACE\n" +
				"a             5  here\n" +
				"longer  1234567  there\n",
		},
		"the last column ends without blanks": {
			header: []string{"A", "B"},
			rows:   [][]any{{"x", ""}, {"", "long"}, {"", ""}},
			want:   "A  B\nx\n   long\n\n",
		},
		"bytes, runes and columns differ": {
			header: []string{"A", ">B", "C"},
			rows:   [][]any{{"é", "ü", 1}, {"e\u0301", "u\u0308", 2}, {"主題", "값", 3}, {"abcd", "xy", 4}},
			want: "A      B  C\n" +
				"é      ü  1\n" +
				"e\u0301      u\u0308  2\n" +
				"主題  값  3\n" +
				"abcd  xy  4\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := newTable(tt.header...)
			for _, row := range tt.rows {
				table.add(row...)
			}
			var out bytes.Buffer
			if err := table.write(&out); err != nil || out.String() != tt.want {
				t.Errorf("%v\n%s\nwant\n%s", err, out.String(), tt.want)
			}
		})
	}
}

// full refuses to take anything.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestNothingIsPrintedUnnoticed(t *testing.T) {
	if err := newTable("A").write(full{}); err == nil || err.Error() != "print a table: no space left" {
		t.Error(err)
	}
	if err := cmdline.WriteJSON(full{}, 1); err == nil || err.Error() != "print JSON: no space left" {
		t.Error(err)
	}
	for _, args := range [][]string{{"version"}, {"version", "-o", "json"}, {"completion", "bash"}, {"completion", "fish"}} {
		var stderr bytes.Buffer
		if code := Main(t.Context(), Process{Args: append([]string{"korvet-offload"}, args...), Stdout: full{}, Stderr: &stderr}); code != exitFault {
			t.Errorf("%q: exit %d: %s", args, code, &stderr)
		}
	}
}

func TestWriteJSONKeepsTextReadable(t *testing.T) {
	var out bytes.Buffer
	if err := cmdline.WriteJSON(&out, map[string]string{"a": "<b> & c"}); err != nil || out.String() != "{\n  \"a\": \"<b> & c\"\n}\n" {
		t.Errorf("%v %q", err, out.String())
	}
}

func TestAgo(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "-", 0: "-", time.Microsecond: "<1ms", 4 * time.Millisecond: "4ms", 1234 * time.Millisecond: "1.23s",
		59_994 * time.Millisecond: "59.99s", 59_999 * time.Millisecond: "1m0s", 90 * time.Second: "1m30s", 10 * time.Minute: "10m0s",
		time.Hour - time.Millisecond: "1h0m", 26*time.Hour + 3*time.Minute + 4*time.Second: "26h3m",
		48*time.Hour - time.Second: "2d0h", 509 * time.Hour: "21d5h",
	} {
		if got := ago(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestRate(t *testing.T) {
	if a, b, c := rate(10, 2*time.Second), rate(10, 0), rate(1, time.Hour); a != 5 || b != 0 || c != 0 {
		t.Error(a, b, c)
	}
}
