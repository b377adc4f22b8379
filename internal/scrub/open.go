package scrub

import "korvet-offload/segment"

// unopened notes that no segment of a partition is OPEN, so that producers have
// nowhere to append to. It may be so: a broker may open a segment only when there is
// a message for it. It is also what an interrupted restore of the manifest leaves.
// Where an entry can't be read, that may be the one.
func (r *round) unopened() []Finding {
	rows := r.f.manifest.rows
	if len(rows) == 0 || !r.works() {
		return nil
	}
	for _, w := range rows {
		if w.err != nil || w.entry.State == segment.Open {
			return nil
		}
	}
	f := r.f.finding(Gap, rows[len(rows)-1].number+1, "no segment is OPEN, after %s: a broker may open the next one by itself; if the manifest was being restored, call restore --manifests again", rows[len(rows)-1].number)
	f.Note = true
	return []Finding{f}
}
