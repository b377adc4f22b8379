package load

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// spoolless keeps unfinished files out of memory: how much of it they may take
// is a setting, and would hide what records take.
const spoolless = "KORVET_STORAGE_OFFLOAD_SPOOL_MEMORY=1MB"

// base is what the program takes whatever it copies: its own pages, Go's
// runtime, a writer with its row group, pages read ahead.
const base = 80 * mib

// perRecord is how many times its size a large record takes at most. It has been
// seen to be 5 to 6: the reply, in a buffer that doubles, and the writer's copies
// of it, compressed and not, of which some are garbage when others are made.
const perRecord = 8

func orders() segment.Partition { return segment.Partition{Topic: "orders"} }

// withLarge is tiny messages with large ones among them, one each so often.
func withLarge(tiny, large, bytes int) content {
	every := tiny / (large + 1)
	return content{tiny + large, func(i int) []string {
		if n := i / (every + 1); i%(every+1) == every && n < large {
			return []string{"key", "large", "value", noise(uint64(n)+1, bytes)} //nolint:gosec // a count
		}
		return []string{"key", strconv.Itoa(i), "value", "tiny"}
	}}
}

// tinyOnly is a segment beside the one that is special.
func tinyOnly() content { return withLarge(100, 0, 0) }

// A huge record is copied like any other. Asserted: both segments are copied,
// and hold what was loaded, as this program's reader and another one see it;
// the peak is bounded by a multiple of the record.
//
//fault:load | A record of 512 MiB next to tiny ones | a real Redis with its largest text (48 MiB in short), a folder and a real S3 server | it is copied and read back equal, also by DuckDB, in memory of at most 8 times its size
func TestAHugeRecord(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *rig{"folder": func(t *testing.T) *rig { return newRig(t) }, "s3": newS3Rig} {
		t.Run(name, func(t *testing.T) {
			bytes := size(48, 512) * mib
			if name == "s3" { // what differs is the upload, in parts
				bytes = 24 * mib
			}
			r := make(t)
			r.topic("orders", 1)
			huge := withLarge(1000, 1, bytes)
			r.sealed(orders(), 0, huge)
			r.sealed(orders(), 1, tinyOnly())
			got := r.once(size(2*time.Minute, 20*time.Minute), nil, spoolless)
			r.mustHaveDone(got)
			r.mustHold(orders(), 0, huge)
			r.mustHold(orders(), 1, tinyOnly())
			if name == "folder" {
				mustHoldForDuckDB(t, r.path(orders(), 0), huge)
			}
			t.Logf("a record of %s: %s, peak memory %s, %.1f times its size", inMiB(int64(bytes)), got.took.Round(time.Millisecond), inMiB(got.peak), float64(got.peak)/float64(bytes))
			if bound := int64(base + perRecord*bytes); got.peak > bound {
				t.Errorf("peak memory %s, want at most %s", inMiB(got.peak), inMiB(bound))
			}
		})
	}
}

// mustHoldForDuckDB checks a file with a reader that shares no code with the
// writer.
func mustHoldForDuckDB(t *testing.T, path string, c content) {
	t.Helper()
	if _, err := os.Stat("../readers/node_modules"); err != nil {
		t.Fatal("DuckDB is not installed: make setup")
	}
	cmd := exec.Command("node", "../readers/read.mjs", "duckdb", path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("read %s with DuckDB: %v: %s", path, err, tail(stderr.String()))
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64*mib)
	lines.Scan() // the file's name
	next := 0
	for ; lines.Scan(); next++ {
		var row struct {
			ID     string
			Fields [][2]string
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%v in %.200q", err, lines.Text())
		}
		want := c.fields(next)
		if row.ID != idOf(next).String() || len(row.Fields) != len(want)/2 {
			t.Fatalf("DuckDB sees entry %s with %d fields, want %s with %d", row.ID, len(row.Fields), idOf(next), len(want)/2)
		}
		for j, f := range row.Fields {
			if f != [2]string{shown(want[2*j]), shown(want[2*j+1])} {
				t.Fatalf("DuckDB sees field %d of entry %s as %.100q", j, row.ID, f)
			}
		}
	}
	if lines.Err() != nil || next != c.count {
		t.Fatalf("DuckDB sees %d of %d entries: %v", next, c.count, lines.Err())
	}
}

// shown is a text as test/readers shows it.
func shown(text string) string {
	if len(text) <= 512 {
		return hex.EncodeToString([]byte(text))
	}
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%d:%s", len(text), hex.EncodeToString(sum[:]))
}

// Several huge records share no page and no row group, so that they take no
// more memory than one. Asserted: both segments hold what was loaded; five
// records take at most one more of them than one does, which is read ahead.
//
//fault:load | Five records of 450 MiB among 100,000 tiny ones | a real Redis (five of 40 MiB among 5,000 in short), compared with a single such record | copied and read back equal, pages and row groups end before a record would not fit, memory is that of about one record
func TestSeveralHugeRecords(t *testing.T) {
	tiny, bytes := size(5000, 100_000), size(40, 450)*mib
	var peaks [2]int64
	for i, large := range []int{1, 5} {
		r := newRig(t)
		r.topic("orders", 1)
		c := withLarge(tiny, large, bytes)
		r.sealed(orders(), 0, c)
		got := r.once(size(3*time.Minute, 30*time.Minute), nil, spoolless)
		r.mustHaveDone(got)
		r.mustHold(orders(), 0, c)
		peaks[i] = got.peak
		t.Logf("%d records of %s among %d: %s, peak memory %s", large, inMiB(int64(bytes)), tiny, got.took.Round(time.Millisecond), inMiB(got.peak))
		r.redis.Stop() // it holds them all
	}
	if bound := peaks[0] + int64(3*bytes) + base; peaks[1] > bound {
		t.Errorf("five records took %s, and one %s", inMiB(peaks[1]), inMiB(peaks[0]))
	}
}

