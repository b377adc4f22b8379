// Package docs holds those pages of the documentation that the program itself
// shows.
package docs

import _ "embed"

//go:embed reasons.md
var reasons string

// Reasons is the page on the words by which it is said what is stuck, as
// Markdown.
func Reasons() string { return reasons }
