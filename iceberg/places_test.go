package main

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
)

// newS3Rig has its objects and its tables in one bucket.
func newS3Rig(t *testing.T, o s3server.Options) *rig {
	t.Helper()
	s := s3server.Start(t, o)
	dir := t.TempDir()
	r := &rig{t: t, objects: filepath.Join(s.Dir, "remote"), remote: "s3://" + s.Bucket + "/remote",
		catalog: "sqlite://" + dir + "/catalog.db", warehouse: "s3://" + s.Bucket + "/warehouse"}
	r.environ = []string{"KORVET_STORAGE_S3_ENDPOINT=" + s.Endpoint, "KORVET_STORAGE_S3_ACCESS_KEY_ID=" + s.Access,
		"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + s.Secret}
	if s.CAFile != "" {
		r.environ = append(r.environ, "KORVET_STORAGE_S3_CA_FILE="+s.CAFile)
	}
	r.begin()
	return r
}

func TestLifeOnS3(t *testing.T) {
	r := newS3Rig(t, s3server.Options{})
	life(t, r)
	if a := r.register("orders", "--output", "table"); strings.Contains(a.stdout+a.stderr, "SECRET") {
		t.Errorf("%+v", a)
	}
}

func TestLifeOnS3WithTLS(t *testing.T) { life(t, newS3Rig(t, s3server.Options{TLS: true})) }

func TestLifeWithPostgres(t *testing.T) {
	r := newRig(t)
	r.catalog = startPostgres(t)
	life(t, r)
}

// startPostgres runs a server of its own until the test ends, and returns the URI
// of its database.
func startPostgres(t *testing.T) string {
	t.Helper()
	bin := postgresFolder(t)
	dir, err := os.MkdirTemp("", "pg") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	run := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "LC_ALL=C", "PATH=" + os.Getenv("PATH")}
		if os.Getuid() == 0 { // it refuses to run as root
			const nobody = 65534
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
			if err := os.Chown(dir, nobody, nobody); err != nil {
				t.Fatal(err)
			}
		}
		return cmd
	}
	if out, err := run("initdb", "-D", dir+"/data", "-U", "korvet", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	server := run("postgres", "-D", dir+"/data", "-k", dir, "-c", "listen_addresses=127.0.0.1", "-p", port, "-c", "fsync=off")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Signal(os.Interrupt) // sessions are ended
		_ = server.Wait()
	})
	uri := "postgres://korvet@127.0.0.1:" + port + "/postgres?sslmode=disable"
	db, err := sql.Open("pgx", uri)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 600 {
		if err = db.PingContext(t.Context()); err == nil {
			return uri
		}
		<-time.After(50 * time.Millisecond)
	}
	_ = server.Process.Kill()
	_ = server.Wait()
	t.Fatalf("postgres does not answer: %v: %s", err, log.String())
	return ""
}

// postgresFolder is where Debian keeps the server's programs.
func postgresFolder(t *testing.T) string {
	t.Helper()
	if path, err := exec.LookPath("postgres"); err == nil {
		return filepath.Dir(path)
	}
	all, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(all) == 0 {
		t.Fatal("there is no PostgreSQL server; install it: apt-get install postgresql")
	}
	return filepath.Dir(all[len(all)-1])
}

// A reader of Iceberg tables that shares no code with the library finds the same.
func TestIcebird(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	r.edit(0, 0, `"state":"SEALED"`, `"state":"DELETING"`)
	r.copyAgain(1, 1)
	r.register("orders")
	if _, err := os.Stat("testdata/icebird/node_modules"); err != nil {
		t.Fatal("the JavaScript reader is not installed: run npm ci in iceberg/testdata/icebird")
	}
	_, is := r.table("orders")
	cmd := exec.CommandContext(t.Context(), "node", "testdata/icebird/read.mjs", is.MetadataLocation())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("node: %v: %s", err, stderr.String())
	}
	var found []struct {
		ID     string            `json:"id"`
		Fields map[string]string `json:"fields"`
	}
	if err := json.Unmarshal(out, &found); err != nil {
		t.Fatalf("%v in %.300s", err, out)
	}
	var rows []string
	for _, row := range found {
		text := row.ID
		for _, name := range []string{"key", "value", "headers", "timestamp"} {
			text += " " + name + "=" + strconv.Quote(row.Fields[name])
		}
		rows = append(rows, text)
	}
	slices.Sort(rows)
	if want := r.messages("orders:0/1", "orders:1/0", "orders:1/1"); !slices.Equal(rows, want) {
		t.Errorf("%d rows, want %d; the first are\n%.200q\n%.200q", len(rows), len(want), rows, want)
	}
}
