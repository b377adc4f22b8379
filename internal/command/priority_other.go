//go:build !linux

package command

// yieldToOthers does nothing: only Linux has a priority for each thread that
// later ones inherit.
func yieldToOthers() error { return nil }
