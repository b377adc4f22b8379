package words

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 segments", 1: "1 segment", 2: "2 segments"} {
		if got := Count(n, "segment"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1536: "1.5 KiB", 1<<20 - 1: "1.0 MiB", 1 << 20: "1.0 MiB", 5 << 30: "5.0 GiB", 1<<63 - 1: "8.0 EiB",
	} {
		if got := Size(n); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}
