package redisstore

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math"
	"net"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/redis/rueidis"
	"pgregory.net/rapid"

	"korvet-offload/segment"
)

// encodeReply is the server's side of the protocol.
func encodeReply(entries []entry) []byte {
	b := appendHeader(nil, '*', len(entries))
	for _, e := range entries {
		b = append(b, "*2\r\n"...)
		b = append(append(appendHeader(b, '$', len(e.id)), e.id...), '\r', '\n')
		b = appendCommand(b, e.fields...)
	}
	return b
}

// decodeAll decodes a reply that comes from r.
func decodeAll(r io.Reader, count, limit int) ([]entry, bool, error) {
	var d decoder
	var p segment.Page
	left, err := d.read(r, &p, count, limit, func(int) {})
	if err != nil {
		return nil, false, err
	}
	return entriesOf(&p), left, nil
}

var samples = []entry{
	{"5-9", []string{"value", "v", "key", ""}},
	{"5-10", []string{"a", "1", "a", "2", "b", "3", "a", "4"}},
	{"5-11", []string{"", "\r\n$5\r\n*2\r\n", "\x00\xff", strings.Repeat("x", 70_000)}},
	{"18446744073709551615-18446744073709551615", []string{"f", "v"}},
}

func TestDecodeHoweverTheBytesCome(t *testing.T) {
	reply := encodeReply(samples)
	for name, r := range map[string]io.Reader{
		"at once":       bytes.NewReader(reply),
		"one by one":    iotest.OneByteReader(bytes.NewReader(reply)),
		"in halves":     iotest.HalfReader(bytes.NewReader(reply)),
		"with an error": iotest.DataErrReader(bytes.NewReader(reply)),
	} {
		got, left, err := decodeAll(r, 10, math.MaxInt)
		if err != nil || left || !reflect.DeepEqual(got, samples) {
			t.Errorf("%s: %d entries, left %t, %v", name, len(got), left, err)
		}
	}
}

func TestDecodeEmptyAndErrorReplies(t *testing.T) {
	if got, _, err := decodeAll(strings.NewReader("*0\r\n"), 10, math.MaxInt); err != nil || len(got) != 0 {
		t.Errorf("empty reply: %v, %v", got, err)
	}
	_, _, err := decodeAll(iotest.OneByteReader(strings.NewReader("-WRONGTYPE Operation against a key\r\n")), 10, math.MaxInt)
	var reply errReply
	if !errors.As(err, &reply) || classify(err) != WrongType {
		t.Errorf("error reply: %v", err)
	}
}

//fault:network | a reply is cut at any byte | a reply of each length up to the whole | an error, never a short page
func TestDecodeACutReplyIsAnError(t *testing.T) {
	reply := encodeReply(samples)
	for n := range len(reply) {
		if n > 200 && n < len(reply)-200 {
			continue // within the long value
		}
		if _, _, err := decodeAll(bytes.NewReader(reply[:n]), 10, math.MaxInt); !errors.Is(err, io.EOF) {
			t.Fatalf("reply cut after %d bytes: %v", n, err)
		}
	}
}

//fault:redis | a page that makes no sense | hostile replies told to the decoder | an error
func TestDecodeRefusesHostileReplies(t *testing.T) {
	for _, reply := range []string{
		"*-1\r\n", "$-1\r\n", "_\r\n", ":1\r\n", "+OK\r\n", "*\r\n", "*x\r\n", "*1\n", "*1\rx", "\r\n", "*00000000000\r\n",
		"*99999999999999999999\r\n", "*11\r\n", // more than asked for
		"*1\r\n*-1\r\n", "*1\r\n*3\r\n$3\r\n1-1\r\n", "*1\r\n$3\r\n1-1\r\n",
		"*1\r\n*2\r\n$-1\r\n", "*1\r\n*2\r\n$5000000000\r\n", "*1\r\n*2\r\n$3\r\n1-1xx", "*1\r\n*2\r\n:1\r\n",
		"*1\r\n*2\r\n$3\r\nabc\r\n*2\r\n", "*1\r\n*2\r\n$2\r\n1-\r\n*0\r\n", "*1\r\n*2\r\n$2\r\n-1\r\n*0\r\n", "*1\r\n*2\r\n$1\r\n1\r\n*0\r\n",
		"*1\r\n*2\r\n$22\r\n18446744073709551616-1\r\n*0\r\n", "*1\r\n*2\r\n$3\r\n1-1\r\n*3\r\n", "*1\r\n*2\r\n$3\r\n1-1\r\n*-1\r\n",
		"*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n*0\r\n", "*1\r\n*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\na\r\n:1\r\n",
		"*0\r\n*0\r\n", "-ERR\r\n*0\r\n", "-ERR\n", "-\r\nx",
	} {
		if got, _, err := decodeAll(strings.NewReader(reply), 10, math.MaxInt); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %v, %v; want a protocol error", reply, got, err)
		}
	}
}

