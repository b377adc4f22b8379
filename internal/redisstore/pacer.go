package redisstore

import (
	"math"
	"time"
)

// What a page may cost.
const (
	pageBytes   = 1 << 20 // wanted size of a reply
	maxPage     = 8 << 20 // size at which a reply is left with the entries that are whole
	maxBlock    = 2 * time.Millisecond
	minBlock    = 50 * time.Microsecond
	rttsPerPage = 4 // server time per page in round trips; the next page is read ahead meanwhile

	firstCount = 16 // how large entries are is not known yet
	growth     = 8  // from one page to the next
	cutPages   = 16 // after a cut reply, pages for which its size is not tried again
	period     = 8  // pages between two looks at what a page costs

	// What an entry costs an ordinary server, in ns: measured at 0.75 to 1.1 us
	// for entries of 230 bytes.
	usualEntry = 600
	usualByte  = 1
)

// pacer chooses COUNT: from 1 to max, so that a reply stays under about 1 MiB
// and holds the server for about 2 ms at most. Where the round trip is short
// it stays below that: smaller pages read no slower then, and other clients
// wait less.
//
// It reads no clock, and mistrusts what it is told. The size of entries is
// believed at once when it rises and by halves when it falls. Pages grow as
// soon as one of them was quick, and shrink only after a whole period of slow
// ones, so a page that waited behind something else changes nothing. In every
// period two pages are asked for at half the size: what they take beyond half
// of the time is no cost of the entries but waiting, which smaller pages would
// only make more of.
type pacer struct {
	max     int
	count   int
	bytes   float64 // per entry, on the wire
	ceiling int     // COUNT is not above it
	hold    int     // for so many pages

	page       int     // in the period
	full, half float64 // ns: the quickest page of the period at COUNT, and at half of it
	waiting    float64 // ns of a page that are no cost of its entries
}

func newPacer(limit int) pacer {
	limit = max(limit, 1)
	p := pacer{max: limit, count: min(firstCount, limit), ceiling: limit}
	p.begin()
	return p
}

// begin begins a period.
func (p *pacer) begin() { p.page, p.full, p.half = 0, math.Inf(1), math.Inf(1) }

// next is the COUNT of the next page.
func (p *pacer) next() int {
	if p.probes() {
		return (p.count + 1) / 2
	}
	return p.count
}

// probes says whether the next page is one of those at half the size. An even
// and an odd one: something else may come every other page.
func (p *pacer) probes() bool { return p.page == 2 || p.page == 5 }

// done takes in a page: its entries and bytes, the time from the request to
// the first byte of the reply, and the shortest round trip seen.
func (p *pacer) done(entries, bytes int, wait, rtt time.Duration) {
	if entries == 0 {
		return
	}
	p.learnSize(float64(bytes) / float64(entries))
	if p.hold--; p.hold <= 0 {
		p.ceiling = p.max
	}
	ns := float64(max(wait-rtt, 0) + slack(rtt))
	if p.probes() {
		p.half = min(p.half, ns)
	} else {
		p.full = min(p.full, ns)
	}
	block := float64(min(max(rttsPerPage*rtt, minBlock), maxBlock))
	before := p.count
	if p.page++; p.page == period {
		p.waiting = max(0, min(2*p.half-p.full, p.half))
		p.fit(before/2, before*growth, block/p.cost(p.full, before))
		p.begin()
	} else if p.fit(before, entries*growth, block/p.cost(ns, entries)); p.count != before {
		p.begin()
	}
}

// cost is what an entry costs the server, in ns, by a page that took so long.
// Where part of that is thought to be waiting, no less than an ordinary server
// needs is believed.
func (p *pacer) cost(ns float64, entries int) float64 {
	all := ns / float64(entries)
	if p.waiting == 0 {
		return all
	}
	return min(all, max((ns-p.waiting)/float64(entries), usualEntry+usualByte*p.bytes))
}

// fit sets COUNT to what fits the server's time, within what it may shrink
// and grow to; the size of a reply and the ceiling count in any case.
func (p *pacer) fit(least, most int, inTime float64) {
	fit := max(float64(least), min(float64(most), inTime))
	p.count = max(1, min(int(min(fit, pageBytes/p.bytes)), p.ceiling))
}

func (p *pacer) learnSize(perEntry float64) {
	if perEntry < p.bytes {
		perEntry = (p.bytes + perEntry) / 2
	}
	p.bytes = perEntry
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
