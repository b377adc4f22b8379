// Package config turns a settings file, a folder of secrets, environment
// variables and flags into the Config structs of the packages that the program
// is made of.
//
// One table (table.go) names every setting. Parsing, flags, the report of what
// is in effect, the reference in docs/settings.md and the proposals for
// misspelt names are all made from it; nothing else lists settings.
//
// Guarantees: Load reports everything that is wrong at once, one line each,
// with the setting's full name, the place where it was given and what would be
// right. No secret, and no password inside a URI, is ever part of a fault, a
// warning or the report. Load reads the settings file, the secrets folder and
// the certificate files that are named in them, and nothing else: the environment
// is an argument.
//
// Non-guarantees: values are checked for form and against each other, not
// against the world. Whether Redis answers, a folder exists or a key opens a
// bucket is not known here.
package config

//go:generate go test . -run TestReferenceIsCurrent -update
