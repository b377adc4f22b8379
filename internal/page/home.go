package page

import (
	"net/http"
	"net/url"
	"strconv"
	"time"

	"korvet-offload/internal/board"
	"korvet-offload/segment"
)

const (
	partitionsPerPage = 50
	topicsPerPage     = 25
	problemsPerReason = 10
	passesShown       = 12
)

// homePage is what the page at / is made of.
type homePage struct {
	board.Status
	Now    time.Time
	Every  int // seconds from one look to the next
	Token  bool
	Stuck  []stuckGroup
	Leads  []memberView // others that lead
	Others []memberView
	Query  view

	TopicPager, PartitionPager pager
	Legend                     []legend
}

// home answers /.
func (s *Site) home(w http.ResponseWriter, r *http.Request) {
	v := parseView(r.URL.Query())
	p := homePage{Status: s.o.Board.Status(v.query()), Now: s.now(), Every: s.every(), Token: s.o.Token, Query: v, Legend: legends()}
	p.Stuck = s.stuck(p.Problems.List)
	for _, m := range p.Members {
		one := memberView{Member: m, Page: pageOf(m, s.o.TLS)}
		p.Others = append(p.Others, one)
		if len(m.Shards) > 0 && !m.Self {
			p.Leads = append(p.Leads, one)
		}
	}
	p.TopicPager = newPager(v, "topics", "tp", v.TopicPage, topicsPerPage, p.Topics.Total)
	p.PartitionPager = newPager(v, "partitions", "p", v.Page, partitionsPerPage, p.Partitions.Total)
	s.write(w, http.StatusOK, "home.html", p)
}

// every is how often the page looks: several times a tick, and not too often.
func (s *Site) every() int {
	return int(min(max(s.Tick()/10, 2*time.Second), 10*time.Second) / time.Second)
}

// passRow is a pass, or several in a row in which nothing was done.
type passRow struct {
	board.Pass
	Times int
}

// RecentPasses are those that are shown. Of several in a row that had nothing to
// do, the newest stands for all.
func (p homePage) RecentPasses() []passRow {
	var rows []passRow
	for _, pass := range p.Passes {
		n := len(rows)
		if n > 0 && idle(pass) && idle(rows[n-1].Pass) && pass.Problems == rows[n-1].Problems {
			rows[n-1].Times++
			continue
		}
		if n == passesShown {
			break
		}
		rows = append(rows, passRow{pass, 1})
	}
	return rows
}

// idle says whether a pass had nothing to do.
func idle(p board.Pass) bool { return len(p.Did) == 0 && p.Left == 0 && p.Error == "" }

// Slowest is how long the longest of them took, in seconds.
func (p homePage) Slowest() (most float64) {
	for _, pass := range p.RecentPasses() {
		most = max(most, pass.Seconds)
	}
	return most
}

// Headroom is how long it takes until the nearer of the two retentions reaches
// what is not copied, in seconds; nil = none does.
func (p homePage) Headroom() *float64 {
	local, total := p.Lag.LocalHeadroom, p.Lag.TotalHeadroom
	if local == nil || total != nil && *total < *local {
		return total
	}
	return local
}

// HeadroomLow says whether it is time to look.
func (p homePage) HeadroomLow() bool {
	left := p.Headroom()
	return left != nil && *left < time.Hour.Seconds()
}

// view is what a reader has asked for.
type view struct {
	Text      string // in the name
	Only      board.Only
	Sort      board.Sort
	Page      int // from 1
	TopicPage int
}

func parseView(q url.Values) view {
	v := view{Text: q.Get("q"), Page: number(q.Get("p")), TopicPage: number(q.Get("tp"))}
	switch o := board.Only(q.Get("only")); o {
	case board.Behind, board.Stuck:
		v.Only = o
	}
	switch o := board.Sort(q.Get("sort")); o {
	case board.ByLag, board.BySize, board.ByStuck:
		v.Sort = o
	}
	return v
}

// number is a page's, 1 where it makes no sense.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > 1_000_000 {
		return 1
	}
	return n
}

func (v view) query() board.Query {
	return board.Query{Contains: v.Text, Only: v.Only, Sort: v.Sort,
		Offset: (v.Page - 1) * partitionsPerPage, Limit: partitionsPerPage,
		TopicOffset: (v.TopicPage - 1) * topicsPerPage, TopicLimit: topicsPerPage}
}

