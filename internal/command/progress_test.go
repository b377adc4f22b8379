package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// planOf has jobs of so many messages each.
func planOf(messages ...int64) offload.Plan {
	var jobs []offload.Job
	for _, n := range messages {
		jobs = append(jobs, offload.Job{Stored: segment.Stored{Entry: segment.Entry{Count: n}}})
	}
	return offload.Plan{Jobs: [][]offload.Job{jobs}}
}

func TestProgressLine(t *testing.T) {
	p := startProgress(&bytes.Buffer{})
	defer p.end()
	p.Planned(planOf(100, 200, segment.NoCount))
	if got, want := p.line(time.Second), "0/3 segments  0 messages  0.0 MB/s"; got != want {
		t.Errorf("at the start %q, want %q", got, want)
	}
	p.Advanced(100, 3_000_000)
	p.Finished(offload.Outcome{})
	if got, want := p.line(2*time.Second), "1/3 segments  100 messages  1.5 MB/s  4s left"; got != want {
		t.Errorf("under way %q, want %q", got, want)
	}
	p.Advanced(250, 0)
	p.Failed(offload.Problem{})
	if got, want := p.line(2*time.Second), "2/3 segments  350 messages  1.5 MB/s"; got != want {
		t.Errorf("beyond what the manifest says %q, want %q", got, want)
	}
}

func TestNothingIsDrawnWhereNobodyLooks(t *testing.T) {
	var buffer bytes.Buffer
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	for _, p := range []*progress{startProgress(&buffer), startProgress(write)} {
		if p.out != nil {
			t.Error("it draws")
		}
		p.Planned(planOf(1))
		p.end()
	}
	write.Close()
	if n, err := read.Read(make([]byte, 1)); n != 0 || buffer.Len() != 0 {
		t.Errorf("%d bytes in the pipe (%v), %q in the buffer", n, err, &buffer)
	}
}

func TestTerminalShowsTheLineAndThenNothing(t *testing.T) {
	screen, tty := openTerminal(t)
	p := startProgress(tty)
	p.Planned(planOf(100))
	const wipe = "\r\x1b[K"
	if got, want := readUntil(t, screen, "MB/s"), wipe+"0/1 segments"; !strings.HasPrefix(got, want) {
		t.Errorf("drawn %q, want %q", got, want)
	}
	p.end()
	if _, err := fmt.Fprint(tty, "END"); err != nil {
		t.Fatal(err)
	}
	if got := readUntil(t, screen, "END"); !strings.HasSuffix(got, wipe+"END") {
		t.Errorf("the line was not wiped away: %q", got)
	}
}

// openTerminal makes a terminal: what is written to tty can be read from
// screen.
func openTerminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	conn, err := screen.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var number int
	var unlock error
	err = conn.Control(func(fd uintptr) {
		unlock = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
	})
	if err := errors.Join(err, unlock); err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return screen, tty
}

// readUntil reads until the text ends so.
func readUntil(t *testing.T, from *os.File, end string) string {
	t.Helper()
	if err := from.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for b := make([]byte, 256); !strings.HasSuffix(got.String(), end); {
		n, err := from.Read(b)
		if err != nil {
			t.Fatalf("%v after %q", err, got.String())
		}
		got.Write(b[:n])
	}
	return got.String()
}
