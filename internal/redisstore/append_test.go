package redisstore

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// pageOf makes a page of entries.
func pageOf(t *testing.T, all ...entry) *segment.Page {
	t.Helper()
	p := new(segment.Page)
	for _, e := range all {
		id, err := segment.ParseID(e.id)
		if err != nil {
			t.Fatal(err)
		}
		p.Entry(id)
		for i := 0; i < len(e.fields); i += 2 {
			if err := p.Field([]byte(e.fields[i]), []byte(e.fields[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}

// TestAppendKeepsEverything: what comes out is what went in, in one batch, in the
// next, and through either way to write.
func TestAppendKeepsEverything(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	var many []string
	for i := range 10_000 {
		many = append(many, fmt.Sprintf("f%d", i), "v")
	}
	batches := [][]entry{
		{{"1-1", []string{"b", "1", "a", "2", "b", "", "", "\x00\xff\r\n"}}, {"1-9", []string{"f", "v"}}, {"1-10", []string{"f", "v"}}},
		{{"2-0", many}},
		{{"2-1", []string{"large", strings.Repeat("x", 3<<20), "large", "y"}}},
		{{"3-0", []string{"f", "v"}}, {"18446744073709551615-18446744073709551615", []string{"f", "v"}}},
	}
	var all []entry
	var last segment.ID
	for _, b := range batches {
		p := pageOf(t, b...)
		if ok, err := s.Append(t.Context(), "s", int64(len(all)), last, p); !ok || err != nil {
			t.Fatalf("%s: %t, %v", b[0].id, ok, err)
		}
		all, last = append(all, b...), p.ID(p.Len()-1)
	}
	got, _, err := readAll(t.Context(), s, "s")
	if err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("%d entries, want %d; %v", len(got), len(all), err)
	}
	server.Exec("SCRIPT", "FLUSH")
	server.Exec("DEL", "s")
	if ok, err := s.Append(t.Context(), "s", 0, segment.ID{}, pageOf(t, batches[0]...)); !ok || err != nil {
		t.Errorf("after SCRIPT FLUSH: %t, %v", ok, err)
	}
}

// TestAppendOnlyToWhatIsThere: each guard has a stream that it alone keeps.
//
//fault:late-data | somebody else writes to a stream while it is restored | XADD, XDEL, XTRIM, DEL between two batches, small and large | nothing is added, and the caller hears of it
func TestAppendOnlyToWhatIsThere(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	small := func(id string) []entry { return []entry{{id, []string{"f", "v"}}} }
	large := func(id string) []entry { return []entry{{id, []string{"f", strings.Repeat("x", 2<<20)}}} }
	for name, c := range map[string]struct {
		meanwhile [][]string
		length    int64
		last      segment.ID
		id        string
		want      bool
	}{
		"as it was":                 {nil, 2, at(1, 2), "1-3", true},
		"a higher id came":          {[][]string{{"XADD", "s", "9-9", "f", "v"}}, 2, at(1, 2), "1-3", false},
		"an id that would fit came": {[][]string{{"XADD", "s", "1-3", "f", "v"}}, 2, at(1, 2), "1-4", false},
		"one went, one came":        {[][]string{{"XDEL", "s", "1-1"}, {"XADD", "s", "1-3", "f", "v"}}, 2, at(1, 2), "1-4", false},
		"one went":                  {[][]string{{"XDEL", "s", "1-1"}}, 2, at(1, 2), "1-3", false},
		"the last went":             {[][]string{{"XDEL", "s", "1-2"}}, 1, at(1, 1), "1-2", false},
		"it is gone":                {[][]string{{"DEL", "s"}}, 2, at(1, 2), "1-3", false},
		"it is not fresh":           {nil, 0, segment.ID{}, "1-3", false},
		"emptied":                   {[][]string{{"XTRIM", "s", "MAXLEN", "0"}}, 0, segment.ID{}, "1-3", false},
		"an id that is not above":   {nil, 2, at(1, 2), "1-2", false},
	} {
		for size, batch := range map[string]func(string) []entry{"small": small, "large": large} {
			server.Exec("DEL", "s")
			server.Exec("XADD", "s", "1-1", "f", "v")
			server.Exec("XADD", "s", "1-2", "f", "v")
			for _, command := range c.meanwhile {
				server.Exec(command...)
			}
			before, _ := server.TryExec("XINFO", "STREAM", "s")
			ok, err := s.Append(t.Context(), "s", c.length, c.last, pageOf(t, batch(c.id)...))
			if err != nil || ok != c.want {
				t.Errorf("%s, %s: %t, %v", name, size, ok, err)
			}
			if after, _ := server.TryExec("XINFO", "STREAM", "s"); (after == before) == c.want {
				t.Errorf("%s, %s: %s", name, size, after)
			}
		}
	}
	server.Exec("XGROUP", "CREATE", "fresh", "g", "0", "MKSTREAM")
	if ok, err := s.Append(t.Context(), "fresh", 0, segment.ID{}, pageOf(t, small("1-1")...)); !ok || err != nil {
		t.Errorf("a stream that was never written to: %t, %v", ok, err)
	}
}

// A batch is added whole or not at all.
//
//fault:redis | Redis has reached maxmemory while a stream is restored | maxmemory 1 at a real server | the batch is refused with a message that names maxmemory, and nothing of it is there
func TestAppendRefuses(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	good := entry{"1-1", []string{"f", "v"}}
	for name, batch := range map[string][]entry{
		"ids that do not ascend": {good, {"1-3", []string{"f", "v"}}, {"1-2", []string{"f", "v"}}},
		"an id twice":            {good, good},
	} {
		if ok, err := s.Append(t.Context(), "s", 0, segment.ID{}, pageOf(t, batch...)); ok || err != nil {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	for name, batch := range map[string][]entry{
		"has no fields":     {good, {"1-3", nil}},
		"has to go alone":   {good, {"1-3", []string{"f", strings.Repeat("x", 2<<20)}}},
		"1-5 has no fields": {{"1-5", nil}},
	} {
		if ok, err := s.Append(t.Context(), "s", 0, segment.ID{}, pageOf(t, batch...)); ok || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
	}
	if ok, err := s.Append(t.Context(), "s", 0, segment.ID{}, new(segment.Page)); ok || err != nil {
		t.Errorf("nothing: %t, %v", ok, err)
	}
	server.Exec("SET", "text", "x")
	if _, err := s.Append(t.Context(), "text", 0, segment.ID{}, pageOf(t, good)); !errors.Is(err, segment.ErrWrongType) {
		t.Errorf("to a text: %v", err)
	}
	server.Exec("CONFIG", "SET", "maxmemory", "1")
	for _, batch := range [][]entry{{good, {"1-2", []string{"f", "v"}}}, {{"1-1", []string{"f", strings.Repeat("x", 2<<20)}}}} {
		if _, err := s.Append(t.Context(), "s", 0, segment.ID{}, pageOf(t, batch...)); ClassOf(err) != NoMemory || !strings.Contains(err.Error(), "maxmemory") {
			t.Errorf("full: %v", err)
		}
	}
	if got := server.Exec("EXISTS", "s"); got != "0" {
		t.Error("something was added")
	}
}

func TestRegisterTopic(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	want := map[string]string{"partitions": "3", "retention.ms": "-1"}
	for range 2 { // the second finds what the first has written, as after a crash between its two steps
		if err := s.RegisterTopic(t.Context(), "orders", want); err != nil {
			t.Fatal(err)
		}
	}
	topics, err := s.Topics(t.Context())
	if err != nil || len(topics) != 1 || topics[0].Settings.Partitions != 3 || topics[0].Settings.RetentionMs != -1 {
		t.Errorf("%+v, %v", topics, err)
	}
	for name, before := range map[string][]string{
		"other settings":            {"HSET", "korvet:topic:other", "partitions", "3", "retention.ms", "5"},
		"fewer settings":            {"HSET", "korvet:topic:other", "partitions", "3"},
		"more settings":             {"HSET", "korvet:topic:other", "partitions", "3", "retention.ms", "-1", "id", "x"},
		"a registry that is no set": {"SET", "korvet:topics", "x"},
	} {
		server.Exec("FLUSHALL")
		server.Exec(before...)
		if err := s.RegisterTopic(t.Context(), "other", want); !errors.Is(err, ErrRegistered) {
			t.Errorf("%s: %v", name, err)
		}
		if n := server.Exec("DBSIZE"); n != "1" {
			t.Errorf("%s: %s keys", name, n)
		}
	}
}
