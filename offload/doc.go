// Package offload is the use case: one pass over every partition that seals
// full segments, copies each sealed LOCAL segment from its Redis Stream into
// one Parquet object, verifies the object, flips the manifest entry to REMOTE,
// and enforces local and total retention.
//
// Where several instances share the work, a pass is over the partitions of this
// instance's shards (Share).
//
// RunOnce is one pass: scan, plan, roll, expire, then per segment drop or copy.
// Loop repeats it for as long as it leads. Planning is pure; the executor decides
// nothing about what is due.
//
// Guarantees, whatever else runs and wherever it is killed:
//
//   - An entry becomes REMOTE only by a compare-and-set on the exact bytes that
//     were read before its stream was, and only after the store has shown the
//     object with the size and checksum of the file that was written, whose
//     footer had been read again, and after the stream was seen unchanged.
//   - No object is replaced.
//   - A local copy is removed only when its entry is REMOTE, its object was
//     looked at no longer than half a minute ago, and the stream is, in the
//     script that removes it, what was compared with what was copied.
//   - An object is deleted only when its entry has been DELETING for the grace,
//     was read once more right before, and has no local copy any more.
//   - A missing or short stream is an error, never a file.
//   - A segment that can't be copied holds up no other one.
//
// Non-guarantees: the lease saves work and is not trusted for any of this. A
// pass that dies between the upload and the flip leaves an object that the
// next pass adopts if the stream is still the same, and otherwise an object
// that no entry names. The store can't delete on a condition: a process that is
// stopped between its last look and the request deletes what lies there then.
package offload
