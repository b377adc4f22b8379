package restore

import (
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// only are the segments of a range, both inclusive.
func only(first, last segment.Number) func(segment.Number) bool {
	return func(n segment.Number) bool { return first <= n && n <= last }
}

func TestRangesAndSegments(t *testing.T) {
	w := newWorld(t)
	all := w.three(orders)
	for name, c := range map[string]struct {
		q    Query
		want []dataset.Entry
	}{
		"one segment":       {Query{Segments: only(1, 1)}, all[20:41]},
		"two segments":      {Query{Segments: only(1, 7)}, all[20:]},
		"from":              {Query{Between: parquetfile.Between{From: all[25].ID}}, all[25:]},
		"to":                {Query{Between: parquetfile.Between{To: all[25].ID}}, all[:26]},
		"between":           {Query{Between: parquetfile.Between{From: all[19].ID, To: all[20].ID}}, all[19:21]},
		"behind the end":    {Query{Between: parquetfile.Between{From: all[62].ID, To: segment.MaxID()}}, all[62:]},
		"segment and range": {Query{Segments: only(1, 1), Between: parquetfile.Between{From: all[30].ID}}, all[30:41]},
	} {
		c.q.Partition, c.q.Key = orders, name
		if _, _, err := w.run(c.q); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.mustHold(name, c.want)
	}
	_, _, err := w.run(Query{Partition: orders, Key: "k", Segments: only(5, 9)})
	mustFail(t, "no such segment", err, "no such segment among its 3")
}
