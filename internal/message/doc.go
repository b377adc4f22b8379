// Package message writes messages for people and programs: as JSON, one line
// each, as the bytes of their values, or as commands that put them into Redis
// again; and takes values out of the codec that a producer has put them in.
//
// Guarantees: what NDJSON and XADD write holds the whole message, field for
// field, in its order, duplicates and any byte. A value never grows beyond the
// limit when it is decompressed. No memory is allocated for each message, but
// for what a decompressor needs.
//
// Non-guarantees: Values writes one field and nothing else. A codec has no
// marker of the broker's own: a value that was never compressed is an error, if it
// does not happen to look like one that was.
package message
