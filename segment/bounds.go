package segment

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// boundForms are the forms of a bound, for who has used another one.
const boundForms = "want a time such as 2026-01-31 (UTC), 2026-01-31T08:00Z, 2026-01-31T08:00:00.5+02:00 or 1769846400000 (milliseconds), or an id such as 1769846400000-0"

// ParseFrom reads where a reading begins: an id, or a time, which stands for the
// first id of its millisecond. Times are RFC 3339 with or without seconds, a date
// (UTC), or milliseconds since 1970.
func ParseFrom(text string) (ID, error) {
	if id, err := ParseID(text); err == nil {
		return id, nil
	}
	ms, err := parseBoundTime(text)
	return ID{Ms: ms}, err
}

// ParseTo reads where a reading ends: an id, which is included, or a time as
// ParseFrom takes it, which is not: so one day's end can be the next one's
// beginning. The result is the last id that is included.
func ParseTo(text string) (ID, error) {
	if id, err := ParseID(text); err == nil {
		if id.IsZero() {
			return id, fmt.Errorf("%q: there is no message up to this id", text)
		}
		return id, nil
	}
	ms, err := parseBoundTime(text)
	if err == nil && ms == 0 {
		err = fmt.Errorf("%q: there is no message before this time", text)
	}
	if err != nil {
		return ID{}, err
	}
	return ID{Ms: ms - 1, Seq: math.MaxUint64}, nil
}

// parseBoundTime gives milliseconds since 1970.
func parseBoundTime(text string) (uint64, error) {
	if ms, err := strconv.ParseUint(text, 10, 64); err == nil && !strings.HasPrefix(text, "+") {
		return ms, nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04Z07:00", time.DateOnly} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}
		if t.UnixMilli() < 0 {
			return 0, fmt.Errorf("%q: times before 1970 have no ids", text)
		}
		return uint64(t.UnixMilli()), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} { // the first takes fractions, too
		if _, err := time.Parse(layout, text); err == nil {
			return 0, fmt.Errorf("%q: of which zone? add Z for UTC, or +02:00", text)
		}
	}
	return 0, fmt.Errorf("%q: %s", text, boundForms)
}
