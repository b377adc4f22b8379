// Package goreaders reads segment files with readers that share no code with
// their writer, and compares the writer with others. It holds tests and
// benchmarks alone, in a module of its own: what they need is not to become
// part of the program.
package goreaders
