// Package s3sink keeps objects in an S3 bucket or, for file:// URLs, in a
// folder.
//
// What it promises:
//
//   - Put creates and never replaces. S3 is asked to do so by a condition
//     ("If-None-Match: *") that goes with the single put and with the end of a
//     multipart upload; a file gets its name by a hard link, which fails if the
//     name is taken. No reader ever sees half an object.
//   - An object that Put has reported is durable: S3 has answered, the file and
//     every folder that was made for it are synced.
//   - What arrives is what was hashed. S3 checks the SHA-256 of a single put and
//     the CRC32C of every part, and a multipart upload is completed only if the
//     parts together have the SHA-256 that the caller named. Stat of a file reads
//     the file and hashes it.
//   - A look that contradicts the store's own answer to a put is not believed: it
//     is repeated, and then an error of the store, for ten minutes.
//   - Delete calls an object gone only if the store has named it as deleted, or
//     as not there in a bucket or folder that is.
//   - A killed process leaves no part of a file behind, except on file systems
//     without unnamed files, where the next put into the same folder clears away
//     what is older than a day.
//   - Errors name the bucket or folder, the key, the cause and what to do, and
//     hold no secrets.
//
// What it does not promise:
//
//   - After an error the object may be there all the same: the answer may have
//     been lost, or the store may have stored what it answered 503 to. The next
//     Put then reports ErrExists, and the caller compares (see Store.Put).
//   - Stores that ignore the condition are found by CreateOnly, not by Put; after
//     it, Put finds those that ignore only the condition of multipart uploads, and
//     uploads large objects there by single puts, up to 5 GiB.
//   - A process that is killed in the middle of a multipart upload leaves its
//     parts. A lifecycle rule of the bucket (AbortIncompleteMultipartUpload)
//     clears them away.
//
// There is one retry policy, the one here; the S3 library's is switched off. A
// store that asks for fewer requests gets half as many at once, all operations
// together, and one more at a time from then on; it is waited for as long as it
// serves anybody.
//
// Clocks decide about nothing but waiting, and about the dates in the owner
// marker and in signatures. Where the store refuses those, requests are signed
// by its own clock.
//
// An Inspector looks at the same places for the doctor. What a store does not
// know, or does not let one see, is an error of that question alone, and what it
// puts to try it out it removes, or names as left.
//
// All methods of a Store may be called by several goroutines at once.
package s3sink
