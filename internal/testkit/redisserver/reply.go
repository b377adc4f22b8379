package redisserver

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// ReplyError is what a server has refused a command with.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// ReadReply reads the reply to a command of AppendCommand: a string, an int64, a
// []any of these, nil, or a ReplyError. An error means that no reply could be
// read, and that the connection is of no use any more.
func ReadReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("read a reply: %w", err)
	}
	text := strings.TrimSuffix(line[1:], "\r\n")
	switch line[0] {
	case '+':
		return text, nil
	case '-':
		return ReplyError(text), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a reply: %q is not the protocol", line)
	case line[0] == ':':
		return n, nil
	case n < 0:
		return nil, nil //nolint:nilnil // the protocol's own
	case line[0] == '$':
		return readBulk(in, n)
	}
	return readList(in, n)
}

func readBulk(in *bufio.Reader, n int64) (any, error) {
	text := make([]byte, n+2)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, fmt.Errorf("read a reply: %w", err)
	}
	return string(text[:n]), nil
}

func readList(in *bufio.Reader, n int64) (any, error) {
	list := make([]any, n)
	for i := range list {
		var err error
		if list[i], err = ReadReply(in); err != nil {
			return nil, err
		}
	}
	return list, nil
}
