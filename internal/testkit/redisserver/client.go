package redisserver

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"slices"
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

// TryExec is Exec that returns the error. A command that begins with options of
// redis-cli is run by it; for all others a process each would take most of the time
// of a test.
func (s *Server) TryExec(command ...string) (string, error) {
	if strings.HasPrefix(command[0], "-") {
		return s.cli(append([]string{"-s", s.Socket, "-e"}, command...)...)
	}
	c, in, err := s.dial()
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := c.Write(AppendCommand(nil, command...)); err != nil {
		return "", err
	}
	reply, err := ReadReply(in)
	if err != nil {
		return "", err
	}
	if refused, ok := reply.(ReplyError); ok {
		return "", refused
	}
	return printed(reply), nil
}

// patience is how long a command may take.
const patience = 60 * time.Second

// dial connects to the unix socket, as the default user.
func (s *Server) dial() (net.Conn, *bufio.Reader, error) {
	c, err := net.Dial("unix", s.Socket)
	if err != nil {
		return nil, nil, err
	}
	in := bufio.NewReader(c)
	err = c.SetDeadline(time.Now().Add(patience))
	if err == nil && s.Password != "" {
		if _, err = c.Write(AppendCommand(nil, "AUTH", s.Password)); err == nil {
			_, err = ReadReply(in) // one that is refused shows at the command
		}
	}
	if err != nil {
		c.Close()
		return nil, nil, err
	}
	return c, in, nil
}

// printed is a reply as redis-cli prints it to a pipe.
func printed(reply any) string {
	switch r := reply.(type) {
	case nil:
		return ""
	case []any:
		lines := make([]string, len(r))
		for i, one := range r {
			lines[i] = printed(one)
		}
		return strings.Join(lines, "\n")
	}
	return fmt.Sprint(reply)
}

// TryFollow is TryExec that goes where a cluster's node sends it.
func (s *Server) TryFollow(command ...string) (string, error) {
	return s.cli(append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(s.Port), "-c", "-e"}, command...)...)
}

func (s *Server) cli(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
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

// Pipe sends commands of AppendCommand in one go; it is the way to load many
// entries fast. Any error reply fails the test.
func (s *Server) Pipe(commands []byte) {
	s.t.Helper()
	c, in, err := s.dial()
	if err != nil {
		s.t.Fatalf("load redis-server: %v", err)
	}
	sent := make(chan error, 1)
	end := rand.Text()
	go func() {
		_, err := c.Write(AppendCommand(slices.Clip(commands), "ECHO", end))
		sent <- err
	}()
	for reply := any(nil); err == nil && reply != end; {
		if reply, err = ReadReply(in); err == nil {
			if refused, ok := reply.(ReplyError); ok {
				err = refused
			}
		}
	}
	c.Close()
	if sending := <-sent; err != nil || sending != nil {
		s.t.Fatalf("load redis-server: %v", errors.Join(err, sending))
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
