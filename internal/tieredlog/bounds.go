package tieredlog

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"korvet-offload/segment"
)

// ParseFrom reads where a reading begins: an id, or a time, which stands for the
// first id of its millisecond. Times are RFC 3339 with or without seconds, a date
// (UTC), or milliseconds since 1970.
func ParseFrom(text string) (segment.ID, error) {
	if id, err := segment.ParseID(text); err == nil {
		return id, nil
	}
	ms, err := parseTime(text)
	return segment.ID{Ms: ms}, err
}

// ParseTo reads where a reading ends: an id, which is included, or a time as
// ParseFrom takes it, which is not: so one day's end can be the next one's
// beginning.
func ParseTo(text string) (segment.ID, error) {
	if id, err := segment.ParseID(text); err == nil {
		if id.IsZero() {
			return id, fmt.Errorf("%q: there is no message up to this id", text)
		}
		return id, nil
	}
	ms, err := parseTime(text)
	if err == nil && ms == 0 {
		err = fmt.Errorf("%q: there is no message before this time", text)
	}
	if err != nil {
		return segment.ID{}, err
	}
	return segment.ID{Ms: ms - 1, Seq: math.MaxUint64}, nil
}

// parseTime gives milliseconds since 1970.
func parseTime(text string) (uint64, error) {
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
	return 0, fmt.Errorf("%q: want a time such as 2026-01-31, 2026-01-31T08:00Z or 1769846400000, or an id such as 1769846400000-0", text)
}
