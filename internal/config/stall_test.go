package config

import "testing"

// What has a deadline of its own must fail before it passes for hung.
func TestStallTimeoutAgainstTheWaits(t *testing.T) {
	for _, tt := range []struct{ path, timeout, stall, want string }{
		{"s3://bucket", "10s", "2m1s", ""},
		{"s3://bucket", "10s", "2m", "2m, which the object store may take to answer"},
		{"s3://bucket", "1m1s", "2m2s", "2m2s, which Redis may take to answer"},
		{"file:///tmp/x", "10s", "21s", ""},
		{"file:///tmp/x", "10s", "20s", "20s, which Redis may take to answer"},
		{"file:///tmp/x", "1s", "11s", "11s, which Redis may take to answer"},
		{"file:///tmp/x", "1s", "0", "11s, which Redis may take to answer"},
	} {
		_, err := load(Input{Flags: map[string]string{"remote-path": tt.path}, Set: []string{
			"korvet.redis.timeout=" + tt.timeout, stallTimeout + "=" + tt.stall,
		}}, nil)
		want := tt.want
		if want != "" {
			want = `korvet.storage.offload.stall-timeout = "` + tt.stall + `" (--set): must be longer than ` + want
		}
		if got := errText(err); got != want {
			t.Errorf("%+v:\n got %s\nwant %s", tt, got, want)
		}
	}
}
