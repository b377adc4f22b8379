package redisserver

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// URI is the address as korvet.redis.uri has it, with the password.
func (s *Server) URI() string {
	u := url.URL{Scheme: "redis", Host: s.Addr}
	if s.tls {
		u.Scheme = "rediss"
	}
	if s.Password != "" {
		u.User = url.UserPassword("", s.Password)
	}
	return u.String()
}

// UserURI is the address with the name and the password of an ACL user.
func (s *Server) UserURI(name, password string) string {
	u := url.URL{Scheme: "redis", Host: s.Addr, User: url.UserPassword(name, password)}
	if s.tls {
		u.Scheme = "rediss"
	}
	return u.String()
}

// Exec runs a command as the default user and returns its reply as redis-cli
// prints it to a pipe; an error reply fails the test.
func (s *Server) Exec(command ...string) string {
	s.t.Helper()
	reply, err := s.TryExec(command...)
	if err != nil {
		s.t.Fatalf("redis %q: %v", command, err)
	}
	return reply
}

// TryExec is Exec that returns the error.
func (s *Server) TryExec(command ...string) (string, error) {
	return s.cli(append([]string{"-s", s.Socket, "-e"}, command...)...)
}

// TryFollow is TryExec that goes where a cluster's node sends it.
func (s *Server) TryFollow(command ...string) (string, error) {
	return s.cli(append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-c", "-e"}, command...)...)
}

func (s *Server) cli(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "redis-cli", args...)
	cmd.Env = s.cliEnv()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s%s", err, strings.TrimSpace(out.String()), strings.TrimSpace(errs.String()))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// cliEnv hands the password over where other processes can't read it.
func (s *Server) cliEnv() []string {
	if s.Password == "" {
		return os.Environ()
	}
	return append(os.Environ(), "REDISCLI_AUTH="+s.Password)
}

// Pipe sends commands in one go, as redis-cli --pipe reads them; it is the
// way to load many entries fast. Any error reply fails the test.
func (s *Server) Pipe(commands []byte) {
	s.t.Helper()
	cmd := exec.Command("redis-cli", "-s", s.Socket, "--pipe")
	cmd.Env = s.cliEnv()
	cmd.Stdin = bytes.NewReader(commands)
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("errors: 0,")) {
		s.t.Fatalf("load redis-server: %v: %s", err, bytes.TrimSpace(out))
	}
}

// AppendCommand appends a command in the protocol's own form, for Pipe.
func AppendCommand(b []byte, args ...string) []byte {
	b = append(strconv.AppendInt(append(b, '*'), int64(len(args)), 10), '\r', '\n')
	for _, a := range args {
		b = append(strconv.AppendInt(append(b, '$'), int64(len(a)), 10), '\r', '\n')
		b = append(append(b, a...), '\r', '\n')
	}
	return b
}
