package s3sink

import "time"

// LongestSilence is how long one call of a store in a bucket may last at most
// without an answer, an Event or a byte of a body: the longest pause that a store
// can ask for, one attempt, and the clean-up of a failed upload. A folder has no
// such limit: a file system answers when it does.
func LongestSilence() time.Duration {
	return retryAfterCap + Limits{}.withDefaults().Request + abortTimeout
}
