package config

// ParseSize reads a size as settings have it: plain bytes, or 64KB, 16MB, 1GB as
// binary multiples.
func ParseSize(text string) (int64, error) { return parseSize(text) }
