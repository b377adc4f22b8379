package ops

import (
	"fmt"
	"testing"
)

func TestConfigValidate(t *testing.T) {
	const address = "want host:port, such as 127.0.0.1:9477 or :9477, or nothing to turn the server off"
	for _, tt := range []struct {
		change func(*Config)
		want   string
	}{
		{func(*Config) {}, "[]"},
		{func(c *Config) { c.Address = "" }, "[]"},
		{func(c *Config) { c.Address = ":0" }, "[]"},
		{func(c *Config) { c.Address = "[::1]:80" }, "[]"},
		{func(c *Config) { c.Address = "9477" }, `[http.address "9477": ` + address + "]"},
		{func(c *Config) { c.Address = "h:99999" }, `[http.address "h:99999": ` + address + "]"},
		{func(c *Config) { c.Address = "h:http" }, `[http.address "h:http": ` + address + "]"},
		{func(c *Config) { c.Address, c.Pprof = "", true }, "[http.pprof: it needs http.address, which is empty]"},
		{func(c *Config) { c.Token = "sixteen letters." }, "[]"},
		{func(c *Config) { c.Token = "fifteen letters" }, "[http.token: it is shorter than 16 characters, and can be guessed; `openssl rand -hex 24` makes a good one]"},
		{func(c *Config) { c.LogLevel, c.LogFormat = "loud", "" }, `[log.level "loud": want one of debug, info, warn, error log.format "": want one of auto, console, json]`},
	} {
		c := DefaultConfig()
		tt.change(&c)
		if got := fmt.Sprint(c.Validate()); got != tt.want {
			t.Errorf("%+v: %s, want %s", c, got, tt.want)
		}
	}
}
