package segment

import (
	"strings"
	"testing"
)

func TestRestoreEntry(t *testing.T) {
	e, err := ParseEntry([]byte(`{"v":1,"rev":4,"state":"SEALED","tier":"REMOTE","firstId":"1-0","lastId":"3-0","count":3,"local":"GONE","mine":[1],"object":{"path":"p","bytes":5,"etag":"e","sha256":"s"},"source":{"lastId":"9-9","added":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	is := StreamInfo{Exists: true, Length: 3, FirstID: ID{Ms: 1}, LastID: ID{Ms: 3}, EntriesAdded: 3}
	got, err := e.Restore(is)
	want := `{"v":1,"rev":5,"state":"SEALED","tier":"REMOTE","firstId":"1-0","lastId":"3-0","count":3,"local":"PRESENT","mine":[1],"object":{"path":"p","bytes":5,"etag":"e","sha256":"s"},"source":{"lastId":"3-0","added":3}}`
	if err != nil || string(got.Encode()) != want {
		t.Errorf("%v %s", err, got.Encode())
	}
	old := is
	old.EntriesAdded = -1
	if got, err := e.Restore(old); err != nil || !strings.Contains(string(got.Encode()), `"source":{"lastId":"3-0"}`) {
		t.Errorf("%v %s", err, got.Encode())
	}
	for name, change := range map[string]func(*Entry, *StreamInfo){
		"a local copy":    func(e *Entry, _ *StreamInfo) { e.Local = Present },
		"deleting":        func(e *Entry, _ *StreamInfo) { e.State = Deleting },
		"local":           func(e *Entry, _ *StreamInfo) { e.Tier, e.Local = Local, "" },
		"shared":          func(e *Entry, _ *StreamInfo) { e.From, e.To = ID{Ms: 1}, ID{Ms: 3} },
		"no stream":       func(_ *Entry, s *StreamInfo) { *s = StreamInfo{} },
		"one too many":    func(_ *Entry, s *StreamInfo) { s.Length++ },
		"another last id": func(_ *Entry, s *StreamInfo) { s.LastID.Seq++ },
	} {
		e, s := e, is
		change(&e, &s)
		if _, err := e.Restore(s); err == nil {
			t.Errorf("%s: it is restored", name)
		}
	}
}

func TestNewRemote(t *testing.T) {
	e := NewRemote(Contents{FirstID: ID{Ms: 1}, LastID: ID{Ms: 2}, Count: 2}, Object{Path: "p", Bytes: 5, SHA256: "s"}, 3, 77)
	want := `{"v":1,"rev":1,"state":"SEALED","tier":"REMOTE","copy":3,"firstId":"1-0","lastId":"2-0","count":2,"sealedAt":77,"remoteAt":77,"local":"GONE","object":{"path":"p","bytes":5,"etag":"","sha256":"s"}}`
	if string(e.Encode()) != want {
		t.Errorf("%s", e.Encode())
	}
	if _, err := ParseEntry([]byte(want)); err != nil {
		t.Error(err)
	}
}

func TestOwns(t *testing.T) {
	l := DefaultLayout()
	for key, want := range map[string]bool{
		"korvet:topics": true, "korvet:topic:x": true, "korvet:storage:local:x:0": true, "korvet:storage:local:x:0:5": true, "korvet:storage:manifest:x:0": true,
		"korvet:storage:offload:lease": true, "korvet:storage:offload:lease:wanted": true, "korvet:storage:offload:lease:0/4": true, "korvet:storage:offload:topics": true,
		"korvet:storage:offload:members": true, "korvet:storage:offload:paused": true, "korvet:storage:offload:cluster": true, "korvet:streams": true,
		"restored:korvet:storage:local:x:0": false, "x": false, "korvet": false,
	} {
		if got := l.Owns(key); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
}