//fault:redis | a reply announces far more than comes | lengths of gigabytes | memory grows with what comes only
func TestDecodeALyingLengthCostsNothing(t *testing.T) {
	reply := "*10\r\n*2\r\n$3\r\n1-1\r\n*4000000000\r\n$4000000000\r\nx"
	var d decoder
	var p segment.Page
	if _, err := d.read(strings.NewReader(reply), &p, 10, math.MaxInt, func(int) {}); !errors.Is(err, io.EOF) {
		t.Fatalf("%v, want EOF", err)
	}
	if c := cap(p.Buffer()); c > firstBuffer {
		t.Errorf("%d bytes taken for %d that came", c, len(reply))
	}
}

func TestDecodeLeavesAReplyThatIsTooLarge(t *testing.T) {
	big := strings.Repeat("x", 3000)
	entries := []entry{{"1-0", []string{"f", "v"}}, {"2-0", []string{"f", big}}, {"3-0", []string{"f", big}}, {"4-0", []string{"f", "v"}}}
	for _, limit := range []int{1, 1000, 3100, 4000} {
		got, left, err := decodeAll(iotest.OneByteReader(bytes.NewReader(encodeReply(entries))), 10, limit)
		if err != nil || !left || len(got) == 0 || !reflect.DeepEqual(got, entries[:len(got)]) {
			t.Errorf("limit %d: %d entries, left %t, %v", limit, len(got), left, err)
		}
	}
	if got, left, err := decodeAll(bytes.NewReader(encodeReply(entries[1:2])), 10, 10); err != nil || left || len(got) != 1 {
		t.Errorf("one entry above the limit: %d entries, left %t, %v", len(got), left, err)
	}
}

func TestDecodeGivesLargeMemoryBack(t *testing.T) {
	var d decoder
	var p segment.Page
	read := func(n int) {
		t.Helper()
		reply := encodeReply([]entry{{"1-0", []string{"f", strings.Repeat("x", n)}}})
		if _, err := d.read(bytes.NewReader(reply), &p, 10, math.MaxInt, func(int) {}); err != nil {
			t.Fatal(err)
		}
	}
	read(20 << 20)
	read(20 << 20)
	if c := cap(p.Buffer()); c < 20<<20 {
		t.Fatalf("buffer of %d bytes", c)
	}
	read(10)
	read(10)
	if c := cap(p.Buffer()); c > keptBuffer {
		t.Errorf("%d bytes are still kept", c)
	}
}

func TestDecodeAllocatesNothingOnceWarm(t *testing.T) {
	var entries []entry
	for i := range 1000 {
		entries = append(entries, entry{strconv.Itoa(i+1) + "-0", []string{"value", strings.Repeat("v", 64), "key", "k", "headers", "", "timestamp", "1"}})
	}
	reply := encodeReply(entries)
	var d decoder
	var p segment.Page
	r := bytes.NewReader(reply)
	progress := func(int) {}
	if n := testing.AllocsPerRun(20, func() {
		r.Reset(reply)
		if _, err := d.read(r, &p, 1000, maxPage, progress); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations for a page of 1,000 entries", n)
	}
}

// drawEntries makes a reply's worth of entries with ascending ids.
func drawEntries(t *rapid.T) []entry {
	text := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "bytes")) })
	var entries []entry
	id := segment.ID{}
	for range rapid.IntRange(0, 20).Draw(t, "entries") {
		if id.Seq++; rapid.Bool().Draw(t, "next ms") {
			id = segment.ID{Ms: id.Ms + rapid.Uint64Range(1, math.MaxUint64/100).Draw(t, "ms")}
		}
		e := entry{id: id.String()}
		for range rapid.IntRange(1, 5).Draw(t, "fields") {
			e.fields = append(e.fields, text.Draw(t, "name"), text.Draw(t, "value"))
		}
		entries = append(entries, e)
	}
	return entries
}

func TestDecodersAgree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries := drawEntries(t)
		reply := encodeReply(entries)
		got, _, err := decodeAll(&chopped{b: reply, t: t}, max(1, len(entries)), math.MaxInt)
		if err != nil || !reflect.DeepEqual(got, entries) {
			t.Fatalf("direct: %q, %v; want %q", got, err, entries)
		}
		theirs, err := decodeWithClient(reply, max(1, len(entries)))
		if err != nil || !reflect.DeepEqual(theirs, entries) {
			t.Fatalf("client: %q, %v; want %q", theirs, err, entries)
		}
	})
}

// chopped hands bytes out in pieces of drawn sizes.
type chopped struct {
	b []byte
	t *rapid.T
}

func (c *chopped) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:rapid.IntRange(1, len(c.b)).Draw(c.t, "piece")])
	c.b = c.b[n:]
	return n, nil
}

