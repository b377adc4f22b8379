package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func at(ms, seq uint64) segment.ID { return segment.ID{Ms: ms, Seq: seq} }

// copied is a stream as it was when it was copied: three entries, of which the
// one in the middle was deleted.
func copied(server *redisserver.Server) segment.StreamInfo {
	server.Exec("DEL", "s")
	for _, id := range []string{"1-1", "1-2", "1-3"} {
		server.Exec("XADD", "s", id, "f", "v")
	}
	server.Exec("XDEL", "s", "1-2")
	return segment.StreamInfo{Length: 2, LastID: at(1, 3), EntriesAdded: 3, MaxDeletedID: at(1, 2)}
}

// TestRemoveOnlyWhatWasCopied: each guard has a stream that it alone keeps.
//
//fault:late-data | the stream is not what was copied any more when it is to be removed | each of its facts changed alone: XADD, XDEL, XTRIM, XSETID, made anew | it stays as it is
func TestRemoveOnlyWhatWasCopied(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	for name, c := range map[string]struct {
		meanwhile [][]string
		is        func(*segment.StreamInfo)
		want      bool
	}{
		"as it was":              {nil, nil, true},
		"an old server's word":   {nil, func(i *segment.StreamInfo) { i.EntriesAdded, i.MaxDeletedID = -1, segment.ID{} }, true},
		"an entry less":          {[][]string{{"XDEL", "s", "1-1"}}, nil, false},
		"an entry more":          {[][]string{{"XADD", "s", "1-4", "f", "v"}}, nil, false},
		"trimmed to nothing":     {[][]string{{"XTRIM", "s", "MAXLEN", "0"}}, nil, false},
		"the length alone":       {[][]string{{"XTRIM", "s", "MAXLEN", "1"}}, nil, false},
		"the last id alone":      {[][]string{{"XSETID", "s", "1-9", "ENTRIESADDED", "3", "MAXDELETEDID", "1-2"}}, nil, false},
		"added alone":            {[][]string{{"XSETID", "s", "1-3", "ENTRIESADDED", "4", "MAXDELETEDID", "1-2"}}, nil, false},
		"deleted alone":          {[][]string{{"XSETID", "s", "1-3", "ENTRIESADDED", "3", "MAXDELETEDID", "1-1"}}, nil, false},
		"deleted, without added": {nil, func(i *segment.StreamInfo) { i.EntriesAdded, i.MaxDeletedID = -1, at(1, 1) }, false},
		"deleted since":          {nil, func(i *segment.StreamInfo) { i.MaxDeletedID = segment.ID{} }, false},
		"another stream":         {[][]string{{"DEL", "s"}, {"XADD", "s", "1-1", "f", "w"}, {"XADD", "s", "1-3", "f", "w"}}, nil, false},
		"unknown length":         {nil, func(i *segment.StreamInfo) { i.Length = -1 }, false},
	} {
		is := copied(server)
		for _, command := range c.meanwhile {
			server.Exec(command...)
		}
		if c.is != nil {
			c.is(&is)
		}
		before := server.Exec("XINFO", "STREAM", "s", "FULL")
		ok, err := s.Remove(t.Context(), "s", is)
		if err != nil || ok != c.want {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if there := server.Exec("EXISTS", "s") == "1"; there == c.want {
			t.Errorf("%s: the stream is there: %t", name, there)
		} else if there && server.Exec("XINFO", "STREAM", "s", "FULL") != before {
			t.Errorf("%s: the stream was changed", name)
		}
	}
	if stats := server.Exec("INFO", "commandstats"); !strings.Contains(stats, "cmdstat_unlink") {
		t.Errorf("it was not UNLINK that has removed it: %s", stats)
	}
}

func TestRemoveOfAnEmptiedStream(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("XADD", "s", "1-1", "f", "v")
	server.Exec("XTRIM", "s", "MAXLEN", "0")
	info, err := s.StreamInfo(t.Context(), "s")
	if ok, rerr := s.Remove(t.Context(), "s", info); !ok || errors.Join(err, rerr) != nil {
		t.Errorf("%t, %v, %v", ok, err, rerr)
	}
}

func TestRemoveAndTrimOfNoStream(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		piece := segment.Piece{First: at(1, 1), Last: at(1, 1), Count: 1}
		removed, err := s.Remove(t.Context(), "absent", segment.StreamInfo{EntriesAdded: -1})
		if removed || err != nil {
			t.Errorf("remove what is absent: %t, %v", removed, err)
		}
		trimmed, err := s.Trim(t.Context(), "absent", piece)
		if trimmed || err != nil {
			t.Errorf("trim what is absent: %t, %v", trimmed, err)
		}
		exec("HSET", "h", "f", "v")
		_, err = s.Remove(t.Context(), "h", segment.StreamInfo{EntriesAdded: -1})
		_, terr := s.Trim(t.Context(), "h", piece)
		for _, err := range []error{err, terr} {
			if !errors.Is(err, segment.ErrWrongType) || ClassOf(err) != WrongType || !strings.Contains(err.Error(), " h: ") {
				t.Errorf("of a hash: %v", err)
			}
		}
		if exec("HGET", "h", "f") != "v" {
			t.Error("the hash was changed")
		}
		if ok, err := s.Trim(t.Context(), "h", segment.Piece{}); ok || err == nil {
			t.Errorf("an empty piece: %t, %v", ok, err)
		}
	})
}

