// Package stage is where the hard tests of the built program play: one real
// Redis, one folder that is the object store, worker processes that are
// started, stopped and killed, and an account of what producers were told.
//
// A Stage belongs to one test, or one schedule of it; stages do not share
// anything, so several may play at once. Its methods are not safe for
// concurrent use, but for those of a Process.
package stage
