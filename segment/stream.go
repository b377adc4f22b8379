package segment

import "context"

// StreamInfo is what the server knows of a stream without reading it. Two
// equal values, one from before a copy and one from after it, show that
// nothing was added or removed in between, as far as the server tells.
type StreamInfo struct {
	Exists       bool
	Length       int64
	FirstID      ID    // of the first entry; zero where there is none
	LastID       ID    // last-generated-id: of the newest entry that was ever there
	EntriesAdded int64 // since Redis 7.0; -1 where the server does not say
	MaxDeletedID ID    // since Redis 7.0; zero where the server does not say
}

// PageReader reads one stream, page by page. It stands here, and not beside
// its user, because the type that a method returns has to be the same on both
// sides.
type PageReader interface {
	// Next fills the page with the entries that follow; io.EOF comes instead
	// of an empty page. A reply that was cut short is an error, never a short
	// page. After any other error than io.EOF the reader can't go on.
	Next(ctx context.Context, into *Page) error
	// Close gives the connection back. It may be called after any call of
	// Next has returned.
	Close() error
}

// Change is one change of a manifest, made in one step: the entry Number,
// whose bytes must be Old, becomes New. An empty Old means that there must be
// no such entry, an empty New that there is none afterwards.
type Change struct {
	Number   Number
	Old, New string

	// Open, if it is not empty, is put at Next as well, where nothing may be.
	Next Number
	Open string

	// First: the manifest must have no entry at all.
	First bool
	// Durable: wait afterwards until the change, and all before it, has reached
	// as many replicas, and the disk, as the settings say.
	Durable bool
}

// Peek asks for some entries of one manifest.
type Peek struct {
	Partition Partition
	Numbers   []Number
}

// Peeked answers a Peek.
type Peeked struct {
	Raw    []string // in the order of the numbers; "" = there is none
	Fields int64    // of the whole manifest
	Err    error
}

// SizeQuery asks for the size of one stream.
type SizeQuery struct {
	Key    string
	Memory bool // ask for the bytes too
}

// StreamSize answers a SizeQuery.
type StreamSize struct {
	Length int64
	Bytes  int64 // that it takes in Redis, by the server's sampled account; -1 = not asked for
	Err    error
}

// Group is one consumer group of a stream.
type Group struct {
	Name          string
	LastDelivered ID
	Pending       int64
	OldestPending ID // zero if nothing is pending
}

// Needs is the smallest id that the group still needs, if it needs any of the
// stream's entries up to last.
func (g Group) Needs(last ID) (ID, bool) {
	if g.Pending > 0 && g.OldestPending.Compare(last) <= 0 {
		return g.OldestPending, true
	}
	if g.LastDelivered.Compare(last) < 0 {
		return g.LastDelivered, true
	}
	return ID{}, false
}

// Piece is some entries that follow one another in a stream.
type Piece struct {
	First, Last ID
	Count       int64
}