// Records of many fields, and fields of odd sizes. Asserted: all is read back
// equal, by another reader too, within the base of memory and a few times the
// record.
//
//fault:load | A record with 10,000 fields, empty names and values, names of 64 KiB | a real Redis | copied and read back equal, field by field in their order, also by DuckDB
func TestManyFields(t *testing.T) {
	const fields = 10_000
	long := strings.Repeat("n", 64<<10)
	c := content{50, func(i int) []string {
		switch {
		case i == 7:
			return []string{"", "", long, "", "", "again", long + "\u00e9", noise(7, 70_000), long, "twice"}
		case i != 30:
			return []string{"key", strconv.Itoa(i), "value", ""}
		}
		all := make([]string, 0, 2*fields)
		for f := range fields {
			all = append(all, "field "+strconv.Itoa(f%9000), noise(uint64(f), f%300)) //nolint:gosec // a count
		}
		return all
	}}
	r := newRig(t)
	r.topic("orders", 1)
	r.sealed(orders(), 0, c)
	got := r.once(2*time.Minute, nil, spoolless)
	r.mustHaveDone(got)
	r.mustHold(orders(), 0, c)
	mustHoldForDuckDB(t, r.path(orders(), 0), c)
	t.Logf("%d fields in a record: %s, peak memory %s", fields, got.took.Round(time.Millisecond), inMiB(got.peak))
	if got.peak > base+20*mib {
		t.Errorf("peak memory %s", inMiB(got.peak))
	}
}

// A record beyond what the server hands out is refused, by the names of its
// segment and of the limit, and stays where it is. Asserted: exit code 1, one
// line with both, the entry as it was, the other segment copied.
//
//fault:load | A record that is larger than the server's client-output-buffer-limit | a real Redis with a limit of 16 MB for normal clients and a record of 24 MiB | the segment is refused with its name and the limit's, nothing of it is lost, the others are copied
func TestARecordBeyondTheServersLimit(t *testing.T) {
	r := newRig(t, "--client-output-buffer-limit", "normal 16mb 16mb 1")
	r.topic("orders", 2)
	other := segment.Partition{Topic: "orders", Number: 1}
	r.sealed(orders(), 0, withLarge(10, 1, 24*mib))
	r.sealed(other, 0, tinyOnly())
	before := r.entry(orders(), 0)
	got := r.once(2*time.Minute, nil)
	key := r.layout.SegmentKey(orders(), 0)
	told := false
	for line := range strings.Lines(got.stderr) {
		told = told || strings.Contains(line, key) && strings.Contains(line, "client-output-buffer-limit")
	}
	if got.code != 1 || !told {
		t.Errorf("exit code %d, want 1, and a line with %s and client-output-buffer-limit:\n%s", got.code, key, tail(got.stderr))
	}
	if after := r.entry(orders(), 0); string(after.Encode()) != string(before.Encode()) {
		t.Errorf("its entry was %s, and is %s", before.Encode(), after.Encode())
	}
	if n := strings.TrimSpace(r.redis.Exec("XLEN", key)); n != "11" {
		t.Errorf("its stream has %s entries", n)
	}
	r.mustHold(other, 0, tinyOnly())
}

// A segment may be as long as it likes. Asserted: number, first and last id
// and every message; ten times the messages take the same memory, give or take
// what garbage happens to be there, and the tenth stays below the base.
//
//fault:load | 2,000,000 records in one segment | a real Redis (300,000 in short), compared with a tenth of it | copied with the right number, first and last id, in the same memory
func TestALongSegment(t *testing.T) {
	most := size(300_000, 2_000_000)
	var peaks []int64
	for _, count := range []int{most / 10, most} {
		r := newRig(t)
		r.topic("orders", 1)
		c := content{count, func(i int) []string { return []string{"key", strconv.Itoa(i), "value", noise(uint64(i), 150)} }} //nolint:gosec // a count
		r.sealed(orders(), 0, c)
		got := r.once(size(2*time.Minute, 20*time.Minute), nil, spoolless)
		r.mustHaveDone(got)
		r.mustHold(orders(), 0, c)
		peaks = append(peaks, got.peak)
		t.Logf("%d records: %s, peak memory %s", count, got.took.Round(time.Millisecond), inMiB(got.peak))
		r.redis.Stop()
	}
	const garbage = 32 * mib // what is kept of the records would be more: they differ by 45 MiB and more
	if peaks[1] > peaks[0]+garbage || peaks[0] > base {
		t.Errorf("peak memory %s, and with a tenth of the records %s; want no more than %s between them, and %s at most for the tenth", inMiB(peaks[1]), inMiB(peaks[0]), inMiB(garbage), inMiB(base))
	}
}
