package segment

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSafeKey(t *testing.T) {
	for key, want := range map[string]string{
		"orders": "orders", "Orders:eu-1_x.y": "Orders:eu-1_x.y", "": "", ".": "%2E", "..": "%2E.", "...": "%2E..", ".hidden": "%2Ehidden",
		"_x": "%5Fx", "-x": "%2Dx", "a/b": "a%2Fb", "/": "%2F", "../x": "%2E.%2Fx", "a b": "a%20b", "100%": "100%25", "%2F": "%252F",
		"{user}:1": "%7Buser%7D:1", "ü": "%C3%BC", "a\x00b": "a%00b", "\xff": "%FF", `a\b`: "a%5Cb", "a\n": "a%0A", "~": "%7E", "a+b": "a%2Bb",
	} {
		if got := SafeKey(key); got != want {
			t.Errorf("SafeKey(%q) = %q, want %q", key, got, want)
		}
		if got, err := KeyOf(want); err != nil || got != key {
			t.Errorf("KeyOf(%q) = %q, %v; want %q", want, got, err, key)
		}
	}
}

// anyKey gives keys of any bytes, and many of those that mean something in a
// path.
func anyKey() *rapid.Generator[string] {
	bytes := rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })
	path := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{".", "..", "/", "%", "2", "F", "E", "_", "-", ":", "a", "\\", "\x00"})).Draw(t, "parts"), "")
	})
	return rapid.OneOf(bytes, path, rapid.String())
}

func TestEveryKeyIsALegalFolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := anyKey().Draw(t, "key")
		folder := SafeKey(key)
		if back, err := KeyOf(folder); err != nil || back != key {
			t.Fatalf("%q as a folder is %q, and that as a key %q, %v", key, folder, back, err)
		}
		if strings.Trim(folder, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:%") != "" {
			t.Fatalf("%q as a folder is %q", key, folder)
		}
		if folder != "" && strings.ContainsAny(folder[:1], "._-") {
			t.Fatalf("%q as a folder is %q, which begins like a hidden file", key, folder)
		}
		if other := anyKey().Draw(t, "other"); other != key && SafeKey(other) == folder {
			t.Fatalf("%q and %q share the folder %q", key, other, folder)
		}
	})
}

