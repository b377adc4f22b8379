package offload

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"korvet-offload/segment"
)

// A ledger is a map that keeps its sums and its order.
func TestLedgerAgainstAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l ledger
		model := map[segment.Number]settled{}
		number := rapid.Custom(func(t *rapid.T) segment.Number { return segment.Number(rapid.IntRange(0, 20).Draw(t, "number")) })
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				s := settled{number: number.Draw(t, "which"), at: rapid.Int64Range(0, 9).Draw(t, "at"), count: rapid.Int64Range(0, 100).Draw(t, "count"),
					bytes: rapid.Int64Range(0, 1000).Draw(t, "bytes"), local: rapid.Int64Range(-1, 1000).Draw(t, "local")}
				l.put(s)
				model[s.number] = s
			},
			"take": func(t *rapid.T) {
				n := number.Draw(t, "which")
				if _, there := model[n]; l.take(n) != there {
					t.Fatalf("take %s: it was there: %t", n, there)
				}
				delete(model, n)
			},
			"measured": func(t *rapid.T) {
				n, bytes := number.Draw(t, "which"), rapid.Int64Range(0, 1000).Draw(t, "bytes")
				l.measured(n, bytes)
				if s, there := model[n]; there {
					s.local = bytes
					model[n] = s
				}
			},
			"": func(t *rapid.T) { agree(t, l, model) },
		})
	})
}

func agree(t *rapid.T, l ledger, model map[segment.Number]settled) {
	var want ledger
	for _, n := range slices.Sorted(maps.Keys(model)) {
		s := model[n]
		want.list = append(want.list, s)
		want.messages += s.count
		want.objects += s.bytes
		if s.local < 0 {
			want.unmeasured++
		} else {
			want.streams += s.local
		}
	}
	if !slices.Equal(l.list, want.list) || l.messages != want.messages || l.objects != want.objects || l.streams != want.streams || l.unmeasured != want.unmeasured {
		t.Fatalf("got  %+v\nwant %+v", l, want)
	}
}

// merged gives everything once, in order, and stops when it is told to.
func TestMerged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b ledger
		var active []segment.Span
		var want []segment.Number
		for n := range segment.Number(rapid.IntRange(0, 30).Draw(t, "n")) {
			s := settled{number: n, at: int64(n) + 100, bytes: int64(n)}
			switch rapid.IntRange(0, 3).Draw(t, "where") {
			case 0:
				a.put(s)
			case 1:
				b.put(s)
			case 2:
				active = append(active, segment.Span{Number: n, At: s.at, Bytes: 2 * s.bytes})
			default:
				continue
			}
			want = append(want, n)
		}
		stop := rapid.IntRange(0, 31).Draw(t, "stop")
		var got []segment.Number
		for s := range merged(func(s settled) int64 { return 2 * s.bytes }, active, &a, &b) {
			if len(got) == stop {
				break
			}
			if s.At != int64(s.Number)+100 || s.Bytes != 2*int64(s.Number) {
				t.Fatalf("%+v", s)
			}
			got = append(got, s.Number)
		}
		if want = want[:min(stop, len(want))]; !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}
