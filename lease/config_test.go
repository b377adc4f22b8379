package lease

import (
	"fmt"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	good := DefaultConfig()
	good.Key = "k"
	for _, tt := range []struct {
		c    Config
		want string
	}{
		{good, "[]"},
		{Config{Key: "k", Duration: MinDuration, Shards: MaxShards}, "[]"},
		{Config{Key: "k", Duration: 99 * time.Millisecond, Shards: 1025}, "[lease-duration 99ms: want 100ms or more shards 1025: want 1 to 1024]"},
		{Config{}, "[lease: the key is empty lease-duration 0s: want 100ms or more shards 0: want 1 to 1024]"},
	} {
		if got := fmt.Sprint(tt.c.Validate()); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.c, got, tt.want)
		}
	}
}