func TestKeyOfRefusesWhatSafeKeyDoesNotWrite(t *testing.T) {
	for _, folder := range []string{".", "..", "_x", "-x", "a/b", "a b", "%", "a%2", "%2f", "%2g", "%61", "%+F", "%%", "ü", "a%2E"} {
		if key, err := KeyOf(folder); err == nil {
			t.Errorf("KeyOf(%q) = %q", folder, key)
		} else if !strings.Contains(err.Error(), "folder ") {
			t.Errorf("KeyOf(%q): %v", folder, err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		folder := anyKey().Draw(t, "folder")
		if key, err := KeyOf(folder); err == nil && SafeKey(key) != folder {
			t.Fatalf("folder %q gives %q, whose folder is %q", folder, key, SafeKey(key))
		}
	})
}

func TestStreamPatternMatches(t *testing.T) {
	for _, c := range []struct {
		pattern string
		plain   bool
		is, not []string
	}{
		{"orders", true, []string{"orders"}, []string{"order", "orders1", "Orders", ""}},
		{"a/b", true, []string{"a/b"}, []string{"a\x00b", "a", "a/b/c"}},
		{"{a}", true, []string{"{a}"}, []string{"a"}},
		{"", true, []string{""}, []string{"a"}},
		{"*", false, []string{"", "a", "a/b", "/", "a:b c", "\xff", "ü", "a\nb"}, nil},
		{"a*", false, []string{"a", "a/", "a/b/c"}, []string{"", "b", "/a"}},
		{"a/*/c", false, []string{"a/b/c", "a//c", "a/b/b/c"}, []string{"a/c", "a/b", "a.b.c"}},
		{"a?c", false, []string{"abc", "a/c", "aüc"}, []string{"ac", "abbc"}},
		{"a[b-d]", false, []string{"ab", "ad"}, []string{"a", "ae", "a-"}},
		{"a[/]b", false, []string{"a/b"}, []string{"aab"}},
		{"a[^/]b", false, []string{"aab"}, []string{"a/b"}},
		{`a\*`, false, []string{"a*", `a\*`}, []string{"ab", "a"}},
		{"[x]", false, []string{"x", "[x]"}, []string{"y"}},
		{"a[", false, nil, []string{"a", "a["}},
		{`a\`, false, nil, []string{"a", `a\`}},
	} {
		p := StreamPattern{Key: c.pattern}
		if p.Declares() != c.plain {
			t.Errorf("%q: declares = %t", c.pattern, p.Declares())
		}
		for _, key := range c.is {
			if !p.Matches(key) {
				t.Errorf("%q does not match %q", c.pattern, key)
			}
		}
		for _, key := range c.not {
			if p.Matches(key) {
				t.Errorf("%q matches %q", c.pattern, key)
			}
		}
	}
}

func TestAPlainKeyMatchesItselfAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := StreamPattern{Key: anyKey().Draw(t, "pattern")}
		key := anyKey().Draw(t, "key")
		if p.Declares() && (!p.Matches(p.Key) || p.Matches(key) != (key == p.Key)) {
			t.Fatalf("%q matches itself: %t, %q: %t", p.Key, p.Matches(p.Key), key, p.Matches(key))
		}
		if !(StreamPattern{Key: "*"}).Matches(key) {
			t.Fatalf("* does not match %q", key)
		}
	})
}

func TestResolveStream(t *testing.T) {
	patterns := []StreamPattern{
		{Key: "orders", Settings: map[string]string{"segment-entries": "9", "retention-time": "5", "segment-time": "3"}},
		{Key: "ord*", Settings: map[string]string{"segment-bytes": "7", "remote-storage-enabled": "false"}},
	}
	got, ok := ResolveStream("orders", DefaultLayout(), patterns)
	want := DefaultStreamSettings()
	want.SegmentEntries, want.RetentionMs, want.SegmentMs = 9, 5, 3
	if !ok || got.Err != nil || got.Name != "orders" || !got.Plain || got.Settings != want {
		t.Errorf("orders: %+v, %t; want %+v", got, ok, want)
	}
	if p := got.Partition(0); p != (Partition{Topic: "orders", Plain: true}) {
		t.Errorf("its partition is %+v", p)
	}
	want = DefaultStreamSettings()
	want.SegmentBytes, want.RemoteStorage = 7, false
	if got, ok := ResolveStream("ord/ers", DefaultLayout(), patterns); !ok || got.Err != nil || got.Settings != want {
		t.Errorf("ord/ers: %+v, %t", got, ok)
	}
	if got, ok := ResolveStream("bills", DefaultLayout(), patterns); ok {
		t.Errorf("a stream that no pattern matches: %+v", got)
	}
	if got, ok := ResolveStream("orders", DefaultLayout(), nil); ok {
		t.Errorf("without patterns: %+v", got)
	}
}

// Nothing of a plain stream may be deleted until somebody says so.
func TestDefaultStreamSettingsDeleteNothing(t *testing.T) {
	s := DefaultStreamSettings()
	if !s.RemoteStorage || s.Check() != nil || s.Warning() != "" {
		t.Errorf("defaults %+v: %v, %s", s, s.Check(), s.Warning())
	}
	for _, r := range []Retention{s.Total(), s.Local()} {
		if r.Ms != -1 || r.Bytes != -1 {
			t.Errorf("limits %+v", r)
		}
	}
}

func TestResolveStreamRefuses(t *testing.T) {
	odd := DefaultLayout()
	odd.Namespace, odd.Known = "a[*", "{ns}?known"
	for _, c := range []struct {
		key      string
		layout   Layout
		settings string // name=text
		want     error
		says     string
	}{
		{"", DefaultLayout(), "", ErrStreamKey, "it is empty"},
		{strings.Repeat("x", 251), DefaultLayout(), "", ErrStreamKey, "251 bytes, 250 at most"},
		{strings.Repeat("/", 84), DefaultLayout(), "", ErrStreamKey, "252 bytes, 250 at most"},
		{"korvet:topics", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:topic:orders", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:local:orders:0", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:local:orders:0:7", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:manifest:orders:0", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:offload:lease", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:offload:topics", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:storage:stream-manifest:x", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"korvet:streams", DefaultLayout(), "", ErrStreamKey, "a key of the namespace"},
		{"a[*:topic:x", odd, "", ErrStreamKey, "a key of the namespace"},
		{"a[*?known", odd, "", ErrStreamKey, "a key of the namespace"},
		{"orders", DefaultLayout(), "segment-entries=0", ErrTopicSetting, `segment-entries = "0"`},
		{"orders", DefaultLayout(), "retention-time=-2", ErrTopicSetting, `retention.ms = "-2"`},
		{"orders", DefaultLayout(), "average-message-bytes=0", ErrTopicSetting, `average.message.bytes = "0"`},
	} {
		name, text, _ := strings.Cut(c.settings, "=")
		got, ok := ResolveStream(c.key, c.layout, []StreamPattern{{Key: "*", Settings: map[string]string{name: text}}})
		if !ok || !errors.Is(got.Err, c.want) {
			t.Errorf("%q: %t, %v; want %v", c.key, ok, got.Err, c.want)
			continue
		}
		if text := got.Err.Error(); !strings.Contains(text, c.says) || !strings.HasPrefix(text, "stream "+got.Partition(0).String()+": ") || strings.Contains(text, "\n") {
			t.Errorf("%q: %q lacks the stream or %q", c.key, text, c.says)
		}
	}
	for _, c := range []struct {
		key    string
		layout Layout
	}{
		{"korvet", DefaultLayout()}, {"korvet:events", DefaultLayout()}, {"korvet:topics:x", DefaultLayout()}, {"xkorvet:topics", DefaultLayout()},
		{strings.Repeat("x", 250), DefaultLayout()}, {"aa:topics", odd}, {"a[*xknown", odd}, {"a:topic:x", odd},
	} {
		if got, _ := ResolveStream(c.key, c.layout, []StreamPattern{{Key: "*"}}); got.Err != nil {
			t.Errorf("%q is refused: %v", c.key, got.Err)
		}
	}
}

func TestNamesOfPlainStreams(t *testing.T) {
	l := DefaultLayout()
	p := Partition{Topic: "a/b {x}", Plain: true}
	for got, want := range map[string]string{
		p.String():         `"a/b {x}"`,
		l.StreamKey(p):     "a/b {x}",
		l.SegmentKey(p, 3): "a/b {x}",
		l.Folder(p):        "a%2Fb%20%7Bx%7D",
		l.ManifestKey(p):   "korvet:storage:stream-manifest:a/b {x}",
		l.StreamsKey():     "korvet:streams",
		l.KnownKey():       "korvet:storage:offload:topics",

		Partition{Topic: "orders:eu", Plain: true}.String():         "orders:eu",
		l.ManifestKey(Partition{Topic: "{partition}", Plain: true}): "korvet:storage:stream-manifest:{partition}",
		l.Folder(Partition{Topic: "orders", Number: 2}):             "korvet:storage:local:orders:2",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestIsObjectOf(t *testing.T) {
	for path, want := range map[string]bool{
		"f/7.parquet": true, "f/7-1.parquet": true, "f/7-12.ab.parquet": true, "f/7.ab.parquet": true, "f/7.a.b.parquet": true,
		"f/70.parquet": false, "f/6.parquet": false, "f/07.parquet": false, "g/7.parquet": false, "f7.parquet": false, "f/7": false, "f/7.parque": false,
		"f/7.parquet.bak": false, "f/7/x.parquet": false, "f/7-1/x.parquet": false, "f/7-0.parquet": false, "f/7-01.parquet": false,
		"f/7-.parquet": false, "f/7--1.parquet": false, "f/7-backup.parquet": false, "f/7..parquet": false, "f/7parquet": false, "x/f/7.parquet": false, "": false, "f/": false,
	} {
		if got := IsObjectOf(path, "f", 7); got != want {
			t.Errorf("%s is an object of segment 7: %t, want %t", path, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		folder := SafeKey(anyKey().Draw(t, "key"))
		n, other := Number(rapid.Uint64().Draw(t, "n")), Number(rapid.Uint64().Draw(t, "other"))
		path := ObjectPath(folder, n, rapid.Int64Range(0, 1<<62).Draw(t, "copy"), rapid.StringMatching(`[a-z0-9]{0,8}`).Draw(t, "suffix"))
		if !IsObjectOf(path, folder, n) {
			t.Fatalf("%s is none of segment %s in %s", path, n, folder)
		}
		if n != other && IsObjectOf(path, folder, other) {
			t.Fatalf("%s is one of segment %s in %s", path, other, folder)
		}
	})
}
