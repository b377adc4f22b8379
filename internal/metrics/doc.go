// Package metrics is what Prometheus is told: how far behind the remote tier
// is, what is stuck, what fills up when, what Redis and the store are asked and
// answer.
//
// Guarantees: every value of a label is one of a closed list that the table
// names, but for the names of topics, of which there are as many as the
// settings allow, and the build; no segment and no id is ever one. A topic that
// is gone takes its series with it. What only a leader can know is there only
// while this instance leads. A counter with one label of a closed list is there
// with all its values from the start, so that its first event shows as an
// increase.
//
// Non-guarantees: amounts are those of the last scan, less what was copied
// since; what was sealed since comes with the next scan. Counters begin with 0
// at a start of the program, those of a topic when it first appears.
//
// It registers nothing globally and starts no goroutine. All methods are safe
// for concurrent use.
package metrics

//go:generate env UPDATE_DOCS=1 go test . -run ^TestPageIsCurrent$
