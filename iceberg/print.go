package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// result is what a run did, or with --dry-run would do.
type result struct {
	created  bool
	location string // of the table
	added    []candidate
	removed  []iceberg.DataFile
	same     int
	empty    int
	snapshot int64 // 0 = none was made
	problems []string
}

// outcome sorts out what can be done of a plan.
func (r *registration) outcome(t *table.Table, told *told, p plan) result {
	d := result{location: t.Location(), removed: p.remove, same: p.same, empty: told.empty, problems: told.problems}
	if t.MetadataLocation() == "" { // made up
		d.location = ""
	}
	byPartition := func(a, b segment.Partition) int { return a.Number - b.Number }
	for _, part := range slices.SortedFunc(maps.Keys(p.kept), byPartition) {
		d.problems = append(d.problems, fmt.Sprintf("%s: there is no manifest, and the table has %s of it, which %s; if the topic has gone for good, drop the table, without PURGE",
			part, words.Count(p.kept[part], "file"), stays(p.kept[part])))
	}
	var refused []segmentName
	for _, c := range p.add {
		if c.err == nil {
			d.added = append(d.added, c)
			continue
		}
		d.problems = append(d.problems, fmt.Sprintf("%s: object %s is not added: %v", c.remote, c.entry.Object.Path, c.err))
		refused = append(refused, segmentName{c.partition, c.number})
	}
	// An older copy stays as long as the one that replaces it can't be had: the rows would be gone.
	d.removed = slices.DeleteFunc(d.removed, func(f iceberg.DataFile) bool {
		name, _ := r.ours(f.FilePath())
		return slices.Contains(refused, name.segmentName)
	})
	slices.Sort(d.problems)
	return d
}

// messages are how many are in the files.
func (d result) messages() (added, removed int64) {
	for _, c := range d.added {
		added += c.file.Count()
	}
	for _, f := range d.removed {
		removed += f.Count()
	}
	return added, removed
}

func stays(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}

// print prints the result.
func (r *registration) print(w io.Writer, d result) error {
	if r.json {
		return r.printJSON(w, d)
	}
	var out strings.Builder
	for _, c := range d.added {
		fmt.Fprintf(&out, "+ %s  %s  %s\n", c.remote, c.entry.Object.Path, words.Count(c.file.Count(), "message"))
	}
	for _, f := range d.removed {
		name, _ := r.ours(f.FilePath())
		fmt.Fprintf(&out, "- %s/%s  %s  %s\n", name.partition, name.number, name.path, words.Count(f.Count(), "message"))
	}
	added, removed := d.messages()
	fmt.Fprintf(&out, "table %s: %s%s with %s added, %s with %s removed, %d as they were\n", dotted(r.table), r.how(d),
		words.Count(len(d.added), "file"), words.Count(added, "message"), words.Count(len(d.removed), "file"), words.Count(removed, "message"), d.same)
	if _, err := io.WriteString(w, out.String()); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// how says in words what became of the table.
func (r *registration) how(d result) string {
	switch {
	case r.dryRun && d.created:
		return "nothing was changed; it would be made, and "
	case r.dryRun:
		return "nothing was changed; it would be "
	case d.created:
		return "made; "
	}
	return ""
}

type jsonFile struct {
	Partition string `json:"partition"`
	Segment   uint64 `json:"segment"`
	Object    string `json:"object"` // path below the remote path
	Messages  int64  `json:"messages"`
	Bytes     int64  `json:"bytes"`
}

type jsonResult struct {
	Table    string     `json:"table"`
	Location *string    `json:"location"`
	DryRun   bool       `json:"dry_run"`
	Created  bool       `json:"created"`
	Snapshot *int64     `json:"snapshot"`
	Added    []jsonFile `json:"added"`
	Removed  []jsonFile `json:"removed"`
	Same     int        `json:"unchanged"`
	Empty    int        `json:"empty"`
	Problems []string   `json:"problems"`
}

func (r *registration) printJSON(w io.Writer, d result) error {
	j := jsonResult{Table: dotted(r.table), DryRun: r.dryRun, Created: d.created, Added: []jsonFile{}, Removed: []jsonFile{}, Same: d.same, Empty: d.empty, Problems: d.problems}
	if j.Problems == nil {
		j.Problems = []string{}
	}
	if d.location != "" {
		j.Location = &d.location
	}
	if d.snapshot != 0 {
		j.Snapshot = &d.snapshot
	}
	for _, c := range d.added {
		j.Added = append(j.Added, jsonFile{c.partition.String(), uint64(c.number), c.entry.Object.Path, c.file.Count(), c.file.FileSizeBytes()})
	}
	for _, f := range d.removed {
		name, _ := r.ours(f.FilePath())
		j.Removed = append(j.Removed, jsonFile{name.partition.String(), uint64(name.number), name.path, f.Count(), f.FileSizeBytes()})
	}
	return cmdline.WriteJSON(w, j)
}
