package config

import (
	"testing"
	"time"
)

// The values of settings come from files, variables and flags of all kinds.
//
//fault:input | Durations, sizes, numbers and switches of any text | fuzzing | a value is refused, or is in its range and read back the same from the form in which the program shows it
func FuzzValues(f *testing.F) {
	for _, text := range []string{"90s", "1m", "7d", "60000", "PT1M", "p1dt2h3m4.5s", "1d12h", "106751d23h", "106752d", "9223372036854775807", "1µs", "64MB", "8388607TB", "007",
		"1.5h", "-1s", "", " 5 ", "true", "off", "1kb", "KB", "2147483648"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseDuration(text); err == nil {
			if back, err := parseDuration(formatDuration(d)); d < 0 || err != nil || back != d {
				t.Fatalf("%q is %s, which is shown as %q and read back as %s, %v", text, d, formatDuration(d), back, err)
			}
		}
		if n, err := parseSize(text); err == nil {
			if back, err := parseSize(formatSize(n)); n < 0 || err != nil || back != n {
				t.Fatalf("%q is %d, which is shown as %q and read back as %d, %v", text, n, formatSize(n), back, err)
			}
		}
		n, errNumber := parseNumber(text)
		if d, err := parseDuration(text); errNumber == nil && n >= 0 && err == nil && d != time.Duration(n)*time.Millisecond {
			t.Fatalf("%q is the number %d, and as a duration %s", text, n, d)
		}
		yes, err := parseBool(text)
		if err != nil && yes {
			t.Fatalf("%q is refused, and on", text)
		}
	})
}
