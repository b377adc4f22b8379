package checker

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// sound are worlds of every phase of a segment's life in which nothing is
// wrong.
func sound() map[string]func() *world {
	of := func(build func(*world, *Partition)) func() *world {
		return func() *world {
			w := newWorld()
			build(w, w.topic("t:0"))
			return w
		}
	}
	return map[string]func() *world{
		"nothing":             newWorld,
		"no entry":            of(func(*world, *Partition) {}),
		"open, no message":    of(func(w *world, p *Partition) { w.open(p, 0) }),
		"open":                of(func(w *world, p *Partition) { w.open(p, 3) }),
		"sealed":              of(func(w *world, p *Partition) { w.local(p, 3); w.open(p, 2) }),
		"sealed and empty":    of(func(w *world, p *Partition) { p.add(sealed + `"count":0}`); w.open(p, 2) }),
		"copied":              of(func(w *world, p *Partition) { w.copied(p, 3, "PRESENT"); w.open(p, 2) }),
		"copied and empty":    of(func(w *world, p *Partition) { w.copied(p, 0, "GONE"); w.open(p, 0) }),
		"being dropped":       of(func(w *world, p *Partition) { w.copied(p, 3, "DROPPING") }),
		"dropped, not marked": of(func(w *world, p *Partition) { w.copied(p, 3, "DROPPING"); delete(w.Streams, "local:t:0:0") }),
		"dropped":             of(func(w *world, p *Partition) { w.copied(p, 3, "GONE"); w.copied(p, 2, "GONE"); w.open(p, 1) }),
		"hidden for its age": of(func(w *world, p *Partition) {
			w.may("expired", p, "local:t:0:0", w.copied(p, 3, "GONE"))
			p.hide("0", `,"aged":true`)
			w.open(p, 1)
		}),
		"hidden, its object gone": of(func(w *world, p *Partition) {
			w.may("expired", p, "local:t:0:0", w.copied(p, 3, "GONE"))
			p.hide("0", "")
			delete(w.Objects, "local:t:0/0.parquet")
		}),
		"hidden and never copied": of(func(w *world, p *Partition) {
			w.may("expired", p, "local:t:0:0", w.local(p, 3))
			p.hide("0", "")
		}),
		"expired": of(func(w *world, p *Partition) {
			w.may("expired", p, "local:t:0:0", w.copied(p, 3, "GONE"))
			delete(p.Manifest, "0")
			delete(w.Objects, "local:t:0/0.parquet")
			p.Manifest["1"] = openNow
		}),
		"copied again": of(func(w *world, p *Partition) {
			all := w.copied(p, 3, "PRESENT")
			delete(w.Objects, "local:t:0/0.parquet")
			p.Manifest["0"] = remote + `"copy":2,"local":"PRESENT",` + w.put("local:t:0/0-2.parquet", all) + "}"
		}),
		"to be copied again": of(func(w *world, p *Partition) {
			all := w.copied(p, 3, "PRESENT")
			delete(w.Objects, "local:t:0/0.parquet")
			p.Manifest["0"] = sealed + `"copy":1,` + contents(all) + "}"
		}),
		"put where nothing can be put only if absent": of(func(w *world, p *Partition) {
			p.add(remote + `"copy":1,"local":"GONE",` + w.put("local:t:0/0-1.8d9f.parquet", w.write(p, "local:t:0:0", 2)) + "}")
		}),
		"adopted": of(func(w *world, p *Partition) {
			all := w.write(p, p.StreamKey, 3)
			w.Streams[p.StreamKey] = all
			p.add(remote + `"key":"local:t:0","local":"PRESENT",` + w.put("local:t:0/0.parquet", all) + "}")
			w.open(p, 2)
		}),
		"deleted by somebody": of(func(w *world, p *Partition) {
			all := w.local(p, 3)
			w.may("deleted", p, "local:t:0:0", all)
			w.Streams["local:t:0:0"] = []Message{}
		}),
		"deleted by somebody after the copy": of(func(w *world, p *Partition) {
			w.may("deleted", p, "local:t:0:0", w.copied(p, 3, "PRESENT"))
			w.Streams["local:t:0:0"] = []Message{}
		}),
		"deleted by somebody, then copied": of(func(w *world, p *Partition) {
			all := w.local(p, 4)
			w.may("deleted", p, "local:t:0:0", all[1:3])
			rest := []Message{all[0], all[3]}
			p.Manifest["0"] = remote + `"local":"PRESENT",` + w.put("local:t:0/0.parquet", rest) + "}"
			w.Streams["local:t:0:0"] = rest[:1]
		}),
		"two streams with the same ids": of(func(w *world, p *Partition) {
			w.local(p, 3)
			w.next = 1
			w.local(p, 3)
		}),
		"a plain stream": func() *world {
			w := newWorld()
			w.ranges("events", "events", 2, 2, 1, 3)
			return w
		},
		"a plain stream whose entries name no key": func() *world {
			w := newWorld()
			p := w.ranges("events", "events", 1, 1, 1, 2)
			for n := range p.Manifest {
				p.replace(n, `"key":"events",`, "")
			}
			return w
		},
		"two plain streams, the second one older": func() *world {
			w := newWorld()
			w.next = 100
			w.ranges("events", "events", 1, 1, 1, 2)
			w.next = 1
			w.ranges("others", "others", 1, 1, 1, 2)
			return w
		},
		"ranges of one stream, then streams of their own": of(func(w *world, p *Partition) {
			all := w.write(p, "k", 4)
			w.Streams["k"] = all
			p.add(sealed + `"key":"k","from":"0-1","to":"` + all[1].ID + `",` + contents(all[:2]) + "}")
			p.add(sealed + `"key":"k","from":"` + all[2].ID + `","to":"` + all[3].ID + `",` + contents(all[2:]) + "}")
			w.local(p, 2)
			w.open(p, 1)
		}),
		"a plain stream with an odd key": func() *world {
			w := newWorld()
			w.ranges("_sensors/hall 1.é", "%5Fsensors%2Fhall%201.%C3%A9", 1, 1, 1, 2)
			return w
		},
		"the marker of the place": of(func(w *world, p *Partition) { w.Objects["_korvet_offload.json"] = Object{Bad: "not a segment file"} }),
		"fields that nobody knows": of(func(w *world, p *Partition) {
			all := w.local(p, 2)
			p.Manifest["0"] = " {\n\"broker\": {\"a\":[1,{\"b\":\"}\\\"\"}], \"n\":null} ,\"sealedAt\":null,\"state\":\"SEALED\",\"tier\":\"LOCAL\",\"k\\u0065y\":\"x\\u003ay\"}\n"
			w.Streams["x:y"] = all
			delete(w.Streams, "local:t:0:0")
			for i := range w.acks {
				w.acks[i].Key = "x:y"
			}
		}),
	}
}

