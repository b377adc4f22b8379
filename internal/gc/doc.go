// Package gc removes from the object store what no manifest entry names any
// more, and unfinished uploads. Planning is apart from carrying out: Look lists
// and decides, Remove does what a plan says and decides anew, by fresh reads,
// right before each batch.
//
// Guarantees:
//   - The store is listed first and the manifests are read afterwards, from the
//     primary: what was put after the listing is no candidate, and what was put
//     before has its entry in the manifest.
//   - An object goes only if its path is one of a segment of a known partition,
//     it is older than the floor by the clock of the store and by that of Redis,
//     whichever is behind, no entry of any manifest that there is names it, and it
//     could not be one that a worker is about to name: of a segment whose entry is
//     not settled, every copy from the entry's on stays.
//   - A replaced copy goes only while the object that the entry names is there,
//     with the size and the checksums that the entry tells of, and if it is an
//     earlier copy of what that holds. An object of another life of the topic, or of
//     another Redis, whose path looks like an older copy's, may be the only one.
//   - An object of a segment before the first entry goes only if it is a whole file,
//     and if its newest message is past retention.ms.
//   - A manifest that can't be read as a whole, or with one value that is not an
//     entry, protects its whole partition. An owner marker that is missing or not
//     ours, a Redis without any manifest, and a listing without any object where
//     entries name some, end it.
//   - Right before each deletion: the lease, the owner, the pauses, the entries of
//     the segment (and for a removed topic that it has neither registration nor
//     manifest), and the object, which must be the one that was listed.
//
// Non-guarantees:
//   - A store can't be told to delete an object only if it is still the same one.
//     Between the last look and the deletion an object that had the path could be
//     replaced only by somebody who overwrites, which this program never does.
//   - An object that is named and damaged where neither size nor checksum tells is
//     taken for good: internal/scrub finds that.
package gc
