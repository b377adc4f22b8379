// Package redisstore is the Redis side of the program: the topic registry,
// the manifests, the streams of segments page by page, and the server's
// clock.
//
// Guarantees:
//   - Everything that a worker writes is written by one of three scripts, which look
//     first and write only what they were told to: Change (an entry of a manifest,
//     only over the bytes that the caller has read), Remove (a stream that is what
//     was copied) and Trim (a piece that a stream begins with). None is sent twice.
//     A restore adds to streams by Append, to the end of one that is what it is thought
//     to be, and is never sent twice either.
//   - A durable change that not as many replicas, or not the disk, have confirmed
//     is never a success.
//   - Every script and command touches one key, so a Redis Cluster serves it
//     without hash tags. The keyspace is never searched.
//   - Nothing holds the server for long: manifests come some hundreds of fields at
//     a time, and memory is measured by samples.
//   - A page is a whole reply of the server, or its first entries up to the
//     memory bound; a reply that was cut is asked for again. A reader says
//     io.EOF only when it has come to its last id, or the server has answered
//     that nothing follows.
//   - Every call ends when its context does, or after the timeout.
//   - Without a cluster no connection is made to a server that says that it is
//     a replica. The first write that a server refuses as one (READONLY) ends
//     every connection, and so does, within some seconds, the word of more than
//     half of the sentinels that another one is the primary; the next command
//     finds it.
//   - Without a cluster a reader says io.EOF only if every page came from one
//     server that was the primary all the time, from before the first page
//     until after the last, by its replication id. In a cluster a replica
//     serves no page, and a page may come from each node that the key was at.
//   - What makes no sense in an answer, however it was meant, is an error of that
//     connection, and so is a message that nobody asked for: in a page the direct
//     reader believes no length before the bytes are there; elsewhere none is believed
//     by which a list, or a text outside of pages, would take more than 256 MiB.
//   - Errors name the command, the key and what to do, are of a closed list
//     of classes, and never hold the password.
//
// Non-guarantees:
//   - A manifest with more fields than one HSCAN call returns is not read at
//     one instant. Each entry is a true value of its time, which is all that a
//     compare-and-set per entry needs.
//   - After an error of class Unavailable a script may have run all the same.
//   - A stream that changes while it is read gives what was there at each
//     page. Who copies it compares StreamInfo from before and after.
//   - A primary that does not know yet that it was deposed calls itself one,
//     and so it is taken for one until the sentinels say otherwise. What is
//     written there is lost, as anybody's is; what is read there can be more than
//     the new one has, or less. Who copies it compares StreamInfo from before and
//     after, and changes the manifest where that is the primary.
//   - In a cluster a reader goes on with the node that a key has moved to, or
//     with the replica that was promoted, which may know less; StreamInfo tells.
//   - A user who may not run INFO gets no such reader: pages count as they come.
//
// Only commands of Redis 6.2 are needed, but for Config.WaitAOF. A Store may be used from any
// goroutine; a page reader from one at a time.
package redisstore
