package parquetfile

import "iter"

// run is a number of blocks of one row group that are decoded one after the
// other.
type run struct {
	group  int
	blocks []block // nil = all of the row group, whose index was not read
	rows   int64
	base   [columns]int64 // where the chunks begin
	cols   [columns]stretch
}

// load is what is read at once: one run, or several of one row group.
type load struct {
	extents []Extent
	runs    []run
}

// Reading for a range begins small, since often one message is wanted, or few,
// and grows. These are numbers of blocks.
const (
	firstRun  = 1
	runGrowth = 4
	mostRun   = 16 // after which a row group is read whole, or, backwards, decoded at a time
	pointRun  = 2  // in so many an id can be
)

// whole is the run of a row group.
func (f *File) whole(group int) run {
	g := &f.lib.Metadata().RowGroups[group]
	r := run{group: group, rows: g.NumRows}
	for c := range r.cols {
		m := &g.Columns[c].MetaData
		r.base[c] = chunkStart(m)
		r.cols[c].pages = Extent{At: r.base[c], Size: m.TotalCompressedSize}
	}
	return r
}

// some is the run of some blocks, one after the other.
func (f *File) some(group int, blocks []block) run {
	r := run{group: group, blocks: blocks}
	for _, b := range blocks {
		r.rows += b.rows
	}
	g := &f.lib.Metadata().RowGroups[group]
	last := blocks[len(blocks)-1]
	for c := range r.cols {
		m := &g.Columns[c].MetaData
		at, end := blocks[0].pages[c].At, last.pages[c].At+last.pages[c].Size
		r.base[c] = chunkStart(m)
		r.cols[c] = stretch{
			dict:  Extent{At: r.base[c], Size: m.DataPageOffset - r.base[c]},
			pages: Extent{At: at, Size: end - at},
		}
	}
	return r
}

// single is the load of one run.
func single(r run) load {
	l := load{runs: []run{r}}
	for _, c := range r.cols {
		for _, e := range []Extent{c.dict, c.pages} {
			if e.Size > 0 {
				l.extents = append(l.extents, e)
			}
		}
	}
	return l
}

// all are the loads of a whole file.
func (f *File) all() []load {
	loads := make([]load, len(f.lib.Metadata().RowGroups))
	for i := range loads {
		loads[i] = single(f.whole(i))
	}
	return loads
}

// forward are the loads of a span. Each slice is to be announced at once: what
// it has will be read, unless whoever reads has enough.
func (f *File) forward(s span) iter.Seq[[]load] {
	return func(yield func([]load) bool) {
		rest := s.from[s.first:]
		if s.fromGroup == s.toGroup {
			rest = s.from[s.first : s.last+1]
		}
		if len(rest) > pointRun || s.fromGroup != s.toGroup {
			for n := firstRun; n <= mostRun && n < len(rest); n *= runGrowth {
				if !yield([]load{single(f.some(s.fromGroup, rest[:n]))}) {
					return
				}
				rest = rest[n:]
			}
		}
		loads := []load{single(f.some(s.fromGroup, rest))}
		for g := s.fromGroup + 1; g < s.toGroup; g++ {
			loads = append(loads, single(f.whole(g)))
		}
		if s.fromGroup != s.toGroup {
			loads = append(loads, single(f.some(s.toGroup, s.to[:s.last+1])))
		}
		yield(loads)
	}
}

// backward are the loads of a span from its end to its beginning. Blocks of a
// load are decoded in runs from its end.
func (f *File) backward(s span) iter.Seq2[[]load, error] {
	return func(yield func([]load, error) bool) {
		rest := s.to[:s.last+1]
		if s.fromGroup == s.toGroup {
			rest = s.to[s.first : s.last+1]
		}
		if len(rest) > pointRun || s.fromGroup != s.toGroup {
			for n := firstRun; n <= mostRun && n < len(rest); n *= runGrowth {
				at := len(rest) - n
				if !yield([]load{single(f.some(s.toGroup, rest[at:]))}, nil) {
					return
				}
				rest = rest[:at]
			}
		}
		loads := []load{f.fromEnd(s.toGroup, rest)}
		for g := s.toGroup - 1; g >= s.fromGroup; g-- {
			blocks := s.from[s.first:]
			if g != s.fromGroup {
				var err error
				if blocks, err = f.blocks(g); err != nil {
					yield(nil, unread(err))
					return
				}
			}
			loads = append(loads, f.fromEnd(g, blocks))
		}
		yield(loads, nil)
	}
}

// fromEnd is one load of blocks that are decoded in runs from their end.
func (f *File) fromEnd(group int, blocks []block) load {
	l := load{extents: single(f.some(group, blocks)).extents}
	for len(blocks) > 0 {
		at := max(0, len(blocks)-mostRun)
		l.runs = append(l.runs, f.some(group, blocks[at:]))
		blocks = blocks[:at]
	}
	return l
}
