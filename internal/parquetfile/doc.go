// Package parquetfile writes, checks and reads segment files: one Parquet file
// with the entries of one segment, as docs/file-format.md lays it out. It is
// the only package that knows the Parquet library.
//
// Guarantees:
//
//   - A file holds the entries as they were given: order, duplicates of field
//     names, empty names and values, entries without fields, any byte in a value.
//   - Its bytes depend on the FileID and the entries alone: not on how they
//     were cut into pages, on time, or on what is written at the same time. This
//     holds on amd64 and arm64, which share the compressor's assembly; elsewhere,
//     or built with the tag noasm, a file is as right but may have other bytes.
//   - The memory of a Writer does not grow with the file, but for the footer:
//     about 11 MiB, and while an entry of more than 4 MiB is written up to nine
//     times its size.
//     Writing allocates by the row group, not by the message.
//   - Damage is an error and never a panic, whether the bytes are cut short,
//     flipped, or made to do harm; and what a file claims of itself is not
//     allocated before it is plausible for the file's size.
//
// Non-guarantees: Open and Check read the footer and not the pages, so a
// flipped bit in a page is seen by Read alone. Checksums find accidents, not
// forgery. On damaged pages the library may print a line to stderr.
package parquetfile
