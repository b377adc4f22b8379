// Package loader takes a checker.World from a real Redis server and the folder
// of a real object store, and the ledger from the producers that the tests
// have.
//
// Redis is read over a connection of its own, by code that is neither the
// program's nor its library's; objects are read from the folder, past the
// store's server, by the program's own reader of segment files, which checks
// page sums and footers.
//
// Nothing must move meanwhile: a World is read one key and one file after the
// other. Only keys that a manifest or the ledger names are read, so that KEYS
// and SCAN do not show up among what the server has run.
package loader
