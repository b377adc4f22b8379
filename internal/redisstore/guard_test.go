package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/redis/rueidis"

	"korvet-offload/internal/testkit/redisproxy"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestFramesCountMessages(t *testing.T) {
	for text, want := range map[string]int64{
		"":                       0,
		"+OK\r\n":                1,
		"-ERR x\r\n:-5\r\n":      2,
		"$5\r\na\r\nbc\r\n":      1,
		"$-1\r\n*-1\r\n_\r\n":    3,
		"$0\r\n\r\n*0\r\n%0\r\n": 3,
		"#t\r\n,1.5\r\n(123\r\n=7\r\ntxt:abc\r\n":                      4,
		"*2\r\n*1\r\n:1\r\n*0\r\n":                                     1,
		"*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n+":             1,
		"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n%1\r\n+c\r\n~1\r\n_\r\n+OK\r\n": 2,
		"*3\r\n:1\r\n:2\r\n":                                           0,
	} {
		whole, bytewise := frames{limit: 1000, text: 1000}, frames{limit: 1000, text: 1000}
		err := whole.feed([]byte(text))
		for i := range len(text) {
			err = errors.Join(err, bytewise.feed([]byte(text[i:i+1])))
		}
		if err != nil || whole.whole != want || bytewise.whole != want {
			t.Errorf("%q: %d and %d messages, want %d, %v", text, whole.whole, bytewise.whole, want, err)
		}
	}
}

