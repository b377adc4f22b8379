package metrics

import "slices"

// kind is what a metric is.
type kind string

const (
	counter   kind = "counter"
	gauge     kind = "gauge"
	histogram kind = "histogram"
)

// scope says when a metric is there.
type scope string

const (
	always       scope = ""         // from the start, or from the first event on
	withScan     scope = "scan"     // while this instance leads, from its first scan on
	perTopic     scope = "topics"   // the same, and not with metrics.topics false
	withSuccess  scope = "success"  // while this instance leads, from the first pass on that was not given up
	withVerify   scope = "verify"   // while this instance leads, from the first background verify on that came to its end
	withMemory   scope = "memory"   // once Redis has said what memory it uses
	withEviction scope = "eviction" // once Redis was asked what it may evict
)

// metric is one row of the table: a family of series.
type metric struct {
	name   string
	kind   kind
	scope  scope
	unit   string // of the value; "" = a number of things
	help   string // what it is; the text of HELP
	bad    string // what a bad value is, and what it means; "" = there is none
	labels []label
	steps  []float64 // upper bounds of a histogram's buckets
}

// label is a dimension of a metric.
type label struct {
	name   string
	values []string // all there are; nil = open
	open   string   // what the values of an open one are
}

// admits says whether a value is one of the list.
func (l label) admits(value string) bool { return l.values == nil || slices.Contains(l.values, value) }

// table lists every metric, in the order of the documentation.
func table() []metric {
	return slices.Concat(brokerTable(), archiveTable(), lagTable(), stateTable(), topicTable(), workerTable(), verifyTable(), redisTable(), storeTable())
}

// chapter is a part of the documentation.
type chapter struct {
	title string
	rows  []metric
}

func chapters() []chapter {
	return []chapter{
		{"The names of the broker's own worker", brokerTable()},
		{"What was done", archiveTable()},
		{"How far behind", lagTable()},
		{"What there is, and what is stuck", stateTable()},
		{"Per topic", topicTable()},
		{"The worker", workerTable()},
		{"Verify in the background", verifyTable()},
		{"Redis", redisTable()},
		{"The store", storeTable()},
	}
}

// row finds a metric by its name.
func row(name string) metric {
	rows := table()
	return rows[slices.IndexFunc(rows, func(m metric) bool { return m.name == name })]
}
