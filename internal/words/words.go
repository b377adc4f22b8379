// Package words says numbers for people, alike wherever this program says them.
// It keeps nothing and reads nothing.
package words

import "fmt"

// Count is so many of a thing.
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
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
