package torture

import "time"

// tries is how often a candidate is run before it counts as one that passes:
// what a schedule does is not the same each time.
const tries = 3

// Shrink drops steps of a schedule that fails for as long as it goes on
// failing, first many at once, then single ones, and returns the shortest that
// failed. It stops when the time is over; fails is not called after that.
func Shrink(s Schedule, until time.Time, fails func(Schedule) bool) Schedule {
	for chunk := max(1, len(s)/2); ; chunk = (chunk + 1) / 2 {
		shorter := true
		for shorter {
			s, shorter = dropChunks(s, chunk, until, fails)
		}
		if chunk == 1 || !time.Now().Before(until) {
			return s
		}
	}
}

// dropChunks tries to leave out each run of steps of a length.
func dropChunks(s Schedule, chunk int, until time.Time, fails func(Schedule) bool) (_ Schedule, shorter bool) {
	for at := 0; at < len(s); {
		candidate := append(append(Schedule{}, s[:at]...), s[min(len(s), at+chunk):]...)
		if failsOnce(candidate, until, fails) {
			s, shorter = candidate, true
			continue
		}
		at += chunk
	}
	return s, shorter
}

func failsOnce(s Schedule, until time.Time, fails func(Schedule) bool) bool {
	for range tries {
		if !time.Now().Before(until) {
			return false
		}
		if fails(s) {
			return true
		}
	}
	return false
}
