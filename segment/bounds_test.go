package segment

import (
	"math"
	"testing"
)

func TestBounds(t *testing.T) {
	for text, want := range map[string]uint64{
		"2026-01-31": 1769817600000, "2026-01-31T08:00Z": 1769846400000, "2026-01-31T08:00:00Z": 1769846400000, "2026-01-31T09:00+01:00": 1769846400000,
		"2026-01-31T08:00:00.5Z": 1769846400500, "1769846400000": 1769846400000, "0": 0,
	} {
		if id, err := ParseFrom(text); err != nil || id != (ID{Ms: want}) {
			t.Errorf("from %s: %s, %v", text, id, err)
		}
		if id, err := ParseTo(text); want > 0 && (err != nil || id != (ID{Ms: want - 1, Seq: math.MaxUint64})) {
			t.Errorf("to %s: %s, %v", text, id, err)
		}
	}
	for _, text := range []string{"", "soon", "2026-13-01", "1969-12-31", "-5", "+5", "5-", "2026-01-31 08:00", "99999999999999999999"} {
		if id, err := ParseFrom(text); err == nil {
			t.Errorf("%q: %s", text, id)
		}
	}
	for text, want := range map[string]string{
		"2026-01-31T08:00":      `"2026-01-31T08:00": of which zone? add Z for UTC, or +02:00`,
		"2026-01-31T08:00:00":   `"2026-01-31T08:00:00": of which zone? add Z for UTC, or +02:00`,
		"2026-01-31T08:00:00.5": `"2026-01-31T08:00:00.5": of which zone? add Z for UTC, or +02:00`,
		"yesterday":             `"yesterday": want a time such as 2026-01-31 (UTC), 2026-01-31T08:00Z, 2026-01-31T08:00:00.5+02:00 or 1769846400000 (milliseconds), or an id such as 1769846400000-0`,
	} {
		if _, err := ParseFrom(text); err == nil || err.Error() != want {
			t.Errorf("from %s: %v", text, err)
		}
		if _, err := ParseTo(text); err == nil || err.Error() != want {
			t.Errorf("to %s: %v", text, err)
		}
	}
	for _, text := range []string{"0", "0-0", "1970-01-01"} {
		if id, err := ParseTo(text); err == nil {
			t.Errorf("to %q: %s", text, id)
		}
	}
	for _, text := range []string{"5-3", "0-0"} {
		id, err := ParseFrom(text)
		if to, _ := ParseTo(text); err != nil || id.String() != text || to != id && text != "0-0" {
			t.Errorf("%s: %s", text, id)
		}
	}
}
