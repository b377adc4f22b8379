package segment

import (
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// maxFolder is how long a folder's name may be where file systems still take
// it.
const maxFolder = 250

// SafeKey writes a stream's key as one part of an object path: bytes other
// than a-z, A-Z, 0-9, '.', '_', ':' and '-' become %XX, and so does a '.', '_'
// or '-' at the beginning, so that no key looks like "..", like a hidden file
// or like this program's own objects. KeyOf undoes it.
func SafeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == ':':
			b.WriteByte(c)
		case i > 0 && (c == '.' || c == '_' || c == '-'):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// KeyOf is the key that SafeKey has written.
func KeyOf(folder string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(folder); i++ {
		if folder[i] != '%' {
			b.WriteByte(folder[i])
			continue
		}
		if i+3 > len(folder) {
			return "", fmt.Errorf("folder %q: a %% without two hex digits", folder)
		}
		c, err := strconv.ParseUint(folder[i+1:i+3], 16, 8)
		if err != nil {
			return "", fmt.Errorf("folder %q: a %% without two hex digits", folder)
		}
		b.WriteByte(byte(c))
		i += 2
	}
	if SafeKey(b.String()) != folder {
		return "", fmt.Errorf("folder %q: not made of a stream's key", folder)
	}
	return b.String(), nil
}

// StreamPattern is one element of korvet.streams[]: the key of a plain stream,
// or a glob over the keys in the Set of plain streams, and the settings, by
// flat name, of the streams that it matches.
type StreamPattern struct {
	Key      string            // a glob: *, ?, [a-z]; * also matches '/'
	Settings map[string]string // flat name -> text
}

// Declares says whether the pattern is a plain key, which also makes the
// stream known.
func (p StreamPattern) Declares() bool { return !strings.ContainsAny(p.Key, `*?[\`) }

// Matches says whether the pattern applies to a key.
func (p StreamPattern) Matches(key string) bool {
	if p.Declares() {
		return p.Key == key
	}
	flat := strings.NewReplacer("/", "\x00").Replace // path.Match stops at a '/', which is nothing special in a key
	ok, err := path.Match(flat(p.Key), flat(key))
	return err == nil && (ok || p.Key == key)
}

// StreamSettingTable lists the settings of a plain stream: those of a topic
// that have a meaning here, and segment-entries.
func StreamSettingTable() []TopicSetting {
	var table []TopicSetting
	for _, t := range TopicSettingTable() {
		switch t.Flat {
		case "", "partitions":
		case "remote-storage-enabled":
			t.Effect = "false: no new copies; what was copied lives on"
			table = append(table, t)
		default:
			table = append(table, t)
		}
	}
	return append(table, TopicSetting{"", "", "segment-entries", "roll an open segment that has as many entries",
		limit(1, func(s *TopicSettings) *int64 { return &s.SegmentEntries })})
}

// DefaultStreamSettings are the settings of a plain stream about which nothing
// is said: everything is copied, and nothing is deleted anywhere.
func DefaultStreamSettings() TopicSettings {
	s := DefaultTopicSettings()
	s.RemoteStorage, s.RetentionMs = true, -1
	return s
}

// ResolveStream makes a plain stream of the patterns: per setting that of the
// first matching pattern, then the default. False means that none matches, so
// that the stream is none of ours. A key that belongs to a topic, or that
// makes too long a path, is parked.
func ResolveStream(key string, l Layout, patterns []StreamPattern) (Topic, bool) {
	for _, p := range patterns {
		if !p.Matches(key) {
			continue
		}
		t := Topic{Name: key, Plain: true, Settings: DefaultStreamSettings()}
		if t.Err = l.checkPlain(key); t.Err == nil {
			t.apply(StreamSettingTable(), nil, p.Settings)
		}
		return t, true
	}
	return Topic{}, false
}

// checkPlain refuses the keys that a plain stream must not have.
func (l Layout) checkPlain(key string) error {
	var err error
	switch {
	case key == "":
		err = errors.New("it is empty")
	case len(SafeKey(key)) > maxFolder:
		err = fmt.Errorf("as a folder it has %d bytes, %d at most", len(SafeKey(key)), maxFolder)
	case l.owns(key):
		err = errors.New("it is a key of the namespace: segments of topics are offloaded by their topic")
	default:
		return nil
	}
	return fmt.Errorf("stream %s: %w: %w", Partition{Topic: key, Plain: true}, ErrStreamKey, err)
}

// owns says whether a key could be one of the layout's.
func (l Layout) owns(key string) bool {
	literal := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace
	expand := strings.NewReplacer("{ns}", literal(l.Namespace), "{topic}", "*", "{partition}", "*", "{segment}", "*", "{key}", "*").Replace
	for _, pattern := range []string{l.Topics, l.Topic, l.Stream, l.SegmentStream, l.Manifest, l.Lease, l.Streams, l.StreamManifest, l.Known} {
		glob := expand(literal(pattern))
		if (StreamPattern{Key: glob}).Matches(key) {
			return true
		}
	}
	return false
}
