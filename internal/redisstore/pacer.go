package redisstore

import (
	"slices"
	"time"
)

// What a page may cost.
const (
	pageBytes   = 1 << 20 // wanted size of a reply
	maxPage     = 8 << 20 // size at which a reply is left with the entries that are whole
	maxBlock    = 2 * time.Millisecond
	minBlock    = 500 * time.Microsecond
	rttsPerPage = 16 // server time per page in round trips, so that those cost 6 %

	firstCount = 16 // how large entries are is not known yet
	growth     = 8  // from one page to the next
	cutPages   = 16 // after a cut reply, pages for which its size is not tried again
	window     = 8  // pages whose cost counts
)

// pacer chooses COUNT: from 1 to max, so that a reply stays under about 1 MiB
// and holds the server for about 2 ms at most. Where the round trip is short
// it stays below that: smaller pages read no slower then, and other clients
// wait less.
//
// It reads no clock and keeps to two rules against noise. The size of entries
// is believed at once when it rises and by halves when it falls. The server's
// time per entry is the least of the last few pages, so one page that waited
// behind something else, on either side, changes nothing.
type pacer struct {
	max     int
	count   int
	bytes   float64         // per entry, on the wire
	costs   [window]float64 // ns of the server's time per entry, of the last pages
	pages   int             // how many have gone into costs
	ceiling int             // COUNT is not above it
	hold    int             // for so many pages
}

func newPacer(limit int) pacer {
	limit = max(limit, 1)
	return pacer{max: limit, count: min(firstCount, limit), ceiling: limit}
}

// done takes in a page: its entries and bytes, the time from the request to
// the first byte of the reply, and the shortest round trip seen.
func (p *pacer) done(entries, bytes int, wait, rtt time.Duration) {
	if entries == 0 {
		return
	}
	p.learnSize(float64(bytes) / float64(entries))
	p.costs[p.pages%window] = float64(max(wait-rtt, 0)+slack(rtt)) / float64(entries)
	p.pages++
	if p.hold--; p.hold <= 0 {
		p.ceiling = p.max
	}
	p.choose(entries*growth, float64(min(max(rttsPerPage*rtt, minBlock), maxBlock)))
}

func (p *pacer) learnSize(perEntry float64) {
	if perEntry < p.bytes {
		perEntry = (p.bytes + perEntry) / 2
	}
	p.bytes = perEntry
}

func (p *pacer) choose(most int, block float64) {
	fit := min(float64(most), pageBytes/p.bytes)
	fit = min(fit, block/slices.Min(p.costs[:min(p.pages, window)]))
	p.count = max(1, min(int(fit), p.ceiling))
}

// slack is how far the time of a page may be off because the round trip of
// this very page was shorter than the shortest that was seen. It keeps a
// small page, whose time is mostly that, from looking as if it were free.
func slack(rtt time.Duration) time.Duration { return 20*time.Microsecond + rtt/16 }

// cut takes in that the server has cut a reply: half of it is asked for, and
// no more for a while.
func (p *pacer) cut() {
	p.count = max(1, p.count/2)
	p.ceiling, p.hold = p.count, cutPages
}

// left takes in that a reply was left because it was too large, and the size
// of an entry in it.
func (p *pacer) left(entryBytes int) {
	p.bytes = max(p.bytes, float64(entryBytes))
	p.count = max(1, min(p.count, int(pageBytes/p.bytes)))
}
