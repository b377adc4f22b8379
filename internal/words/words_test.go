package words

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[int]string{0: "0 segments", 1: "1 segment", 2: "2 segments"} {
		if got := Count(n, "segment"); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
}

func TestNounsOnY(t *testing.T) {
	for want, got := range map[string]string{
		"1 entry": Count(1, "entry"), "2 entries": Count(2, "entry"), "0 copies": Count(int64(0), "copy"), "2 keys": Count(2, "key"), "7 days": Count(7, "day"),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if Are(1) != "is" || Are(0) != "are" || Are(int64(2)) != "are" {
		t.Error(Are(1), Are(0), Are(2))
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
