package s3sink

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxKey is S3's limit for a whole key, the prefix included, in bytes.
const maxKey = 1024

// checkKey accepts keys that mean the same to every store: relative, with
// plain parts between single slashes, in UTF-8, without control characters.
func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("key is empty")
	case len(key) > maxKey:
		return fmt.Errorf("key is longer than %d bytes", maxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("key %q is not UTF-8", key)
	case strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' }):
		return fmt.Errorf("key %q holds a control character or a backslash", key)
	}
	for part := range strings.SplitSeq(key, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Errorf("key %q holds the part %q", key, part)
		}
	}
	return nil
}

// checkPrefix accepts the beginnings of keys.
func checkPrefix(prefix string) error {
	if prefix == "" {
		return nil
	}
	// A beginning may end in the middle of a part, so finish it.
	return checkKey(prefix + "x")
}

// maxMeta is S3's limit for all user metadata of an object, in bytes.
const maxMeta = 2 << 10

// metaSHA256 is the name under which S3 objects carry their SHA-256.
const metaSHA256 = "sha256"

func checkMeta(meta map[string]string) error {
	total := len(metaSHA256) + 64
	for name, value := range meta {
		if !validMetaName(name) || name == metaSHA256 {
			return fmt.Errorf("metadata name %q: want a-z, 0-9 and '-', and not %q", name, metaSHA256)
		}
		total += len(name) + len(escapeMeta(value))
	}
	if total > maxMeta {
		return fmt.Errorf("metadata is %d bytes; S3 keeps %d", total, maxMeta)
	}
	return nil
}

func validMetaName(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-'
	})
}

// escapeMeta makes a header value of any string: printable ASCII stays as it
// is, except '%'; everything else, and blanks at the ends, become %XX.
func escapeMeta(value string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		edge := i == 0 || i == len(value)-1
		if c < ' ' || c > '~' || c == '%' || c == ' ' && edge {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// unescapeMeta undoes escapeMeta; a '%' that escapeMeta can't have written
// stays.
func unescapeMeta(value string) string {
	if !strings.Contains(value, "%") {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '%' && i+2 < len(value) {
			if c, ok := unhex(value[i+1], value[i+2]); ok {
				b.WriteByte(c)
				i += 2
				continue
			}
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

func unhex(hi, lo byte) (byte, bool) {
	const digits = "0123456789ABCDEF"
	h, l := strings.IndexByte(digits, hi), strings.IndexByte(digits, lo)
	return byte(h<<4 | l), h >= 0 && l >= 0
}

// CheckKey says what is wrong with a key; see Store. It is here for other
// implementations of Store.
func CheckKey(key string) error { return checkKey(key) }

// CheckUpload says what is wrong with an upload, its body aside. It is here for
// other implementations of Store.
func CheckUpload(u Upload) error { return u.check() }
