// Package repair heals what a scrub has found: it brings what the manifests say
// and what there is together again, where both can still be.
//
// Planning is pure (Plan): facts in, one action out. Whatever an action relies on
// has been read whole for it, the object to its last row, the stream to its last
// entry. The action is carried out only if the entry still has the very bytes
// that the plan was made from, and stream and object are still what was read.
//
// Guarantees: every change is one compare-and-set of one entry. No object is ever
// deleted or overwritten; a stream is removed only when the object has just been
// read and has each of its entries, byte for byte, and only while it still is
// that stream. What is not healed for certain is left, and said why. A repair
// that ends at any point leaves what it was, or what a worker goes on with, or
// what a scrub finds again.
//
// Non-guarantees: it does not rest on the lease, and a worker beside it can make
// it lose a race; then nothing was changed. It does not know what retention will
// do with what it has healed. The order of entries within a stream, and that
// nobody makes a stream anew with the same ids and other messages, are taken from
// Redis as they are.
package repair