func TestSoundWorldsPass(t *testing.T) {
	for name, build := range sound() {
		t.Run(name, func(t *testing.T) {
			w := build()
			if found := w.check(); len(found) > 0 {
				t.Errorf("%v", found)
			}
			if found := Check(w.World, nil, Rules{Settled: true, Owner: "_korvet_offload.json"}); len(found) > 0 {
				t.Errorf("without a ledger: %v", found)
			}
			if found := Check(w.World, w.acks, Rules{May: w.rules().May}); len(found) > 0 {
				t.Errorf("unsettled: %v", found)
			}
		})
	}
}

// What is not settled yet, or may be brought back, is no finding then, and is
// one later.
func TestWhatRulesAllow(t *testing.T) {
	for name, c := range map[string]struct {
		build func(*world, *Partition)
		kind  Kind
		allow func(*Rules)
	}{
		"a late message": {func(w *world, p *Partition) {
			w.copied(p, 2, "PRESENT")
			w.Streams["local:t:0:0"] = append(w.Streams["local:t:0:0"], w.write(p, "local:t:0:0", 1)...)
		}, Late, func(r *Rules) { r.Settled = false }},
		"an object without an entry": {func(w *world, p *Partition) { w.put("local:t:0/0.parquet", nil) }, Orphan, func(r *Rules) { r.Settled = false }},
		"a young object":             {func(w *world, p *Partition) { w.put("local:t:0/0.parquet", nil) }, Orphan, func(r *Rules) { r.OrphanAge = 2 * 3600e9 }},
		"hidden in an object": {func(w *world, p *Partition) {
			w.copied(p, 2, "GONE")
			p.hide("0", `,"aged":true`)
		}, Lost, func(r *Rules) { r.Hidden = true }},
		"hidden in a stream": {func(w *world, p *Partition) {
			w.local(p, 2)
			p.hide("0", "")
		}, Lost, func(r *Rules) { r.Hidden = true }},
		"sent, and not answered": {func(w *world, p *Partition) {
			w.open(p, 2)
			w.acks = w.acks[:1]
		}, Invented, func(r *Rules) {
			r.Sent = func(partition, key, sum string) bool { return partition+key+sum == "t:0local:t:0:0sum of 2" }
		}},
		"old enough": {func(w *world, p *Partition) { w.write(p, "local:t:0:0", 1) }, Lost, func(r *Rules) {
			r.May = func(a Ack) string { return strings.TrimPrefix(a.ID, "1000-") }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			c.build(w, w.topic("t:0"))
			if kinds := kindsOf(w.check()); !slices.Equal(kinds, []Kind{c.kind}) {
				t.Errorf("by the strict rules %v", w.check())
			}
			rules := w.rules()
			c.allow(&rules)
			if found := Check(w.World, w.acks, rules); len(found) > 0 {
				t.Errorf("allowed, and found: %v", found)
			}
		})
	}
}

