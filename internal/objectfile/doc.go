// Package objectfile reads one object of a store as a file: at any offset, with
// few requests.
//
// A Parquet file is read from its end, and then at places that its end tells.
// So the first look at the end of an object takes a good part of it in one
// request, and keeps it. Whoever knows what it will read says so by Want:
// neighbours are merged into one request, and what comes next is fetched while
// what came before is worked on.
//
// Guarantees:
//
//   - A read gives the bytes that the store gave for that range, all that were
//     asked for, or an error; never fewer without io.EOF at the object's end.
//   - What is held is bounded: the tail (1 MiB and what a larger footer takes)
//     and three pieces of 4 MiB at most, whatever was asked for by Want.
//   - No goroutine outlives Close. Without Close they end with the context.
//   - A body that breaks off is asked for again from there on, a few times.
//
// Non-guarantees: that all ranges are of one version of the object. Segment
// files are put once and never changed, and their pages have checksums.
package objectfile
