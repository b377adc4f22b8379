// Package tieredlog reads a partition as one log, whichever tier a segment is on,
// while a worker moves and drops segments.
//
// Guarantees:
//
//   - What was in the partition when Read was called, and is not deleted by
//     retention or by somebody else meanwhile, comes once: segments in the order of
//     their numbers, the messages of each in the order of their ids, or all of it the
//     other way round.
//   - A page of a stream is handed on only when the stream, or its entry, has been
//     seen afterwards to be what it was before: what a worker drops while it is read
//     comes from the object.
//   - A file is read only if it is that of the segment and holds what the entry says.
//     A segment that is missing, short or damaged is an error that names it, or is
//     told to Query.Unreadable; it is never passed over without a word.
//   - It changes nothing, and memory does not grow with a segment.
//
// Non-guarantees: ids ascend within a segment and not over all of the log. A
// producer that appended to a sealed segment for a while has put ids there that
// are above the first ones of the next, and two streams may even hold one id each
// that are equal; both are messages. Messages that come while Read goes on may be
// among what it gives, or not. A stray stream, made anew by a producer after it was
// dropped, is not read.
package tieredlog
