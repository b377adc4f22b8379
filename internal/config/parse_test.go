package config

import (
	"errors"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for _, tt := range []struct {
		text string
		want time.Duration
		err  error
	}{
		{"90s", 90 * time.Second, nil},
		{"1m", time.Minute, nil},
		{" 1M ", time.Minute, nil},
		{"1m30s", 90 * time.Second, nil},
		{"1.5h", 90 * time.Minute, nil},
		{"1d", 24 * time.Hour, nil},
		{"1d12h", 36 * time.Hour, nil},
		{"60000", time.Minute, nil},
		{"0", 0, nil},
		{"250us", 250 * time.Microsecond, nil},
		{"PT1M", time.Minute, nil},
		{"pt1h30m", 90 * time.Minute, nil},
		{"P2DT3H", 51 * time.Hour, nil},
		{"PT168H", 168 * time.Hour, nil},
		{"PT0.5S", 500 * time.Millisecond, nil},
		{"106751d", 106751 * 24 * time.Hour, nil},
		{"106752d", 0, errTooLong},
		{"106751d24h", 0, errTooLong},
		{"9223372036854", 9223372036854 * time.Millisecond, nil},
		{"9223372036855", 0, errTooLong},
		{"99999999999999999999d", 0, errTooLong},
		{"", 0, errDuration},
		{"-1s", 0, errDuration},
		{"+1s", 0, errDuration},
		{"-60000", 0, errDuration},
		{"PT-1S", 0, errDuration},
		{"-PT1S", 0, errDuration},
		{"P1M", 0, errDuration},
		{"P", 0, errDuration},
		{"PT", 0, errDuration},
		{"1.5", 0, errDuration},
		{"1.5d", 0, errDuration},
		{"1 m", 0, errDuration},
		{"1x", 0, errDuration},
		{"s", 0, errDuration},
		{".s", 0, errDuration},
		{"d", 0, errDuration},
		{"1s1d", 0, errDuration},
		{"NaN", 0, errDuration},
		{"Inf", 0, errDuration},
		{"1e3s", 0, errDuration},
	} {
		got, err := parseDuration(tt.text)
		if !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("parseDuration(%q) = %v, %v; want %v, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64
		err  error
	}{
		{"0", 0, nil},
		{"67108864", 64 << 20, nil},
		{"64MB", 64 << 20, nil},
		{"64mb", 64 << 20, nil},
		{"64MiB", 64 << 20, nil},
		{"512KB", 512 << 10, nil},
		{"1KiB", 1 << 10, nil},
		{"2GB", 2 << 30, nil},
		{"1TB", 1 << 40, nil},
		{"10B", 10, nil},
		{"9223372036854775807", math.MaxInt64, nil},
		{"8388607TB", 8388607 << 40, nil},
		{"8388608TB", 0, errTooLarge},
		{"9223372036854775808", 0, errTooLarge},
		{"", 0, errSize},
		{"MB", 0, errSize},
		{"-1", 0, errSize},
		{"+1", 0, errSize},
		{"1.5GB", 0, errSize},
		{"64 MB", 0, errSize},
		{"64M", 0, errSize},
		{"64MBB", 0, errSize},
		{"NaN", 0, errSize},
		{"1e6", 0, errSize},
		{"0x10", 0, errSize},
	} {
		got, err := parseSize(tt.text)
		if !errors.Is(err, tt.err) || got != tt.want {
			t.Errorf("parseSize(%q) = %v, %v; want %v, %v", tt.text, got, err, tt.want, tt.err)
		}
	}
}

func TestParseNumberAndBool(t *testing.T) {
	for text, ok := range map[string]bool{"4": true, " 4 ": true, "-4": true, "": false, "4.0": false, "4k": false, "1_000": false, "0x4": false, "NaN": false, "99999999999": false} {
		if _, err := parseNumber(text); (err == nil) != ok {
			t.Errorf("parseNumber(%q): %v", text, err)
		}
	}
	for text, want := range map[string]string{"true": "true", "YES": "true", "on": "true", "1": "true", "false": "false", "No": "false", "off": "false", "0": "false", "": "", "t": "", "2": "", "enabled": ""} {
		b, err := parseBool(text)
		if (err == nil) != (want != "") || err == nil && formatBool(b) != want {
			t.Errorf("parseBool(%q) = %v, %v", text, b, err)
		}
	}
}

// What is shown can be given again.
func TestFormatsAreRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Min(0).Draw(t, "duration"))
		if got, err := parseDuration(formatDuration(d)); err != nil || got != d {
			t.Fatalf("%s: %v, %v", formatDuration(d), got, err)
		}
		n := rapid.Int64Min(0).Draw(t, "size")
		if got, err := parseSize(formatSize(n)); err != nil || got != n {
			t.Fatalf("%s: %v, %v", formatSize(n), got, err)
		}
	})
	for d, want := range map[time.Duration]string{time.Minute: "1m", time.Hour: "1h", 90 * time.Second: "1m30s", 0: "0s", 10 * time.Minute: "10m", 61 * time.Minute: "1h1m"} {
		if got := formatDuration(d); got != want {
			t.Errorf("formatDuration(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestNearest(t *testing.T) {
	c := newCatalog()
	for word, want := range map[string]string{
		"korvet.storage.offload.tick-intervall": "korvet.storage.offload.tick-interval",
		"korvet.storage.worker.tickinterval":    "korvet.storage.worker.tick-interval",
		"korvet.storage.ofload.enabled":         "korvet.storage.offload.enabled",
		"korvet.storage.remot-path":             "korvet.storage.remote-path",
		"korvet.storage.remote.pth":             "korvet.storage.remote.path",
		"korvet.storage.spool-dir":              "korvet.storage.offload.spool-dir",
		"korvet.redis.usrename":                 "korvet.redis.username",
		"korvet.storage.layout.segmentStreams":  "korvet.storage.layout.segment-stream",
		"korvet.storage.offload.http-address":   "korvet.storage.offload.http.address",
		"korvet.storage.offload.quux":           "",
	} {
		if got := c.nearestName(splitPath(word)); got != want {
			t.Errorf("nearest to %s: %q, want %q", word, got, want)
		}
	}
}

func TestRedactURL(t *testing.T) {
	for _, shown := range []string{"", "s3://bucket/a:b/c", "https://host:9000", "https://[::1]:9000/", "file:///dir/x", "redis://h:1", "minio:9000", "bucket", "s3:/foo", "s3a:/foo/bar", "file:/dir"} {
		if got := redactURL(shown); got != shown {
			t.Errorf("redact %s: %s", shown, got)
		}
	}
	for _, secret := range []string{"s3://a:b@c", "s3://a:b", "s3://a:12/b", "https://a@b", "https://h/?k=v", "https://h/#f", "a:b@c", "a:b", "s3:/a:b", "s3:/a@b", "https:/b", "s3:secret"} {
		if got := redactURL(secret); got != "(not shown: it may hold a password)" {
			t.Errorf("redact %s: %s", secret, got)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "ab", 2}, {"ab", "ba", 1}, {"abc", "abc", 0}, {"abc", "axc", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := distance(tt.a, tt.b); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := distance(tt.b, tt.a); got != tt.want {
			t.Errorf("distance(%q, %q) = %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}
