package config

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"korvet-offload/internal/redisstore"
)

// hidden stands where a secret would stand.
const hidden = "xxxxx"

// redactURL is a URL as it may be shown: whole where it has no place for a
// password, else without it, and not at all where it can't be told what in it
// is the password.
func redactURL(text string) string {
	scheme, _, ok := strings.Cut(text, "://")
	switch {
	case plainPath.MatchString(text), slashLost.MatchString(text):
		return text
	case !ok, strings.HasPrefix(scheme, "redis"), scheme == "unix":
		return redisstore.RedactURI(text)
	case plainURL.MatchString(text):
		return text
	}
	return "(not shown: it may hold a password)"
}

// plainURL has no place for a password: no user, no query, and behind the host
// nothing but, with http, a port. The path may have any colon.
var plainURL = regexp.MustCompile(`^(?:https?://(?:[^:/@?#\[\]]*|\[[0-9a-fA-F:.]+\])(?::\d{1,5})?|[a-z0-9]+://[^:/@?#]*)(?:/[^@?#]*)?$`)

// plainPath is a path where a URL should be, the likeliest slip.
var plainPath = regexp.MustCompile(`^\.{0,2}/[^@:?#]*$`)

// slashLost is a place of objects with a slash too few, the next likeliest.
var slashLost = regexp.MustCompile(`^(?:s3a?|file):/[^@:?#]*$`)

// quote puts a text that somebody wrote on one line of a bounded length.
func quote(text string) string {
	const most = 200
	if r := []rune(text); len(r) > most {
		text = string(r[:most]) + "..."
	}
	return strconv.Quote(text)
}

// printable is a name that somebody wrote, quoted where it would not stay on
// its line.
func printable(name string) string {
	odd := func(r rune) bool { return !unicode.IsGraphic(r) || r == unicode.ReplacementChar }
	if len(name) > 200 || strings.ContainsFunc(name, odd) {
		return quote(name)
	}
	return name
}

// oneLine makes one line of a message of the operating system or a library.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
