// Package points gives every call that the worker makes to one of its ports a
// name, and lets something happen right before or right after it: the process
// dies, stops, or the call fails. It is a decorator around offload.Ports; the
// worker's own code has no line for it. Only a program that was built with the
// tag faultpoints has it.
//
// A point's name is the chain of the functions of package offload that lead to
// the call, from the job down, and the call itself:
//
//	copying.flip copying.swap Manifests.Change
//
// The names come from the call stack, so a new step has a point as soon as it
// is written. They are the same at every run of the same build; a function that
// is renamed renames its points.
package points