// with is the address of the same view with another value, at a section.
func (v view) with(name, value, section string) string {
	q := url.Values{}
	set := func(name, value, usual string) {
		if value != usual {
			q.Set(name, value)
		}
	}
	set("q", v.Text, "")
	set("only", string(v.Only), "")
	set("sort", string(v.Sort), "")
	set("p", strconv.Itoa(v.Page), "1")
	set("tp", strconv.Itoa(v.TopicPage), "1")
	if name != "p" && name != "tp" { // another list begins with its first page
		q.Del("p")
		q.Del("tp")
	}
	if q.Set(name, value); value == "" {
		q.Del(name)
	}
	return "/?" + q.Encode() + "#" + section
}

// Filtered says whether something is left out.
func (v view) Filtered() bool { return v.Text != "" || v.Only != "" }

// sortHead is the head of a column by which a list can be ordered.
type sortHead struct {
	Name, Link     string
	Sorted, Number bool
	Class          string
}

func sorts(v view, name, by, section string, number bool, class string) sortHead {
	return sortHead{Class: class, Name: name, Link: v.with("sort", by, section), Sorted: string(v.Sort) == by, Number: number}
}

// TopicLink is the address of one topic's partitions.
func (v view) TopicLink(topic string) string {
	v.Text = topic
	v.TopicPage = 1
	return v.with("p", "", "partitions")
}

// pager leads through the pages of a list.
type pager struct {
	What                     string
	From, To, Total          int
	Page, Pages              int
	First, Before, Next, End string // addresses; "" = there is none
}

func newPager(v view, section, name string, page, size, total int) pager {
	p := pager{What: section, Total: total, Page: page, Pages: max(1, (total+size-1)/size)}
	p.From, p.To = min((page-1)*size+1, total), min(page*size, total)
	link := func(n int) string { return v.with(name, strconv.Itoa(n), section) }
	if page > 1 {
		p.First, p.Before = link(1), link(min(page-1, p.Pages))
	}
	if page < p.Pages {
		p.Next, p.End = link(page+1), link(p.Pages)
	}
	return p
}

// stuckGroup is what is stuck for the same reason.
type stuckGroup struct {
	Reason string
	Loss   bool
	Means  []span
	Do     []span
	Count  int
	More   int // that are not listed
	List   []board.Problem
}

// stuck groups problems by reason, the worst first.
func (s *Site) stuck(list []board.Problem) []stuckGroup {
	var groups []stuckGroup
	at := map[string]int{}
	for _, p := range list {
		i, known := at[p.Reason]
		if !known {
			i = len(groups)
			at[p.Reason] = i
			r := s.reasons[p.Reason]
			groups = append(groups, stuckGroup{Reason: p.Reason, Loss: p.Loss, Means: r.means, Do: r.do})
		}
		g := &groups[i]
		if g.Count++; len(g.List) < problemsPerReason {
			g.List = append(g.List, p)
		} else {
			g.More++
		}
	}
	return groups
}

// partitionPage is what the page of one partition is made of.
type partitionPage struct {
	board.Partition
	Name     string
	Stuck    []stuckGroup
	Instance board.Instance
	Scanned  *time.Time
	Now      time.Time
	Every    int
	Token    bool
	Legend   []legend
	API      string
}

// partition answers /partition?topic=...&n=... and /partition?stream=...
func (s *Site) partition(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	id := segment.Partition{Topic: q.Get("topic")}
	if key := q.Get("stream"); key != "" {
		id = segment.Partition{Topic: key, Plain: true}
	} else if n, err := strconv.Atoi(q.Get("n")); err == nil {
		id.Number = n
	}
	at, found, known := s.o.Board.Partition(id)
	all := s.o.Board.Overview()
	p := partitionPage{Partition: at, Name: id.String(), Stuck: s.stuck(found), Instance: all.Instance, Scanned: all.ScannedAt,
		Now: s.now(), Every: s.every(), Token: s.o.Token, Legend: legends(), API: apiOf(id)}
	if !known {
		s.write(w, http.StatusNotFound, "unknown.html", p)
		return
	}
	s.write(w, http.StatusOK, "partition.html", p)
}

// Newest are the runs, the newest first.
func (p partitionPage) Newest() []board.Run {
	n := len(p.Runs)
	turned := make([]board.Run, n)
	for i, r := range p.Runs {
		turned[n-1-i] = r
	}
	return turned
}

// apiOf is where the API has a partition.
func apiOf(id segment.Partition) string {
	if id.Plain {
		return "/api/v1/streams?key=" + url.QueryEscape(id.Topic)
	}
	return "/api/v1/partitions/" + url.PathEscape(id.Topic) + "/" + strconv.Itoa(id.Number)
}
