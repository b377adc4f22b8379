package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

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
		">2\r\n+a\r\n*1\r\n:1\r\n:1\r\n":                               1,
		"*3\r\n:1\r\n:2\r\n":                                           0,
	} {
		whole, bytewise := frames{limit: 1000}, frames{limit: 1000}
		err := whole.feed([]byte(text))
		for i := range len(text) {
			err = errors.Join(err, bytewise.feed([]byte(text[i:i+1])))
		}
		if err != nil || whole.whole != want || bytewise.whole != want {
			t.Errorf("%q: %d and %d messages, want %d, %v", text, whole.whole, bytewise.whole, want, err)
		}
	}
}

//fault:redis | A server answers nonsense | lengths of 2^62, negative or missing ones, unknown marks, endless lines, deep nesting, told to the reader of frames | each is an error before anything is believed
func TestFramesRefuseNonsense(t *testing.T) {
	for name, text := range map[string]string{
		"another protocol": "HTTP/1.1 400 Bad Request\r\n", "a nul": "\x00", "a list of 2^62": "*4611686018427387904\r\n", "a text of 2^62": "$4611686018427387904\r\n",
		"a text of 2^33": "$8589934592\r\n", "a list that is too long": "*1048577\r\n", "a map that is too long": "%524289\r\n",
		"a negative list": "*-2\r\n", "a negative map": "%-1\r\n", "a negative text": "$-5\r\n", "a number that is none": "*1x\r\n", "without a carriage return": "*55\n:1\r\n",
		"a carriage return inside": "$1\r0\r\n", "a list without a length": "*?\r\n", "an attribute": "|1\r\n", "a line without an end": "+" + strings.Repeat("x", maxErrLine+1),
		"nested too deep": strings.Repeat("*1\r\n", maxDepth+1), "long null": "_x\r\n", "long bool": "#true\r\n", "a push inside": "*1\r\n>1\r\n",
		"many lists": "*4\r\n" + strings.Repeat("*300000\r\n", 4), "much text": "*9\r\n" + strings.Repeat("$32000000\r\n"+strings.Repeat("x", 32000000)+"\r\n", 3),
	} {
		f := frames{limit: maxReply}
		if err := f.feed([]byte(text)); !errors.Is(err, errProtocol) {
			t.Errorf("%s: %v", name, err)
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
	if grown := after.TotalAlloc - before.TotalAlloc; took > 8*time.Second || grown > 400<<20 {
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
		whole, parts := frames{limit: 1 << 20}, frames{limit: 1 << 20}
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
