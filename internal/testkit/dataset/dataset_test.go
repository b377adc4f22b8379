package dataset

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
)

// TestSameEverywhere pins the messages: figures of two benchmarks compare only
// if both wrote the same.
func TestSameEverywhere(t *testing.T) {
	sum := sha256.New()
	for _, e := range Envelope(1, 100, 1000) {
		sum.Write(e.ID.Append(nil))
		for _, f := range e.Fields {
			sum.Write(f.Name)
			sum.Write(f.Value)
		}
	}
	const want = "275d67a357c02c349d26255d6c7bca4267b0c6d35da797823808ce8cb3b8609e"
	if got := hex.EncodeToString(sum.Sum(nil)); got != want {
		t.Errorf("SHA-256 of 1,000 messages %s, want %s", got, want)
	}
}

func TestEnvelope(t *testing.T) {
	entries := Envelope(2, 1024, 500)
	for i, e := range entries {
		if i > 0 && entries[i-1].ID.Compare(e.ID) >= 0 {
			t.Fatalf("id %s follows %s", e.ID, entries[i-1].ID)
		}
		names := ""
		for _, f := range e.Fields {
			names += string(f.Name) + " "
		}
		if names != "key value headers timestamp " || len(e.Fields[1].Value) != 1024 {
			t.Fatalf("entry %s: fields %s, value of %d bytes", e.ID, names, len(e.Fields[1].Value))
		}
	}
}

func TestPages(t *testing.T) {
	entries := Envelope(3, 10, 25)
	var back []Entry
	for i, p := range Pages(entries, 10) {
		if want := min(10, 25-10*i); p.Len() != want {
			t.Errorf("page %d has %d entries, want %d", i, p.Len(), want)
		}
		back = append(back, Entries(p)...)
	}
	if len(back) != 25 || back[24].ID != entries[24].ID {
		t.Errorf("%d entries came back", len(back))
	}
}
