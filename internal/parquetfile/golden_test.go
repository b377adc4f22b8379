package parquetfile

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/dataset"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldenFileLimit is the size up to which a golden file is kept itself; of a
// larger one only its SHA-256 is.
const goldenFileLimit = 64 << 10

const sums = "testdata/SHA256SUMS"

// goldenID is the segment of every golden file.
var goldenID = FileID{StreamKey: "korvet:storage:local:golden:0", Segment: 7}

// TestGolden pins the bytes: the same segment gives the same file, today's
// program reads the files of yesterday's, and a library that encodes
// differently after an update does not go unseen.
func TestGolden(t *testing.T) {
	want := readSums(t)
	var got strings.Builder
	for _, c := range dataset.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			file := writeFile(t, goldenID, dataset.Pages(c.Entries, 100)...)
			sum := sha256.Sum256(file)
			fmt.Fprintf(&got, "%x  %s.parquet\n", sum, c.Name)
			path := filepath.Join("testdata", c.Name+".parquet")
			if *update {
				writeGolden(t, path, file)
				return
			}
			if s := hex.EncodeToString(sum[:]); s != want[c.Name] {
				t.Errorf("SHA-256 %s, want %s", s, want[c.Name])
			}
			if len(file) > goldenFileLimit {
				return
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(kept, file) {
				t.Error("the file differs from the one that is kept")
			}
			equalEntries(t, readFile(t, kept), c.Entries)
		})
	}
	if *update {
		if err := os.WriteFile(sums, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// readSums reads the pinned sums by the name of their case.
func readSums(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(sums)
	if err != nil && !*update {
		t.Fatal(err)
	}
	out := make(map[string]string)
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("%s: line %q", sums, line)
		}
		out[strings.TrimSuffix(name, ".parquet")] = sum
	}
	return out
}

func writeGolden(t *testing.T, path string, file []byte) {
	t.Helper()
	if len(file) > goldenFileLimit {
		return
	}
	if err := os.WriteFile(path, file, 0o644); err != nil {
		t.Fatal(err)
	}
}
