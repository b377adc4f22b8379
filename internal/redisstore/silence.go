package redisstore

import "time"

// LongestSilence is how long one call of a Store, or of a page reader, may last
// at most without an answer of the server: to connect and to wait for a page, or
// for a durable change and then for those who confirm it. An entry of more than
// 8 MiB gets as much time again for each 8 MiB.
func (c Config) LongestSilence() time.Duration {
	return c.timeout() + max(c.timeout(), pageTimeout)
}
