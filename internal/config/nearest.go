package config

import "strings"

// slip is the distance that a slip of the keyboard makes.
func slip(string) int { return 2 }

// meant is the distance up to which a wrong name may be meant for a right one.
// Names share long beginnings, so only the last part counts.
func meant(name string) int { return max(2, len(lastPart(name))/3) }

// nearest is the candidate that the word was probably meant to be, "" where
// none is within its limit. Of equally near ones the first wins.
func nearest(word string, candidates []string, limit func(string) int) string {
	best, least := "", len(word)+1
	for _, c := range candidates {
		if d := distance(word, c); d < least && d <= limit(c) {
			best, least = c, d
		}
	}
	return best
}

// misplaced is the candidate with the same last part: the right name in the
// wrong section.
func misplaced(word string, candidates []string) string {
	for _, c := range candidates {
		if lastPart(c) == lastPart(word) {
			return c
		}
	}
	return ""
}

func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// distance counts the letters to add, drop, change or swap with their
// neighbour to get from a to b (optimal string alignment).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
