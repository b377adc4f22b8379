// Package words says numbers for people, alike wherever this program says them.
// It keeps nothing and reads nothing.
package words

import (
	"fmt"
	"strings"
)

// Count is so many of a thing: 1 segment, 2 segments, 2 entries.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok && !strings.ContainsAny(stem[max(0, len(stem)-1):], "aeou") {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Are is "is" of one thing, and otherwise "are".
func Are[N int | int64](n N) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// Size is a number of bytes, in units of 1024.
func Size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	value, i := float64(n)/unit, 0
	for value >= unit-0.05 && i < 5 { // what would be printed as 1024.0
		value /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", value, "KMGTPE"[i])
}
