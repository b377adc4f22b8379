// Package restore brings back into Redis what is on the object store: segments
// as streams, and, after a loss of all data, the manifests.
//
// Guarantees:
//   - A file is read whole, compared with its SHA-256 and checked page by page
//     before the first of its messages is written.
//   - A stream gets the entries of the files with their ids, fields, order and
//     bytes, and nothing else: each batch is added only to a stream that is at that
//     moment what was left by the batch before. What is there already must be the
//     beginning of what is to be written, entry for entry. In the end the stream is
//     read back and compared.
//   - Nothing is ever removed or overwritten. A manifest is changed by
//     compare-and-set alone, and one that somebody uses is left alone.
//   - Whatever is interrupted, the same call goes on with it.
//   - One partition that can't be restored holds up no other.
//
// Non-guarantees:
//   - The memory that a stream will take is an estimate of a sample.
//   - From the files alone it can't be told which of two topics of one name they
//     are from, and whether a segment had been deleted on purpose.
package restore
