package points

import (
	"runtime"
	"slices"
	"strings"
)

// Side is where at a point something happens.
type Side string

// The two sides of a call.
const (
	Before Side = "before" // nothing was done yet
	After  Side = "after"  // it was done, and the worker does not know yet
)

// Hook is told of both sides of every point, from any goroutine. An error
// before stands for a call that was not made, one after for an answer that was
// lost.
type Hook func(point string, side Side) error

// ours is how the functions of the worker begin.
const ours = "korvet-offload/offload."

// depth is how far up the stack is looked; the longest chain has about 20
// functions.
const depth = 64

// name is the name of a point: who calls, and what.
func name(call string) string { return strings.Join(append(chain(), call), " ") }

// chain lists the worker's functions on the stack from the job down.
func chain() []string {
	var pc [depth]uintptr
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc[:])])
	var names []string
	for {
		f, more := frames.Next()
		if rest, is := strings.CutPrefix(f.Function, ours); is {
			if fn := function(rest); fn != "" && (len(names) == 0 || names[len(names)-1] != fn) {
				names = append(names, fn)
			}
		}
		if !more {
			break
		}
	}
	if i := slices.IndexFunc(names, callsJobs); i > 0 { // the innermost function always counts
		names = names[:i]
	}
	slices.Reverse(names)
	return names
}

// callsJobs says whether a function is above the jobs, or only calls a job's
// steps in turn.
func callsJobs(name string) bool {
	switch name {
	case "Worker.RunOnce", "Worker.do", "pass.all", "pass.timed", "pass.run", "pass.each", "pass.one", "pass.attempt", "guarded", "copying.run", "dropping.run":
		return true
	}
	return false
}

// function makes a name of a symbol without its package: "(*copying).flip",
// "Worker.Scan", "(*pass).expire.(*pass).deleteBatch.func1". A generic function
// of somebody else, inlined here, has none.
func function(symbol string) string {
	if strings.Contains(symbol, "[") {
		return ""
	}
	parts := strings.Split(strings.TrimSuffix(symbol, "-fm"), ".")
	for i := range parts {
		parts[i], _, _ = strings.Cut(parts[i], "-range") // the body of a loop over a function
	}
	for len(parts) > 1 && isClosure(parts[len(parts)-1]) {
		parts = parts[:len(parts)-1]
	}
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		return last
	}
	owner := parts[len(parts)-2]
	if pointer, is := strings.CutPrefix(owner, "(*"); is {
		return strings.TrimSuffix(pointer, ")") + "." + last
	}
	if len(parts) == 2 {
		return owner + "." + last
	}
	return last // a function that was inlined into owner
}

// isClosure says whether a part of a symbol is what the compiler calls a
// function without a name.
func isClosure(part string) bool {
	digits := part
	for _, word := range []string{"func", "gowrap", "deferwrap"} {
		digits = strings.TrimPrefix(digits, word)
	}
	return digits != "" && strings.Trim(digits, "0123456789") == ""
}

// Call is the last part of a point's name: the port and its method.
func Call(point string) string { return point[strings.LastIndexByte(point, ' ')+1:] }

// Site is the innermost function of a point and the call: where it stands in
// the source.
func Site(point string) string {
	parts := strings.Split(point, " ")
	return strings.Join(parts[max(0, len(parts)-2):], " ")
}