//fault:late-data | a plain stream does not begin with what was copied any more | entries deleted at either end or between, and others before | nothing is trimmed
func TestTrimOnlyWhatWasCopied(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	is := segment.Piece{First: at(5, 1), Last: at(5, 3), Count: 3}
	for name, c := range map[string]struct {
		meanwhile []string
		piece     segment.Piece
		want      bool
	}{
		"as it was":              {[]string{"XADD", "s", "*", "f", "v"}, is, true},
		"a part of it":           {[]string{"PING"}, segment.Piece{First: at(5, 1), Last: at(5, 2), Count: 2}, true},
		"something before it":    {[]string{"PING"}, segment.Piece{First: at(5, 2), Last: at(5, 3), Count: 2}, false},
		"the first one deleted":  {[]string{"XDEL", "s", "5-1"}, is, false},
		"the last one deleted":   {[]string{"XDEL", "s", "5-3"}, is, false},
		"one in between deleted": {[]string{"XDEL", "s", "5-2"}, is, false},
		"one too many":           {[]string{"PING"}, segment.Piece{First: at(5, 1), Last: at(5, 3), Count: 2}, false},
		"another first":          {[]string{"PING"}, segment.Piece{First: at(5, 0), Last: at(5, 3), Count: 3}, false},
		"another last":           {[]string{"XDEL", "s", "5-4"}, segment.Piece{First: at(5, 1), Last: at(5, 4), Count: 3}, false},
		"nothing left":           {[]string{"XTRIM", "s", "MAXLEN", "0"}, is, false},
	} {
		server.Exec("DEL", "s")
		for i := range 4 {
			server.Exec("XADD", "s", fmt.Sprintf("5-%d", i+1), "f", "v")
		}
		server.Exec(c.meanwhile...)
		before := server.Exec("XINFO", "STREAM", "s", "FULL")
		ok, err := s.Trim(t.Context(), "s", c.piece)
		if err != nil || ok != c.want {
			t.Errorf("%s: %t, %v", name, ok, err)
		}
		if !c.want && server.Exec("XINFO", "STREAM", "s", "FULL") != before {
			t.Errorf("%s: the stream was changed", name)
		}
		if c.want && server.Exec("XRANGE", "s", "-", c.piece.Last.String()) != "" {
			t.Errorf("%s: something of the piece is left", name)
		}
		behind, _ := c.piece.Last.Next()
		if got := server.Exec("XRANGE", "s", behind.String(), "+", "COUNT", "1"); c.want && !strings.HasPrefix(got, behind.String()) {
			t.Errorf("%s: behind the piece is %q", name, got)
		}
	}
}

// TestTrimLeavesTheStream with its groups, even where nothing is left in it;
// and it gets up to the largest id that there is.
func TestTrimLeavesTheStream(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("XADD", "s", "1-1", "f", "v")
	server.Exec("XADD", "s", segment.MaxID().String(), "f", "v")
	server.Exec("XGROUP", "CREATE", "s", "g", "0")
	if ok, err := s.Trim(t.Context(), "s", segment.Piece{First: at(1, 1), Last: at(1, 1), Count: 1}); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	if ok, err := s.Trim(t.Context(), "s", segment.Piece{First: segment.MaxID(), Last: segment.MaxID(), Count: 1}); !ok || err != nil {
		t.Fatalf("%t, %v", ok, err)
	}
	info, err := s.StreamInfo(t.Context(), "s")
	if err != nil || !info.Exists || info.Length != 0 || info.LastID != segment.MaxID() {
		t.Errorf("%+v, %v", info, err)
	}
	if groups, err := s.Groups(t.Context(), "s"); err != nil || len(groups) != 1 {
		t.Errorf("%v, %v", groups, err)
	}
}

// TestRemoveOnAServerThatTellsLess: what only newer servers tell is compared
// where both sides have it.
func TestRemoveOnAServerThatTellsLess(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout()})
	addEntryTo(t.Context(), t, s, "s", "1-1")
	is := segment.StreamInfo{Length: 2, LastID: at(1, 1), EntriesAdded: 3, MaxDeletedID: at(1, 0)}
	if ok, err := s.Remove(t.Context(), "s", is); ok || err != nil {
		t.Errorf("another length: %t, %v", ok, err)
	}
	is.Length = 1
	if ok, err := s.Remove(t.Context(), "s", is); !ok || err != nil || m.Exists("s") {
		t.Errorf("%t, %v", ok, err)
	}
}

// TestTrimLeavesTheServerToOthers: a piece of the size that Trim is meant for.
func TestTrimLeavesTheServerToOthers(t *testing.T) {
	const pieces, count = 20, 1000
	server := redisserver.Start(t)
	server.Pipe(messages("s", pieces*count))
	s := open(t, config(server))
	server.Exec("CONFIG", "RESETSTAT")
	for i := range uint64(pieces) {
		ms := 1_700_000_000_000 + i*count/10
		piece := segment.Piece{First: at(ms, 0), Last: at(ms+count/10-1, 9), Count: count}
		if ok, err := s.Trim(t.Context(), "s", piece); !ok || err != nil {
			t.Fatalf("piece %d: %t, %v", i, ok, err)
		}
	}
	if n := server.Exec("XLEN", "s"); n != "0" {
		t.Errorf("%s entries are left", n)
	}
	usec := usecPerCall(t, server, "evalsha")
	t.Logf("a piece of %d entries of about 230 bytes holds the server for %.0f us (XRANGE %.0f, XTRIM %.0f)",
		count, usec, usecPerCall(t, server, "xrange"), usecPerCall(t, server, "xtrim"))
	if usec > 8000 {
		t.Errorf("a piece holds the server for %.0f us", usec)
	}
}
