// Package lease decides who may act: one key in Redis, held by one process at
// a time (Lease), or several, which processes share fairly (Group).
//
// Guarantees, while the clocks below hold: a leadership ends, on its own and
// whatever Redis does, before the key can expire on the server. It ends at
// once when a renewal finds that the key is gone or somebody else's, so at
// most one renewal interval, a third of the duration, after that happened. A
// key that holds another's token is neither prolonged nor deleted. Work that
// is said to hang (RenewWhile) ends the leadership at the next renewal; the
// key then lapses by itself, or goes when the leadership is given back.
//
// A group of several leases guarantees the same of each, and that a lease which
// is given away for another's sake is not given back while somebody is in it
// (Enter). Shares are fair once nobody has come or gone for some seconds; the
// leases of a process that was killed are taken when its record is stale.
//
// Whoever needs the leases for a while borrows them (Borrow): the request is a
// key of its own, which lapses after 30 s unless it is renewed, and whoever holds
// them finishes the jobs under way, gives them back and takes none before that key
// is gone.
//
// Non-guarantees: the lease is for efficiency, never for safety. A process
// that was stopped, or whose work does not look at its context, goes on for a
// while after the lease has passed to another; so does one whose lease was
// lost in a failover to a replica that never had it. Whatever is done under a
// lease has to be right with two leaders at once. There is no order among
// those who wait.
//
// Clocks: time is measured on the monotonic clock of this process, from
// before a request is sent, and the last tenth of the duration is given away
// as a margin. The rate of that clock may differ from the server's by that
// tenth; what time it is does not matter on either side. A machine that is
// suspended as a whole stops its monotonic clock: see non-guarantees.
package lease
