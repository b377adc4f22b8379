// Package offload is the use case: one pass over every partition that copies
// each sealed LOCAL segment from its Redis Stream into one Parquet object,
// verifies the object, and flips the manifest entry to REMOTE.
//
// RunOnce is one pass: scan, plan, then per segment copy, verify, flip. Loop
// repeats it for as long as it leads. Planning is pure; the executor decides
// nothing about what is due.
//
// Guarantees, whatever else runs and wherever it is killed:
//
//   - An entry becomes REMOTE only by a compare-and-set on the exact bytes that
//     were read before its stream was, and only after the store has shown the
//     object with the size and checksum of the file that was written, whose
//     footer had been read again, and after the stream was seen unchanged.
//   - No object is replaced, and no stream or object is deleted.
//   - A missing or short stream is an error, never a file.
//   - A segment that can't be copied holds up no other one.
//
// Non-guarantees: the lease saves work and is not trusted for any of this. A
// pass that dies between the upload and the flip leaves an object that the
// next pass adopts if the stream is still the same, and otherwise an object
// that no entry names.
package offload
