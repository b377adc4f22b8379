package segment

import (
	"errors"
	"fmt"
	"iter"
	"math"
)

// clockTolerance is how far in the future a time may lie that the Redis
// server's clock has once shown: another server may have taken its place.
const clockTolerance = 3_600_000 // ms

// Due is why something is due: a limit, and by how much it is exceeded.
type Due struct {
	Limit string
	Over  int64 // in Unit
}

// Unit is the unit of Over: ms, bytes or entries.
func (d Due) Unit() string {
	switch d.Limit {
	case "segment.bytes", "local.retention.bytes", "retention.bytes", "segment-bytes", "local-retention-bytes", "retention-bytes":
		return "bytes"
	case "segment-entries":
		return "entries"
	}
	return "ms"
}

// Flat is the same with the limit's name as the settings file has it.
func (d Due) Flat() Due {
	for _, t := range TopicSettingTable() {
		if t.Kafka != "" && t.Kafka == d.Limit {
			d.Limit = t.Flat
		}
	}
	return d
}

// OpenStream is what is known of the stream of an OPEN segment.
type OpenStream struct {
	Length  int64 // entries of the segment, as far as the server tells without reading
	Bytes   int64 // that they take in Redis; -1 = not measured
	FirstMs int64 // of the first entry's id; 0 = not known
}

// RollDue says whether an OPEN segment is to be sealed, and why. One without
// entries never is. Its age counts from when it was opened, or from its first
// entry where the entry does not say; one that seems to be opened hours in
// the future was opened by another clock, and is due.
func (s TopicSettings) RollDue(e Entry, o OpenStream, now int64) (Due, bool) {
	if o.Length == 0 {
		return Due{}, false
	}
	opened := e.OpenedAt
	if opened == 0 {
		opened = o.FirstMs
	}
	age := now - opened
	bytes := o.Bytes
	if s.AverageMessageBytes > 0 {
		bytes = times(o.Length, s.AverageMessageBytes)
	}
	switch {
	case opened != 0 && age >= s.SegmentMs:
		return Due{"segment.ms", age - s.SegmentMs}, true
	case opened != 0 && age < -clockTolerance:
		return Due{"segment.ms", 0}, true
	case bytes >= s.SegmentBytes:
		return Due{"segment.bytes", bytes - s.SegmentBytes}, true
	case s.SegmentEntries > 0 && o.Length >= s.SegmentEntries:
		return Due{"segment-entries", o.Length - s.SegmentEntries}, true
	}
	return Due{}, false
}

// times multiplies two numbers from 0 upwards, up to the largest there is.
func times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// Size is the size of a segment with so many entries: by the average where
// the topic has one, else as it was measured.
func (s TopicSettings) Size(count, measured int64) int64 {
	if s.AverageMessageBytes > 0 && count >= 0 {
		return times(count, s.AverageMessageBytes)
	}
	return max(0, measured)
}

// Retention is one pair of limits; -1 = none.
type Retention struct {
	Ms, Bytes         int64
	MsName, BytesName string
}

// Total is the retention over both tiers.
func (s TopicSettings) Total() Retention {
	return Retention{s.RetentionMs, s.RetentionBytes, "retention.ms", "retention.bytes"}
}

// Local is the retention in Redis: what is -2 is taken from the total.
func (s TopicSettings) Local() Retention {
	r := Retention{s.LocalRetentionMs, s.LocalRetentionBytes, "local.retention.ms", "local.retention.bytes"}
	if r.Ms == -2 {
		r.Ms, r.MsName = s.RetentionMs, "retention.ms"
	}
	if r.Bytes == -2 {
		r.Bytes, r.BytesName = s.RetentionBytes, "retention.bytes"
	}
	return r
}

// Check refuses numbers that are out of range, and a local retention above the
// total, as Kafka does: data can't stay longer in one tier than in both.
func (s TopicSettings) Check() error {
	errs := s.outOfRange()
	for _, p := range []struct {
		name         string
		local, total int64
	}{
		{"retention.ms", s.LocalRetentionMs, s.RetentionMs},
		{"retention.bytes", s.LocalRetentionBytes, s.RetentionBytes},
	} {
		if p.total != -1 && p.local != -2 && (p.local == -1 || p.local > p.total) {
			errs = append(errs, fmt.Errorf("local.%s = %d is above %s = %d", p.name, p.local, p.name, p.total))
		}
	}
	return errors.Join(errs...)
}

// outOfRange finds what no text of a setting can lead to, but a record of the
// settings can hold.
func (s TopicSettings) outOfRange() (errs []error) {
	for _, n := range []struct {
		name         string
		value, least int64
	}{
		{"retention.ms", s.RetentionMs, -1},
		{"retention.bytes", s.RetentionBytes, -1},
		{"local.retention.ms", s.LocalRetentionMs, -2},
		{"local.retention.bytes", s.LocalRetentionBytes, -2},
		{"segment.ms", s.SegmentMs, 1},
		{"segment.bytes", s.SegmentBytes, 1},
		{"average.message.bytes", s.AverageMessageBytes, 0},
		{"segment-entries", s.SegmentEntries, 0},
	} {
		if n.value < n.least {
			errs = append(errs, fmt.Errorf("%s = %d: want a whole number from %d upwards", n.name, n.value, n.least))
		}
	}
	return errs
}

// Warning says what of the settings is legal and can't work; "" if nothing.
func (s TopicSettings) Warning() string {
	if local := s.Local(); local.Ms >= 0 && s.SegmentMs > local.Ms && s.SegmentEntries == 0 {
		return fmt.Sprintf("segment.ms = %d is above %s = %d: a segment is sealed later than its local copy should be gone",
			s.SegmentMs, local.MsName, local.Ms)
	}
	return ""
}

// Span is what retention looks at of one segment.
type Span struct {
	Number Number
	At     int64 // epoch ms, of the newest entry; 0 = not known
	Bytes  int64
}

// Overdue gives the segments that are past a limit, with the limit and by how
// much. spans are given oldest first, and all of them count into total; so
// does what can't be removed, or an OPEN segment, which is not among the
// spans. A segment goes by size only as a whole: what stays is never below
// the limit. It stops at the first segment that stays; one whose age or size
// is not known stays and is passed over.
func (r Retention) Overdue(now, total int64, spans iter.Seq[Span]) iter.Seq2[Span, Due] {
	return func(yield func(Span, Due) bool) {
		if r.Ms < 0 && r.Bytes < 0 {
			return
		}
		over := int64(-1)
		if r.Bytes >= 0 {
			over = max(-1, total-r.Bytes)
		}
		for s := range spans {
			var d Due
			age := now - s.At
			switch {
			case r.Ms >= 0 && s.At != 0 && age > r.Ms:
				d = Due{r.MsName, age - r.Ms}
			case s.Bytes > 0 && over >= s.Bytes:
				d = Due{r.BytesName, over}
			case r.Ms >= 0 && s.At == 0 || r.Bytes >= 0 && s.Bytes == 0:
				continue
			default:
				return
			}
			over = max(-1, over-s.Bytes) // not further below, where it would come out above
			if !yield(s, d) {
				return
			}
		}
	}
}
