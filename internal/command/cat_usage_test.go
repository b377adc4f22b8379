package command

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCatWrongUsage(t *testing.T) {
	const want = "want one of TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7; or FILE.parquet, or --object PATH"
	for args, says := range map[string]string{
		"":                                   "nothing is named: " + want,
		"orders:0 orders:1":                  `"orders:1" is one too many: ` + want,
		"orders:0 --stream x":                `--stream and "orders:0": ` + want,
		"orders":                             `"orders" names a topic: ` + want,
		"orders:x":                           `"orders:x": partition "x" is no number below 1000000: ` + want,
		"--object x orders:0":                "--object and another name: " + want,
		"orders:0 --from soon":               `--from: "soon": want a time such as 2026-01-31 (UTC), 2026-01-31T08:00Z, 2026-01-31T08:00:00.5+02:00 or 1769846400000 (milliseconds), or an id such as 1769846400000-0`,
		"orders:0 --to 2026-01-31T08:00":     `--to: "2026-01-31T08:00": of which zone? add Z for UTC, or +02:00`,
		"orders:0 --since 2026-01-31T08:00Z": `--since "2026-01-31T08:00Z": want a duration of 0 or more, such as 90s, 1m, 2h, 7d or 60000 (milliseconds); a time, or an id, goes with --from`,
		"orders:0 --from 5-0 --to 4-0":       "--from 5-0 --to 4-0: the end lies before the beginning",
		"orders:0 --since 1h --from 1":       "--since and --from: want one of them",
		"orders:0 --since never":             `--since "never": want a duration of 0 or more, such as 90s, 1m, 2h, 7d or 60000 (milliseconds)`,
		"orders:0 --since 0":                 `--since "0": want 1ms or more`,
		"orders:0 --limit -1":                "--limit -1: want 0 (all) or more",
		"orders:0 --offset -1":               "--offset -1: want 0 or more",
		"orders:0 --tier cold":               `--tier: tier "cold": want both, local or remote`,
		"orders:0 --format csv":              `--format: format "csv": want ndjson, value or xadd`,
		"orders:0 -f xadd":                   "--format xadd: say with --to-key which key the messages are to be put into",
		"orders:0 -f xadd --to-key k --decompress=zstd": "--format xadd and --decompress: the messages would not be the same any more; want one of them",
		"orders:0 -f value --envelope":                  "--envelope goes with --format ndjson",
		"orders:0 --to-key k":                           "--to-key goes with --format xadd",
		`orders:0 -f value --separator \x`:              `--separator "\\x": behind a \ want n, t, 0 or \`,
		"orders:0 --decompress=zip":                     `--decompress: codec "zip": want none, gzip, snappy, lz4 or zstd`,
		"orders:0 --decompress-limit 0":                 `--decompress-limit "0": want 1 byte or more`,
		"--stream x --decompress":                       "--decompress: only a topic's registry entry tells the codec; name it: --decompress=zstd",
		"7.parquet --tier local":                        "--tier goes with a partition, and not with one file",
		"orders:0 --from-store --tier local":            "--from-store and --tier local: want one of them",
		"--object=":                                     "--object: want the path of an object",
	} {
		r := call(t, []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x"}, append([]string{"cat"}, strings.Fields(args)...)...)
		if r.code != exitUsage || r.stdout != "" || !strings.HasPrefix(r.stderr, "korvet-offload: "+says) {
			t.Errorf("cat %s: exit %d, stdout %q\n%swant %s", args, r.code, r.stdout, r.stderr, says)
		}
	}
	if r := call(t, nil, "cat", filepath.Join(t.TempDir(), "no.parquet")); r.code != exitFault || !strings.Contains(r.stderr, "no such file") {
		t.Errorf("%+v", r)
	}
}

// brokenPipe is a stdout that nobody reads any more after so many bytes.
type brokenPipe struct {
	to   *os.File
	left int
}

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return b.to.Write(p) // its other end is closed
	}
	return len(p), nil
}

// As with "| head": it ends at once, without a word.
func TestCatIntoAClosedPipe(t *testing.T) {
	r := newCatRig(t)
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	from.Close()
	var stderr bytes.Buffer
	code := Main(context.Background(), Process{Args: []string{"korvet-offload", "cat", "orders:0"}, Environ: r.environ, Stdout: &brokenPipe{to: to}, Stderr: &stderr})
	if code != exitDone || stderr.Len() > 0 {
		t.Errorf("exit %d, %s", code, stderr.String())
	}
}