// What is nowhere is lost by any rules but an excuse.
func TestNoOtherRuleExcusesALoss(t *testing.T) {
	w := newWorld()
	w.write(w.topic("t:0"), "local:t:0:0", 1)
	for _, rules := range []Rules{{}, {Hidden: true}, {Settled: true, OrphanAge: time.Hour, Sent: func(_, _, _ string) bool { return true }}} {
		if found := Check(w.World, w.acks, rules); !slices.Equal(kindsOf(found), []Kind{Lost}) {
			t.Errorf("by %+v found %v", rules, found)
		}
	}
}

// kindsOf are the kinds of findings, each once, in their order.
func kindsOf(found []Finding) (kinds []Kind) {
	for _, f := range found {
		kinds = append(kinds, f.Kind)
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func TestTally(t *testing.T) {
	w := newWorld()
	p := w.topic("t:0")
	w.copied(p, 4, "GONE")
	w.copied(p, 3, "PRESENT")
	w.local(p, 2)
	w.may("expired", p, "local:t:0:9", w.write(p, "local:t:0:9", 5))
	w.open(p, 1)
	want := Tally{Acked: 15, OnStore: 7, Both: 3, InRedis: 3, Excused: map[string]int{"expired": 5}}
	if got := Examine(w.World, w.acks, w.rules()).Tally; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFindingReads(t *testing.T) {
	f := Finding{Kind: Lost, Partition: "t:0", Segment: "7", Key: "k", Path: "p", Text: "gone", IDs: []string{"1-1", "1-2", "1-3", "1-4", "1-5", "1-6"}}
	if got, want := fmt.Sprint(f), "lost t:0/7 stream k object p: gone (6: 1-1 1-2 1-3 1-4 1-5 ...)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func BenchmarkCheckTinyWorld(b *testing.B) {
	w := newWorld()
	p := w.topic("t:0")
	w.copied(p, 3, "PRESENT")
	w.open(p, 2)
	b.ReportAllocs()
	for b.Loop() {
		if len(Check(w.World, w.acks, Rules{})) > 0 {
			b.Fatal("it is sound")
		}
	}
}

func BenchmarkCheckLargeWorld(b *testing.B) {
	w := newWorld()
	w.ranges("events", "events", 1000, 500, 10, 100)
	p := w.topic("t:0")
	for range 500 {
		w.copied(p, 100, "PRESENT")
	}
	w.open(p, 100)
	b.Logf("%d messages", len(w.acks))
	b.ReportAllocs()
	for b.Loop() {
		if len(w.check()) > 0 {
			b.Fatal("it is sound")
		}
	}
}