// decodeWithClient lets the general client read the reply, from a server
// that gives it to every XRANGE.
func decodeWithClient(reply []byte, count int) ([]entry, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{
		InitAddress: []string{"pipe"}, DisableCache: true, DisableRetry: true, ForceSingleClient: true, AlwaysRESP2: true,
		ClientSetInfo: rueidis.DisableClientSetInfo, ReadBufferEachConn: 1 << 10, WriteBufferEachConn: 1 << 10, RingScaleEachConn: 2,
		DialCtxFn: func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			near, far := net.Pipe()
			go serve(far, reply)
			return near, nil
		},
	})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	var p segment.Page
	_, err = (&clientSession{client: client, cluster: true}).fetch(context.Background(), request{key: "k", to: segment.MaxID(), count: count}, &p)
	return entriesOf(&p), err
}

// serve answers every command of a connection: XRANGE with the reply, the
// others with what lets the client begin and end.
func serve(c net.Conn, reply []byte) {
	defer c.Close()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		answer := []byte("+OK\r\n")
		switch command := buf[:n]; {
		case bytes.Contains(command, []byte("XRANGE")):
			answer = reply
		case bytes.Contains(command, []byte("HELLO")):
			answer = []byte("*2\r\n$5\r\nproto\r\n:2\r\n")
		case bytes.Contains(command, []byte("PING")):
			answer = []byte("+PONG\r\n")
		}
		if _, err := c.Write(answer); err != nil {
			return
		}
	}
}

// reference decodes a reply in the plainest way there is, as a check on the
// decoder's verdict about arbitrary bytes.
func reference(b []byte, count int) (entries []entry, ok bool) {
	rest := string(b)
	header := func(mark string) (int, bool) {
		line, after, found := strings.Cut(rest, "\r\n")
		if !found || !strings.HasPrefix(line, mark) {
			return 0, false
		}
		rest = after
		n, err := strconv.ParseUint(line[1:], 10, 32)
		return int(n), err == nil && len(line) <= maxDigits+1
	}
	text := func() (string, bool) {
		n, ok := header("$")
		if !ok || n+2 > len(rest) || rest[n:n+2] != "\r\n" {
			return "", false
		}
		s := rest[:n]
		rest = rest[n+2:]
		return s, true
	}
	n, ok := header("*")
	if !ok || n > count {
		return nil, false
	}
	for range n {
		two, ok := header("*")
		if !ok || two != 2 {
			return nil, false
		}
		id, ok := text()
		parsed, err := segment.ParseID(id)
		if !ok || err != nil {
			return nil, false
		}
		items, ok := header("*")
		if !ok || items%2 != 0 {
			return nil, false
		}
		e := entry{id: parsed.String()}
		for range items {
			s, ok := text()
			if !ok {
				return nil, false
			}
			e.fields = append(e.fields, s)
		}
		entries = append(entries, e)
	}
	return entries, rest == ""
}

func FuzzDecode(f *testing.F) {
	f.Add(encodeReply(samples[:2]), uint8(3))
	f.Add([]byte("*1\r\n*2\r\n$3\r\n1-1\r\n*4000000000\r\n$4000000000\r\nx"), uint8(1))
	f.Add([]byte("-ERR no\r\n"), uint8(2))
	f.Fuzz(func(t *testing.T, reply []byte, piece uint8) {
		const count = 50
		want, ok := reference(reply, count)
		got, _, err := decodeAll(bytes.NewReader(reply), count, math.MaxInt)
		if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
			t.Fatalf("%q: %q, %v; want %q, %t", reply, got, err, want, ok)
		}
		pieces := &inPieces{b: reply, n: int(piece)%16 + 1}
		again, _, errAgain := decodeAll(pieces, count, math.MaxInt)
		if err == nil && (errAgain != nil || !reflect.DeepEqual(got, again)) {
			t.Fatalf("%q in pieces of %d: %q, %v", reply, pieces.n, again, errAgain)
		}
	})
}

// inPieces hands bytes out n at a time.
type inPieces struct {
	b []byte
	n int
}

func (r *inPieces) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, r.b[:min(r.n, len(r.b))])
	r.b = r.b[n:]
	return n, nil
}

func FuzzSkip(f *testing.F) {
	f.Add([]byte("*4\r\n$5\r\nproto\r\n:2\r\n$-1\r\n*0\r\n"))
	f.Add([]byte("-ERR unknown command\r\n"))
	f.Add([]byte("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n"))
	f.Fuzz(func(t *testing.T, reply []byte) {
		end := skip(reply, 0, 8)
		if end > len(reply) {
			t.Fatalf("%q ends at %d", reply, end)
		}
		if end > 0 && skip(reply[:end], 0, 8) != end {
			t.Fatalf("%q: the same reply alone does not end at %d", reply, end)
		}
	})
}
