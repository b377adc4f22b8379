package s3sink

import (
	"cmp"
	"time"
)

// Call is one attempt at one request to S3, whatever came of it.
type Call struct {
	Op     string        // one of Operations, or one of Inspect's questions
	Class  Class         // "" = it was answered as it should be
	Waited time.Duration // for its turn, because the store had asked for fewer requests
	Took   time.Duration // of a get until the answer began
}

// Operations lists what S3 is asked for by a worker. An object that goes up in
// parts takes a begin, its parts and a complete.
func Operations() []string {
	return []string{"put", "begin", "part", "complete", "abort", "stat", "get", "list", "delete", "check", "claim"}
}

func callOf(r request, err *Error, waited, took time.Duration) Call {
	c := Call{Op: cmp.Or(r.step, r.op), Waited: waited, Took: took}
	if err != nil {
		c.Class = err.Class
	}
	return c
}
