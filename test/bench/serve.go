package main

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"korvet-offload/segment"
)

// What is fetched from the server: one file, often enough that its CPU time can
// be told.
const (
	serveBytes = 128 << 20
	serveTimes = 16
)

// serve compares the kernel's way of sending files with the copying one.
func (b *bench) serve() {
	if !b.o.only.MatchString("serve") {
		return
	}
	dir := b.t.TempDir()
	path := filepath.Join(dir, segment.ObjectPath(segment.DefaultLayout().Folder(part(0)), 0, 0, ""))
	b.must(os.MkdirAll(filepath.Dir(path), 0o755))
	content := make([]byte, serveBytes)
	_, _ = rand.NewChaCha8([32]byte{}).Read(content) // it never fails
	b.must(os.WriteFile(path, content, 0o644))
	var cpu, rate [2][]float64 // of the kernel's way, and of the copying one
	for range b.o.runs {
		for i, zeroCopy := range []bool{true, false} {
			c, r := b.served(dir, zeroCopy)
			cpu[i], rate[i] = append(cpu[i], c), append(rate[i], r)
		}
	}
	b.must(os.Remove(path))
	kernel, copied := median(cpu[0]), median(cpu[1])
	b.rows = append(b.rows,
		row{what: "serve, the server's CPU per GiB: sent by the kernel / copied", must: "0.6x",
			note: fmt.Sprintf("%.2fx (%.2f / %.2f s)", kernel/copied, kernel, copied)},
		row{what: "  rate to one client", note: fmt.Sprintf("%.0f / %.0f MB/s", median(rate[0]), median(rate[1]))})
}

// served fetches the file from a server, and says what CPU time a GiB has cost it,
// in seconds, and how many MB came in a second.
func (b *bench) served(dir string, zeroCopy bool) (cpu, rate float64) {
	cmd := exec.CommandContext(b.ctx, b.bin, "serve", "--from-store", "--remote-path", "file://"+dir, "--serve-address", "127.0.0.1:0",
		"--log-format", "json", fmt.Sprintf("--zero-copy=%v", zeroCopy))
	stderr, err := cmd.StderrPipe()
	b.must(err)
	b.must(cmd.Start())
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	url := "http://" + b.listens(stderr) + "/v1/topics/bench/0/segments/0.parquet"
	b.fetch(url) // the file is in the system's memory
	before, begun := cpuOf(cmd.Process.Pid), time.Now()
	for range serveTimes {
		b.fetch(url)
	}
	const total = float64(serveTimes * serveBytes)
	return (cpuOf(cmd.Process.Pid) - before) / (total / (1 << 30)), total / 1e6 / time.Since(begun).Seconds()
}

// listens is the address that a server's log names.
func (b *bench) listens(log io.Reader) string {
	at := regexp.MustCompile(`"address":"([^"]+)"`)
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, log) }() // it ends with the process
			return m[1]
		}
		fmt.Fprintln(os.Stderr, strings.TrimSpace(lines.Text()))
	}
	b.t.Fatalf("the server does not listen: %v", lines.Err())
	return ""
}

func (b *bench) fetch(url string) {
	a, err := http.Get(url)
	b.must(err)
	defer a.Body.Close()
	n, err := io.Copy(io.Discard, a.Body)
	b.must(err)
	if n != serveBytes {
		b.t.Fatalf("%d bytes came", n)
	}
}
