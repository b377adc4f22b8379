package goreaders

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/parquet/file"

	"korvet-offload/internal/testkit/dataset"
)

// Readers that fetch ranges over HTTP read what serve serves.
func TestServedFiles(t *testing.T) {
	root := t.TempDir()
	c := dataset.Case{Name: "served", Entries: dataset.Envelope(7, 1024, 30_000)}
	path := writeCase(t, t.TempDir(), c)
	folder := filepath.Join(root, "korvet:storage:local:orders:0")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, filepath.Join(folder, "7.parquet")); err != nil {
		t.Fatal(err)
	}
	url := startServe(t, root) + "/v1/topics/orders/0/segments/7.parquet"
	t.Run("hyparquet", func(t *testing.T) {
		got, want := runNode(t, []string{"read.mjs", "hyparquet", url})[url], rowsOf(c.Entries)
		for i := range want {
			want[i] = asObject(want[i])
		}
		for i := range got {
			got[i] = asObject(got[i])
		}
		compare(t, got, want)
	})
	t.Run("arrow", func(t *testing.T) {
		r, err := file.NewParquetReader(&ranged{t: t, url: url})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		compare(t, readArrowFile(t, r), rowsOf(c.Entries))
	})
}

// startServe runs the program on a folder until the test ends.
func startServe(t *testing.T, root string) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "korvet-offload")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(bin, "serve", "--from-store", "--remote-path", "file://"+root, "--serve-address", "127.0.0.1:0", "--log-format", "json")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, stderr)
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	at := regexp.MustCompile(`"address":"([^"]+)"`)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			return "http://" + m[1]
		}
	}
	t.Fatalf("it does not listen: %v", lines.Err())
	return ""
}

// ranged is a file that is read over HTTP, range by range.
type ranged struct {
	t      *testing.T
	url    string
	offset int64
	size   int64
}

func (r *ranged) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		if r.size == 0 {
			a, err := http.Head(r.url)
			if err != nil {
				return 0, err
			}
			_ = a.Body.Close()
			r.size = a.ContentLength
		}
		offset += r.size
	}
	r.offset = offset
	return offset, nil
}

func (r *ranged) Read(b []byte) (int, error) {
	n, err := r.ReadAt(b, r.offset)
	r.offset += int64(n)
	return n, err
}

func (r *ranged) ReadAt(b []byte, offset int64) (int, error) {
	q, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, r.url, http.NoBody)
	if err != nil {
		return 0, err
	}
	q.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", offset, offset+int64(len(b))-1))
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	switch a.StatusCode {
	case http.StatusRequestedRangeNotSatisfiable:
		return 0, io.EOF
	case http.StatusPartialContent:
	default:
		return 0, fmt.Errorf("range of %s: %s", r.url, a.Status)
	}
	n, err := io.ReadFull(a.Body, b)
	if err == io.ErrUnexpectedEOF {
		err = io.EOF
	}
	return n, err
}
