package redisstore

import (
	"fmt"
	"strings"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	for _, tt := range []struct {
		change func(*Config)
		want   string // "" = valid; else what one of the errors begins with
	}{
		{func(*Config) {}, ""},
		{func(c *Config) { c.URI = "" }, ""},
		{func(c *Config) { c.URI, c.Host = "", "10.0.0.1" }, ""},
		{func(c *Config) { c.URI, c.Host = "", "::1" }, ""},
		{func(c *Config) { c.URI, c.Host = "", "" }, "host: want a server's name"},
		{func(c *Config) { c.URI, c.Host = "", "h:6379" }, "host: want a server's name"},
		{func(c *Config) { c.URI, c.Port = "", 0 }, "port 0: want 1 to 65535"},
		{func(c *Config) { c.Port = 0 }, ""}, // not used beside a URI
		{func(c *Config) { c.CAFile = "/ca" }, "ca-file: it has no effect without TLS"},
		{func(c *Config) { c.URI, c.CAFile = "rediss://h", "/ca" }, ""},
		{func(c *Config) { c.URI, c.Cluster = "unix:///s", true }, "cluster: a unix:// socket is no cluster"},
		{func(c *Config) { c.URI, c.Cluster = "redis+sentinel://h/m", true }, "cluster: no sentinels watch a Redis Cluster"},
		{func(c *Config) { c.URI = "redis+sentinel://h/m" }, ""},
		{func(c *Config) { c.URI, c.SentinelPassword = "redis+sentinel://h/m", "x" }, ""},
		{func(c *Config) { c.URI, c.SentinelUsername = "redis+sentinel://h/m", "x" }, "sentinel.password: it belongs to sentinel.username"},
		{func(c *Config) { c.SentinelUsername = "x" }, "sentinel.username: it has no effect without sentinels"},
		{func(c *Config) { c.SentinelPassword = "x" }, "sentinel.password: it has no effect without sentinels"},
		{func(c *Config) { c.URI, c.CAFile = "rediss+sentinel://h/m", "/ca" }, ""},
		{func(c *Config) { c.URI, c.CAFile = "redis+sentinel://h/m", "/ca" }, "ca-file: it has no effect without TLS"},
		{func(c *Config) { c.URI, c.CertFile, c.KeyFile = "rediss://h", "/c", "/k" }, ""},
		{func(c *Config) { c.URI, c.CertFile = "rediss://h", "/c" }, "key-file: it belongs to cert-file"},
		{func(c *Config) { c.URI, c.KeyFile = "rediss://h", "/k" }, "cert-file: it belongs to key-file"},
		{func(c *Config) { c.Timeout = 0 }, "timeout 0s: want 1ms or more"},
		{func(c *Config) { c.PageSize = 0 }, "page-size 0: want 1 to 1000000"},
		{func(c *Config) { c.PageSize = MaxPageSize + 1 }, "page-size 1000001: want 1 to 1000000"},
		{func(c *Config) { c.Reader = "" }, `page-reader "": want direct or client`},
		{func(c *Config) { c.Layout.Topic = "x" }, `layout.topic = "x": {topic} is missing`},
	} {
		c := DefaultConfig()
		tt.change(&c)
		errs := c.Validate()
		if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", c, errs, tt.want)
		}
	}
}

func TestCheckAndRedactURI(t *testing.T) {
	const not = "(not shown: it may hold a password)"
	for _, tt := range []struct {
		uri   string
		valid bool
		shown string
	}{
		{"redis://localhost:6379", true, "redis://localhost:6379"},
		{"rediss://h", true, "rediss://h"},
		{"redis://h:1/3", true, "redis://h:1/3"},
		{"redis://h/", false, "redis://h/"},
		{"redis://[::1]:6379", true, "redis://[::1]:6379"},
		{"unix:///run/redis.sock", true, "unix:///run/redis.sock"},
		{"unix://run/redis.sock", false, not},
		{"redis://u:pw@h:1", true, "redis://u:xxxxx@h:1"},
		{"redis://:pw@h:1", true, "redis://:xxxxx@h:1"},
		{"redis://pw@h:1", true, "redis://xxxxx@h:1"},
		{"redis://u:p%40@h:1/2?db=3", true, "redis://u:xxxxx@h:1/2?db=3"},
		{"unix://u:pw@/run/s", true, "unix://u:xxxxx@/run/s"},
		{"redis://u:pw", false, not},
		{"redis://u:a/pw@h", false, not},
		{"redis://u:1#pw@h", false, not},
		{"redis://u:1?pw@h", false, not},
		{"redis://h?password=pw", false, not},
		{"redis://h?db=%pw", false, not},
		{"redis://u:%zzpw@h", false, not},
		{"redis://h?db=x", false, not},
		{"redis://:6379", false, "redis://:6379"},
		{"redis+sentinel://h/m", true, "redis+sentinel://h/m"},
		{"redis+sentinel://h1:1,h2,[::1]:3/my-master/7", true, "redis+sentinel://h1:1,h2,[::1]:3/my-master/7"},
		{"rediss+sentinel://u:p%40w@h1:1,h2:2/m?skip_verify=true", true, "rediss+sentinel://u:xxxxx@h1:1,h2:2/m?skip_verify=true"},
		{"redis+sentinel://pw@h/m", true, "redis+sentinel://xxxxx@h/m"},
		{"redis+sentinel://:pw@h/m", true, "redis+sentinel://:xxxxx@h/m"},
		{"redis+sentinel://h1:1,h2:2", false, "redis+sentinel://h1:1,h2:2"},
		{"redis+sentinel://h1:1,h2:2/", false, "redis+sentinel://h1:1,h2:2/"},
		{"redis+sentinel://h1:1,,h2:2/m", false, not},
		{"redis+sentinel:///m", false, "redis+sentinel:///m"},
		{"redis+sentinel://h/m/x", false, not},
		{"redis+sentinel://h/m/1/2", false, not},
		{"redis+sentinel://h/m n", false, not},
		{"redis+sentinel://h:x/m", false, not},
		{"redis+sentinel://h/m?addr=x:1", false, not},
		{"redis+sentinel://h/m?password=pw", false, not},
		{"redis+sentinel://h/m#pw", false, not},
		{"redis+sentinel://u:pw", false, not},
		{"redis+sentinel://u:a/pw@h/m", false, not},
		{"redis+sentinel://u:%zzpw@h/m", false, not},
		{"redis-sentinel://h/m", false, not},
		{"http://h", false, "http://h"},
		{"localhost:6379", false, "localhost:6379"},
		{"u:pw@h", false, not},
	} {
		err := checkURI(tt.uri)
		if (err == nil) != tt.valid {
			t.Errorf("check %s: %v, want valid %v", tt.uri, err, tt.valid)
		}
		if err != nil && strings.Contains(err.Error(), "pw") {
			t.Errorf("check %s shows the password: %v", tt.uri, err)
		}
		if got := RedactURI(tt.uri); got != tt.shown {
			t.Errorf("redact %s: %s, want %s", tt.uri, got, tt.shown)
		}
	}
}

func TestConfigHidesItsPassword(t *testing.T) {
	for _, c := range []Config{{URI: "redis://u:hunter2@h"}, {URI: "redis://u:hunter2"}, {Host: "h", Port: 1, Password: "hunter2"}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			if text := fmt.Sprintf(verb, c) + fmt.Sprintf(verb, &c) + c.LogValue().String(); strings.Contains(text, "hunter2") {
				t.Errorf("%s shows the password: %s", verb, text)
			}
		}
	}
}
