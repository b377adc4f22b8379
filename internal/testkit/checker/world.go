package checker

import (
	"fmt"
	"strings"
	"time"
)

// World is what there is in Redis and on the store at a moment in which
// nothing moves.
type World struct {
	Now        int64 // epoch ms by the Redis server's clock
	Partitions []Partition
	Streams    map[string][]Message // by key; one that is there and has no messages is an empty list
	Objects    map[string]Object    // by path below the root; everything that lies there
}

// Partition is one manifest, and whose it is.
type Partition struct {
	Name      string
	StreamKey string            // the stream of segment n is StreamKey:n, unless its entry has a key; of a plain stream it is its key
	Plain     bool              // a plain stream: all segments are ranges of StreamKey
	Manifest  map[string]string // the Hash as it is
}

// Message is an entry of a stream, or a row of an object.
type Message struct {
	ID  string // "<ms>-<sequence>"
	Sum string // of its names and values; equal sums = equal bytes
}

// Object is what lies at one path of the store.
type Object struct {
	Size     int64  // bytes
	SHA256   string // of all bytes, in hex
	Messages []Message
	Bad      string        // why it can't be read as a segment file; "" = it can
	Age      time.Duration // since it was put
}

// Ack is a message as its producer was told that it is safe.
type Ack struct {
	Partition string // its name
	Key       string // of the stream that it was appended to
	ID        string
	Sum       string
}

// Rules say what the checker can't see. Their zero value excuses nothing, and
// takes the world for one in which work is still under way.
type Rules struct {
	// May says why a message may be gone, in a word such as "expired" or
	// "deleted"; "" = it may not. It is asked only about messages that no reader
	// finds. nil = none may.
	May func(Ack) string
	// Sent says whether a producer has sent such a message and does not know what
	// became of it: it may be there or not. nil = there are none.
	Sent func(partition, key, sum string) bool
	// Hidden: a message that only a DELETING entry has is not lost yet, because
	// such an entry can be brought back.
	Hidden bool
	// Settled: nothing is under way any more, and every worker has had its turn.
	// Late messages and orphans count then.
	Settled bool
	// OrphanAge is the age at which an object that nothing names has to be gone.
	OrphanAge time.Duration
	// Owner is the path of the marker that says whose the place is; it is no
	// orphan.
	Owner string
}

// Kind is what is wrong.
type Kind string

// The kinds of findings. There are no others.
const (
	Lost         Kind = "lost"           // acknowledged, and nowhere where a reader looks
	Twice        Kind = "twice"          // a reader finds it more than once
	Altered      Kind = "altered"        // there, with other bytes than were acknowledged
	Invented     Kind = "invented"       // nobody has written it
	Order        Kind = "order"          // a reader finds it behind a later one
	Missing      Kind = "missing_object" // REMOTE, and its object is not there
	Wrong        Kind = "wrong_object"   // REMOTE, and its object is not the one that the entry describes
	Shared       Kind = "shared_object"  // two entries name one object
	StreamGone   Kind = "stream_gone"    // LOCAL, and its stream is not there
	GoneButThere Kind = "gone_but_there" // GONE, and what was copied is still in the stream
	Stray        Kind = "stray"          // acknowledged, in a stream where no reader looks and from which no copy will be made: not lost, but to be reported
	Late         Kind = "late"           // in the stream of a REMOTE entry and not in its object; only when settled
	Orphan       Kind = "orphan"         // an object that nothing names; only when settled
	Illegal      Kind = "illegal_entry"  // no entry of the contract, or one that came about in a way that is none
)

// Finding is one thing that is wrong, with one segment, stream or object. What
// is wrong with several messages there in the same way is one finding.
type Finding struct {
	Kind      Kind
	Partition string   // "" = of none
	Segment   string   // the manifest's field; "" = of none
	Key       string   // of the stream; "" = not about one
	Path      string   // of the object; "" = not about one
	Text      string   // what is wrong, in one line
	IDs       []string // of the messages; none = not about messages
}

// String is the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	b.WriteString(string(f.Kind))
	if f.Partition != "" {
		b.WriteString(" " + f.Partition)
	}
	if f.Segment != "" {
		b.WriteString("/" + f.Segment)
	}
	for _, at := range []struct{ what, name string }{{"stream", f.Key}, {"object", f.Path}} {
		if at.name != "" {
			fmt.Fprintf(&b, " %s %s", at.what, at.name)
		}
	}
	b.WriteString(": " + f.Text)
	if n := len(f.IDs); n > 0 {
		shown := f.IDs[:min(n, shownIDs)]
		fmt.Fprintf(&b, " (%d: %s", n, strings.Join(shown, " "))
		if n > len(shown) {
			b.WriteString(" ...")
		}
		b.WriteString(")")
	}
	return b.String()
}

// shownIDs is how many ids a finding's line has at most.
const shownIDs = 5

// Report is what Examine found out.
type Report struct {
	Findings []Finding
	Tally    Tally
}

// Tally counts where the acknowledged messages are.
type Tally struct {
	Acked   int
	InRedis int            // a reader finds it in a stream
	OnStore int            // a reader finds it in an object
	Both    int            // of those in an object, still in the stream too
	Excused map[string]int // no reader finds it, and the rules say why that may be; by the reason
}
