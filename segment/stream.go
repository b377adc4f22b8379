package segment

import "context"

// StreamInfo is what the server knows of a stream without reading it. Two
// equal values, one from before a copy and one from after it, show that
// nothing was added or removed in between, as far as the server tells.
type StreamInfo struct {
	Exists       bool
	Length       int64
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
