package config

import "time"

// ParseDuration reads a duration as the settings have it: 90s, 1m, 2h, 7d or
// milliseconds.
func ParseDuration(text string) (time.Duration, error) { return parseDuration(text) }
