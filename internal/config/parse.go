package config

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// What is right, by kind. Each ends a fault's line.
var (
	errBool     = errors.New("want true or false")
	errNumber   = errors.New("want a whole number such as 4")
	errDuration = errors.New("want a duration of 0 or more, such as 90s, 1m, 2h, 7d or 60000 (milliseconds)")
	errTooLong  = errors.New("it is too long: want a duration below 292 years, such as 90s, 1m, 2h, 7d or 60000 (milliseconds)")
	errMillis   = errors.New("want whole milliseconds, such as 90s, 1m, 2h, 7d or 60000")
	errSize     = errors.New("want a size of 0 or more, such as 64MB, 64MiB (the same) or 67108864 (bytes)")
	errTooLarge = errors.New("it is too large: want a size below 8388608TB, such as 64MB, 64MiB (the same) or 67108864 (bytes)")
)

// parseBool takes the words that Spring takes.
func parseBool(text string) (bool, error) {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "true", "yes", "on", "1":
		return true, nil
	case "false", "no", "off", "0":
		return false, nil
	}
	return false, errBool
}

func parseNumber(text string) (int, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return 0, errNumber
	}
	return int(n), nil
}

// parseDuration takes Go's form with d for days, ISO 8601 (PT1M), and plain
// milliseconds.
func parseDuration(text string) (time.Duration, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	switch {
	case s == "":
		return 0, errDuration
	case isDigits(s):
		s += "ms"
	}
	if strings.HasPrefix(s, "p") {
		var ok bool
		if s, ok = fromISO(s); !ok {
			return 0, errDuration
		}
	}
	if !durationForm.MatchString(s) {
		return 0, errDuration
	}
	return sumDuration(s)
}

var durationForm = regexp.MustCompile(`^(?:\d+d)?(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))*$`)

// sumDuration reads a text of the right form, days first; what can go wrong is
// its length.
func sumDuration(s string) (time.Duration, error) {
	const day = 24 * time.Hour
	var days int64
	if count, rest, ok := strings.Cut(s, "d"); ok {
		var err error
		if days, err = strconv.ParseInt(count, 10, 64); err != nil || days > math.MaxInt64/int64(day) {
			return 0, errTooLong
		}
		s = rest + "0s"
	}
	d, err := time.ParseDuration(s)
	if d += time.Duration(days) * day; err != nil || d < 0 {
		return 0, errTooLong
	}
	return d, nil
}

// isoDuration is the part of ISO 8601 that has a fixed length: no years, no
// months.
var isoDuration = regexp.MustCompile(`^p(\d+d)?(?:t(\d+h)?(\d+m)?(\d+(?:\.\d+)?s)?)?$`)

// fromISO rewrites a lower-case ISO duration to the other form.
func fromISO(s string) (string, bool) {
	m := isoDuration.FindStringSubmatch(s)
	if m == nil {
		return "", false
	}
	s = strings.Join(m[1:], "")
	return s, s != ""
}

// parseSize takes plain bytes and binary multiples, as Spring's DataSize.
func parseSize(text string) (int64, error) {
	s := strings.ToUpper(strings.TrimSpace(text))
	digits := strings.TrimRight(s, "BIKMGT")
	shift, ok := map[string]uint{"": 0, "B": 0, "KB": 10, "KIB": 10, "MB": 20, "MIB": 20, "GB": 30, "GIB": 30, "TB": 40, "TIB": 40}[s[len(digits):]]
	if !ok || !isDigits(digits) {
		return 0, errSize
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, errTooLarge
	}
	return n << shift, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// formatDuration writes 1m where time.Duration writes 1m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// formatSize writes whole multiples with their unit and the rest in bytes.
func formatSize(n int64) string {
	for _, u := range []struct {
		shift uint
		name  string
	}{{40, "TB"}, {30, "GB"}, {20, "MB"}, {10, "KB"}} {
		if n >= 1<<u.shift && n%(1<<u.shift) == 0 {
			return strconv.FormatInt(n>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
