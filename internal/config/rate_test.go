package config

import (
	"strings"
	"testing"
)

func TestUploadRate(t *testing.T) {
	for _, tt := range []struct{ rate, concurrency, fault, warning string }{
		{"0", "64", "", ""},
		{"1MB", "4", "", ""},
		{"64KB", "4", "", ""},
		{"64KB", "5", "", "leaves each of 10 uploads 6553 per second"},
		{"512KB", "64", "", "leaves each of 128 uploads 4KB per second"},
		{"65535", "1", "want 0, for no limit, or 65536 bytes per second or more", ""},
		{"1KB", "0", "want 0, for no limit", ""},
	} {
		l, err := load(Input{Environ: []string{"KORVET_STORAGE_OFFLOAD_UPLOAD_RATE=" + tt.rate, "KORVET_STORAGE_OFFLOAD_CONCURRENCY=" + tt.concurrency}}, nil)
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), "UPLOAD_RATE): "+tt.fault) {
				t.Errorf("%+v: %v", tt, err)
			}
			continue
		}
		if err != nil || tt.warning == "" && len(l.Warnings) > 0 || !strings.Contains(strings.Join(l.Warnings, "\n"), tt.warning) {
			t.Errorf("%+v: %v %v", tt, err, l.Warnings)
		}
	}
}
