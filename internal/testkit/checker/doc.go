// Package checker tells whether anything was lost. It is given what producers
// were told, what lies in Redis and what lies on the object store, and finds
// every breach of what must always hold (docs/manifest.md).
//
// It is independent of the program that it checks: it imports nothing of it,
// and reads manifest entries, ids and paths with code of its own, so that a
// fault there is not repeated here. Package loader, beside it, takes a World
// from real servers.
//
// A reader, as the checker understands it, goes through the entries of a
// manifest in the order of their numbers, passes over those that are
// DELETING, and reads of a REMOTE one the object, of a LOCAL one the stream,
// or the range of it. There each acknowledged message must be once, with the
// bytes that were acknowledged.
//
// # Guarantees
//
// Check is a function of its arguments, changes none of them, and gives the
// same findings in the same order. A message that is in no reader's sight
// gives exactly one finding, unless the rules excuse it. It takes some
// microseconds for a world of a few messages, and time and memory in
// proportion to its size for large ones.
//
// # Not guaranteed
//
// A World must be of one moment in which nothing moved: the checker can't tell
// a torn picture from a broken one. Whether an excuse is true (a message was
// old enough) is the caller's knowledge. How entries change is History's
// matter, which sees only what it is shown.
package checker
