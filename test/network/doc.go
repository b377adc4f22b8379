// Package network puts a fault proxy between the built program and its
// servers, a real Redis and a real S3 server, and proves that a network that
// delays, drips, cuts, resets or swallows costs time and nothing else. It is a
// module of its own: the proxy is no dependency of the program.
package network
