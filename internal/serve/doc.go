// Package serve lets others read the remote tier over HTTP, without credentials
// of the store: topics and segments as JSON, messages as lines of JSON, and the
// files themselves, whole or in ranges.
//
// Guarantees: nothing can be changed through it. A file is served only if the
// manifest names it at that moment as the file of that segment, SEALED and REMOTE;
// nothing of a path from outside reaches the store but a topic's name, a stream's
// key and numbers, each checked. A file that is not as large as its entry says is
// refused before its first byte. An answer that could not be finished is cut off,
// so that nobody takes it for a whole one. What a client can keep the server busy
// with is bounded: connections, requests per second of one address, headers, time
// without progress, and readings at once.
//
// Non-guarantees: a file's content is not compared with its SHA-256 while it is
// sent, but where it comes from the cache; the answer names the SHA-256, for whoever
// wants to. A range is of the file as its ETag names it: who asks for several
// should say If-Match or If-Range. What is behind the server (a proxy) shares one
// address.
//
// Files that lie on this machine are sent by the kernel: net/http hands an *os.File
// to sendfile(2) as long as no wrapper stands between it and the connection that
// is no io.ReaderFrom itself. With TLS the process must see the bytes, and copies.
package serve
