package offload

import (
	"fmt"
	"strconv"

	"korvet-offload/segment"
)

// checkRange compares a shared stream with the range that is to be copied.
// Nothing is ever added to a range, and what was removed from it before it was
// read is gone; but the stream must have come as far.
func checkRange(e segment.Entry, key string, info segment.StreamInfo) error {
	switch {
	case !info.Exists:
		return fmt.Errorf("%w: stream %s is not there, and the manifest says that its entries from %s to %s are LOCAL; restore the stream, or delete the manifest entry if the data is not wanted",
			segment.ErrSourceMissing, key, e.From, e.To)
	case info.LastID.Compare(e.To) < 0:
		return fmt.Errorf("%w: stream %s has only come to %s, and the manifest says that the range ends at %s; look for a failover or a restore that lost writes",
			segment.ErrShortStream, key, info.LastID, e.To)
	}
	return nil
}

// checkSource compares a stream with what the manifest says of it. Fewer
// entries than the manifest counts are normal (XDEL); none at all, or a
// stream that never reached the last id, is a loss that must not be covered
// by a file.
func checkSource(e segment.Entry, key string, info segment.StreamInfo) error {
	if info.Length == 0 && e.Count == 0 {
		return nil
	}
	if info.Length == 0 {
		count := "an unknown number of entries"
		if e.Count != segment.NoCount {
			count = strconv.FormatInt(e.Count, 10) + " entries"
		}
		return fmt.Errorf("%w: stream %s has no entries, and the manifest says LOCAL with %s; restore the stream, or delete the manifest entry if the data is not wanted",
			segment.ErrSourceMissing, key, count)
	}
	if err := checkHistory(e, key, info); err != nil {
		return err
	}
	deleted := info.MaxDeletedID.Compare(e.LastID) >= 0 && info.EntriesAdded >= e.Count+info.Length // all that it had, by id
	if e.Count > 0 && !e.LastID.IsZero() && info.FirstID.Compare(e.LastID) > 0 && !deleted {
		return fmt.Errorf("%w: stream %s begins with %s, and the manifest says that it had %d entries up to %s: it was lost and made again",
			segment.ErrShortStream, key, info.FirstID, e.Count, e.LastID)
	}
	if info.LastID.Compare(e.LastID) < 0 {
		return fmt.Errorf("%w: stream %s has only come to %s, and the manifest says that it ends at %s; look for a failover or a restore that lost writes",
			segment.ErrShortStream, key, info.LastID, e.LastID)
	}
	return nil
}

// checkHistory compares the manifest's count with what the server remembers
// of the stream's past, where it does (since Redis 7.0). A stream that has
// seen fewer entries than the segment had is another stream under the same
// key, made by a late append after the first was lost. One that has fewer, and
// in which nothing was ever deleted by id, was trimmed.
func checkHistory(e segment.Entry, key string, info segment.StreamInfo) error {
	if info.EntriesAdded < 0 || e.Count <= 0 || info.Length >= e.Count {
		return nil
	}
	const look = "restore the stream, or correct the manifest entry's count if what is left is all that is wanted"
	if info.EntriesAdded < e.Count {
		return fmt.Errorf("%w: stream %s has only ever had %d entries, and the manifest says %d: it was lost and made again; %s",
			segment.ErrShortStream, key, info.EntriesAdded, e.Count, look)
	}
	if info.MaxDeletedID.IsZero() {
		return fmt.Errorf("%w: stream %s was trimmed to %d entries, and the manifest says %d; %s",
			segment.ErrShortStream, key, info.Length, e.Count, look)
	}
	return nil
}
