// Package segment holds the nouns of the offload protocol and the rules that
// need no input but their arguments: stream ids, manifest entries and their
// legal transitions, the manifest codec, topic settings, key layout, object
// paths, and the page that carries stream entries from Redis to the encoder.
//
// Guarantees: nothing in this package does I/O, reads a clock, starts a
// goroutine or keeps state between calls. A value that it accepts from outside
// (a manifest entry, a topic name, an id) has been checked; what it rewrites
// keeps every field that it does not know.
//
// Non-guarantees: it does not know whether a stream or an object exists. A
// legal entry may still be untrue.
package segment
