package command

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/scrub"
	"korvet-offload/segment"
)

// verifiedHead is the first line of a state file: what it is about.
type verifiedHead struct {
	V         int    `json:"v"`
	Root      string `json:"root"`
	Namespace string `json:"namespace"`
}

// verifiedLine is a further line: an object that was read and is whole.
type verifiedLine struct {
	At        time.Time      `json:"at"` // by this host's clock
	Topic     string         `json:"topic"`
	Partition int            `json:"partition"`
	Plain     bool           `json:"plain,omitempty"`
	Segment   segment.Number `json:"segment"`
	Path      string         `json:"path"`
	Bytes     int64          `json:"bytes"`
	ETag      string         `json:"etag"`
	Modified  time.Time      `json:"modified"`
	Change    string         `json:"change,omitempty"` // of a file
	SHA256    string         `json:"sha256"`
	Count     int64          `json:"count"`
	First     string         `json:"firstId"`
	Last      string         `json:"lastId"`
}

// verified remembers in a file which objects were read and are whole. Lines are
// only added: one that was cut off when the program ended counts as not there.
type verified struct {
	file *os.File
	seen map[string]verifiedLine // by path
	err  error                   // of writing
}

// openVerified begins a state file anew, or goes on with one.
func openVerified(name string, head verifiedHead, resume bool) (*verified, error) {
	v := &verified{seen: map[string]verifiedLine{}}
	mode := os.O_RDWR | os.O_CREATE
	if !resume {
		mode |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, mode, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the state file: %w", err)
	}
	v.file = f
	end, err := v.read(head)
	if err == nil {
		_, err = f.Seek(end, io.SeekStart)
	}
	if err == nil {
		err = f.Truncate(end) // of a line that was cut off
	}
	if err == nil && end == 0 {
		err = v.write(head)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("use state file %s: %w", name, err), f.Close())
	}
	return v, nil
}

// read takes in what the file has, and says where its last whole line ends.
func (v *verified) read(head verifiedHead) (end int64, err error) {
	lines := bufio.NewReader(v.file)
	for first := true; ; first = false {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return end, nil
		}
		if err != nil {
			return 0, err
		}
		if first {
			var is verifiedHead
			if err := json.Unmarshal(line, &is); err != nil || is != head {
				return 0, cmdline.UsageError{Err: fmt.Errorf("it is of another root or namespace, or no such file: %.200q; name another one, or leave --resume away to begin it anew", line)}
			}
		} else {
			var l verifiedLine
			if err := json.Unmarshal(line, &l); err != nil {
				return 0, cmdline.UsageError{Err: fmt.Errorf("a line can't be read: %.200q; leave --resume away to begin it anew", line)}
			}
			v.seen[l.Path] = l
		}
		end += int64(len(line))
	}
}

func (v *verified) write(line any) error {
	raw, err := json.Marshal(line)
	if err == nil {
		_, err = v.file.Write(append(raw, '\n'))
	}
	return err
}

// has says whether an object was read before, and is still the same by all that
// the store and its entry say of it.
func (v *verified) has(o scrub.Object) bool {
	l, there := v.seen[o.Path]
	now := lineOf(o)
	now.At = l.At
	if o.SHA256 == "" { // the entry tells of none
		now.SHA256 = l.SHA256
	}
	return there && l == now
}

func lineOf(o scrub.Object) verifiedLine {
	return verifiedLine{At: time.Now().UTC().Truncate(time.Second), Topic: o.Partition.Topic, Partition: o.Partition.Number, Plain: o.Partition.Plain,
		Segment: o.Segment, Path: o.Path, Bytes: o.Bytes, ETag: o.ETag, Modified: o.Modified.UTC(), Change: o.Change, SHA256: o.SHA256,
		Count: o.Contents.Count, First: o.Contents.FirstID.String(), Last: o.Contents.LastID.String()}
}

func (v *verified) add(o scrub.Object) {
	err := v.write(lineOf(o))
	if v.err == nil {
		v.err = err
	}
}

func (v *verified) close() error {
	if err := errors.Join(v.err, v.file.Close()); err != nil {
		return fmt.Errorf("write the state file: %w", err)
	}
	return nil
}