//fault:redis | A server answers nonsense | lengths of 2^62, negative or missing ones, unknown marks, endless lines, deep nesting, messages to subscribers, told to the reader of frames | each is an error before anything is believed
func TestFramesRefuseNonsense(t *testing.T) {
	for name, text := range map[string]string{
		"another protocol": "HTTP/1.1 400 Bad Request\r\n", "a nul": "\x00", "a list of 2^62": "*4611686018427387904\r\n", "a text of 2^62": "$4611686018427387904\r\n",
		"a text of 2^33": "$8589934592\r\n", "a text that is too long": fmt.Sprintf("$%d\r\n", maxClaim+1),
		"a list that is too long": fmt.Sprintf("*%d\r\n", maxElements+1), "a map that is too long": fmt.Sprintf("%%%d\r\n", maxElements/2+1),
		"a negative list": "*-2\r\n", "a negative map": "%-1\r\n", "a negative text": "$-5\r\n", "a number that is none": "*1x\r\n", "without a carriage return": "*55\n:1\r\n",
		"a carriage return inside": "$1\r0\r\n", "a list without a length": "*?\r\n", "an attribute": "|1\r\n", "a line without an end": "+" + strings.Repeat("x", maxErrLine+1),
		"nested too deep": strings.Repeat("*1\r\n", maxDepth+1), "long null": "_x\r\n", "long bool": "#true\r\n", "a push": ">2\r\n+a\r\n:1\r\n", "a push inside": "*1\r\n>1\r\n",
		"long lists, one in another": strings.Repeat(fmt.Sprintf("*%d\r\n", maxElements/2), 3),
	} {
		f := frames{limit: maxReply, text: maxClaim}
		if err := f.feed([]byte(text)); !errors.Is(err, errProtocol) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFramesBoundAReply(t *testing.T) {
	for name, text := range map[string]string{
		"a text": "$10000\r\n", "texts": "*9\r\n" + strings.Repeat("$3000\r\n"+strings.Repeat("x", 3000)+"\r\n", 4), "lines": "*9\r\n" + strings.Repeat("+"+strings.Repeat("x", 3000)+"\r\n", 4),
		"a list": "*157\r\n", "lists": "*2\r\n*70\r\n" + strings.Repeat("_\r\n", 70) + "*90\r\n",
	} {
		f := frames{limit: 10_000, text: 10_000}
		if err := f.feed([]byte(text)); !errors.Is(err, errProtocol) || !strings.Contains(err.Error(), "more than 10000 bytes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if size := unsafe.Sizeof(rueidis.RedisMessage{}); size > elementBytes {
		t.Errorf("the client sets aside %d bytes for an element", size)
	}
}

// What is asked for as a whole grows with the number of topics.
func TestFramesOfManyTopics(t *testing.T) {
	for name, text := range map[string]string{
		"records of known topics": "%200000\r\n" + strings.Repeat("$9\r\norders-12\r\n$256\r\n"+strings.Repeat("x", 256)+"\r\n", 200_000),
		"a set of names":          "~800000\r\n" + strings.Repeat("$30\r\n"+strings.Repeat("x", 30)+"\r\n", 800_000),
		"a registry as JSON":      "$70000000\r\n" + strings.Repeat("x", 70_000_000) + "\r\n",
	} {
		f := frames{limit: maxReply, text: maxClaim}
		if err := f.feed([]byte(text)); err != nil || f.whole != 1 {
			t.Errorf("%s: %d messages, %v", name, f.whole, err)
		}
	}
}

// lies answers requests that hold a word, in the server's place.
func lies(word string, fate redisproxy.Fate) redisproxy.Rule {
	return func(request []byte) redisproxy.Fate {
		if bytes.Contains(request, []byte(word)) {
			return fate
		}
		return redisproxy.Fate{}
	}
}

//fault:redis | A server answers nonsense in mid-session | a proxy answers one command with lengths of 2^62, binary, an endless reply, or twice | an error within the timeout, bounded memory, no crash, and later commands are answered
func TestNonsenseIsAnError(t *testing.T) {
	real := redisserver.Start(t)
	real.Exec("XADD", "s", "1-1", "f", "v")
	say := func(text string) func(io.Writer) { return func(w io.Writer) { io.WriteString(w, text) } } //nolint:errcheck // a test's connection
	for name, c := range map[string]struct {
		lie   func(io.Writer)
		class Class
	}{
		"a list of 2^62":     {say("*4611686018427387904\r\n"), Protocol},
		"a text of 2^62":     {say("$4611686018427387904\r\n"), Protocol},
		"a large list":       {say("*900000000\r\n"), Protocol},
		"another protocol":   {say("HTTP/1.1 400 Bad Request\r\n\r\n"), Protocol},
		"binary":             {say("\x16\x03\x01\x02\x00\x01"), Protocol},
		"of another kind":    {say("+OK\r\n"), Protocol},
		"a list of lists":    {say(strings.Repeat("*1\r\n", 100)), Protocol},
		"an endless line":    {endless("+", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"), Protocol},
		"an endless list":    {endless("*1000000\r\n", "$64\r\n"+strings.Repeat("x", 64)+"\r\n"), Protocol},
		"a text that stalls": {say("$1000\r\nabc"), Unavailable},
		"nothing":            {say(""), Unavailable},
	} {
		for _, command := range []string{"TIME", "XRANGE"} {
			t.Run(command+" "+name, func(t *testing.T) {
				readers(t, func(t *testing.T, reader string) {
					cfg := config(real)
					cfg.URI, cfg.Reader, cfg.Timeout = "redis://"+redisproxy.Start(t, real.Addr, lies(command, redisproxy.Fate{Say: c.lie, Mute: c.class == Unavailable})), reader, 500*time.Millisecond
					s := open(t, cfg)
					if command == "XRANGE" {
						if c.class == Unavailable {
							return // as slow as a page may be: the deadline is that of any page
						}
						mustEndSoon(t, c.class, func() error { _, _, err := readAll(t.Context(), s, "s"); return err })
					} else {
						mustEndSoon(t, c.class, func() error { _, err := s.Now(t.Context()); return err })
					}
					eventually(t, "another command is answered", func() bool { _, err := s.StreamInfo(t.Context(), "s"); return err == nil })
				})
			})
		}
	}
}

// endless never comes to an end, unless nobody listens.
func endless(begin, again string) func(io.Writer) {
	return func(w io.Writer) {
		_, err := io.WriteString(w, begin)
		for chunk := strings.Repeat(again, 1+8192/len(again)); err == nil; {
			_, err = io.WriteString(w, chunk)
		}
	}
}

// mustEndSoon checks for an error of a class, and that it took neither long nor
// much memory.
func mustEndSoon(t *testing.T, class Class, call func() error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	err := call()
	took := time.Since(start)
	runtime.ReadMemStats(&after)
	if got := ClassOf(err); got != class && got != Unavailable || strings.Contains(err.Error(), "\n") {
		t.Errorf("class %s, want %s, or %s where the time was over first: %v", got, class, Unavailable, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; took > 25*time.Second || grown > 400<<20 {
		t.Errorf("after %s and %d MiB", took, grown>>20)
	}
}

//fault:redis | A server says something that nobody asked for | a proxy answers each command twice | an error of that connection, no crash
func TestAnAnswerToNoQuestion(t *testing.T) {
	real := redisserver.Start(t)
	twice := func(w io.Writer) { fmt.Fprint(w, "*2\r\n$1\r\n1\r\n$1\r\n2\r\n", "+twice\r\n") } //nolint:errcheck // a test's connection
	s := open(t, Config{URI: "redis://" + redisproxy.Start(t, real.Addr, lies("TIME", redisproxy.Fate{Say: twice})), Layout: segment.DefaultLayout(), Timeout: time.Second})
	for range 20 {
		if _, err := s.Now(t.Context()); err != nil && ClassOf(err) != Protocol && ClassOf(err) != Unavailable {
			t.Errorf("class %s, %v", ClassOf(err), err)
		}
	}
	if _, err := s.StreamInfo(t.Context(), "s"); err != nil && ClassOf(err) != Protocol {
		t.Errorf("another command: %v", err)
	}
}

// The client ends the program at a message to a subscriber that it did not
// expect, once several commands share a connection.
//
//fault:redis | A server sends a message as to a subscriber, and nobody has subscribed | a proxy puts one before the answer, while many commands share a connection | an error of that connection, no crash, and later commands are answered
func TestAPushToNobody(t *testing.T) {
	real := redisserver.Start(t)
	push := func(w io.Writer) {
		io.WriteString(w, ">3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n*2\r\n$1\r\n1\r\n$1\r\n2\r\n") //nolint:errcheck // a test's connection
	}
	s := open(t, Config{URI: "redis://" + redisproxy.Start(t, real.Addr, lies("TIME", redisproxy.Fate{Say: push})), Layout: segment.DefaultLayout(), Timeout: 5 * time.Second})
	var asking sync.WaitGroup
	for range 20 {
		asking.Go(func() {
			if _, err := s.Now(t.Context()); ClassOf(err) != Protocol && ClassOf(err) != Unavailable {
				t.Errorf("class %q, %v", ClassOf(err), err)
			}
		})
	}
	asking.Wait()
	eventually(t, "another command is answered", func() bool { _, err := s.StreamInfo(t.Context(), "s"); return ClassOf(err) == "" })
}

// strange are answers that the protocol allows, and that no command gives.
func strange() map[string]string {
	return map[string]string{
		"a word": "+OK\r\n", "nothing": "$-1\r\n", "yes": "#t\r\n", "no elements": "*0\r\n", "nothing in a list": "*2\r\n_\r\n$-1\r\n",
		"lists": "*2\r\n*0\r\n*1\r\n*0\r\n", "a half slot": "*1\r\n*3\r\n:0\r\n:16383\r\n*0\r\n", "a map of lists": "*1\r\n%2\r\n+slots\r\n*1\r\n:1\r\n+nodes\r\n*1\r\n*0\r\n",
		"a slot that is none": "*1\r\n*3\r\n:-5\r\n:99999999\r\n*2\r\n$1\r\nx\r\n:-1\r\n", "an empty error": "-\r\n", "a redirect to nowhere": "-MOVED 99999 :0\r\n",
	}
}

//fault:redis | A server answers a command as it would no command | a proxy answers each command that is used with each of some ten kinds of answers, of a single server and of a cluster's node | errors, no crash
func TestAnswersOfAnotherKind(t *testing.T) {
	single, cluster := redisserver.Start(t), redisserver.Start(t, redisserver.Cluster(true))
	for _, real := range []*redisserver.Server{single, cluster} {
		real.Exec("XADD", "s", "1-1", "f", "v")
		real.Exec("HSET", ordersKey(), "0", sealed)
		real.Exec("SADD", "korvet:topics", "orders")
		for _, command := range []string{"HELLO", "CLUSTER", "INFO", "SMEMBERS", "EVALSHA", "EVAL\r\n", "XRANGE"} {
			t.Run(strings.TrimSpace(command), func(t *testing.T) {
				t.Parallel()
				for name, answer := range strange() {
					fate := redisproxy.Fate{Say: func(w io.Writer) { io.WriteString(w, answer) }} //nolint:errcheck // a test's connection
					cfg := config(real)
					cfg.URI, cfg.Cluster, cfg.Reader = "redis://"+redisproxy.Start(t, real.Addr, lies(command, fate)), real == cluster, ReaderClient
					cfg.Timeout, cfg.WaitReplicas = 20*time.Millisecond, 1
					tryAll(t, cfg, command+" "+name)
				}
			})
		}
	}
}

// tryAll asks for everything, and looks at the errors.
func tryAll(t *testing.T, cfg Config, what string) {
	t.Helper()
	s, err := Open(t.Context(), cfg, nil, nil)
	if err != nil {
		return
	}
	defer s.Close()
	ctx := t.Context()
	_, errs0 := s.Now(ctx)
	_, errs1 := s.Topics(ctx)
	_, errs2 := contents(ctx, s, orders)
	_, errs3 := s.StreamInfo(ctx, "s")
	_, errs4 := s.Sizes(ctx, []segment.SizeQuery{{Key: "s", Memory: true}})
	_, errs5 := s.Peek(ctx, []segment.Peek{{Partition: orders, Numbers: []segment.Number{0}}})
	_, errs6 := s.Change(ctx, orders, segment.Change{Old: "x", New: "y"})
	_, errs7 := s.Groups(ctx, "s")
	_, _, errs8 := readAll(ctx, s, "s")
	_, errs9 := s.Known(ctx)
	_, errs10 := s.Eviction(ctx)
	s.Check(ctx)
	for i, err := range []error{errs0, errs1, errs2, errs3, errs4, errs5, errs6, errs7, errs8, errs9, errs10} {
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: call %d: more than one line: %v", what, i, err)
		}
	}
}

// FuzzFrames: it does not matter in which pieces the bytes come, and nothing
// that is refused is counted later.
func FuzzFrames(f *testing.F) {
	for _, text := range []string{"+OK\r\n", "*2\r\n$3\r\n1-1\r\n*2\r\n$1\r\nf\r\n$1\r\nv\r\n", "%1\r\n+a\r\n_\r\n", ">1\r\n+a\r\n:1\r\n", "$-1\r\n*-1\r\n#t\r\n", "*1\r\n*0\r\n-x\r\n"} {
		f.Add([]byte(text), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		whole, parts := frames{limit: 1 << 20, text: 1 << 19}, frames{limit: 1 << 20, text: 1 << 19}
		err := whole.feed(text)
		cut = min(max(cut, 0), len(text))
		perr := parts.feed(text[:cut])
		if perr == nil {
			perr = parts.feed(text[cut:])
		}
		if whole.whole != parts.whole || (err == nil) != (perr == nil) {
			t.Errorf("%d messages, %v; in parts %d, %v", whole.whole, err, parts.whole, perr)
		}
	})
}
