//go:build model

package offload

import (
	"fmt"
	"hash/maphash"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"korvet-offload/segment"
)

// scenario is a small world and all that may happen in it, in any order.
type scenario struct {
	setup  func(w *world)
	config func(*Config)
	events []event
	agents int                                               // processes that believe that they lead
	passes int                                               // of all of them together
	faults int                                               // calls that fail, answered or not, and processes that die
	allow  func(w *world, finding string, settled bool) bool // what is right although it is found
	ends   bool                                              // whoever goes on when everything has happened brings it to rest
}

// event is something that others do.
type event struct {
	name  string
	times int
	can   func(*state) bool // nil = always
	do    func(*world)
}

// action is one step of somebody.
type action struct {
	kind    byte // 'p' begins a pass, 's' makes a call, 'e' is an event
	who     int8
	verdict verdict
}

// state is where a schedule has led to.
type state struct {
	sc     *scenario
	world  *world
	agents []*agent
	passes int
	faults int
	events []int
	last   string // what the last action was
}

// explorer runs schedules from the beginning, one after the other.
type explorer struct {
	t      tb
	dir    string
	sc     *scenario
	seed   maphash.Seed
	agents []*agent
	closer *agent
}

func newExplorer(t *testing.T, sc *scenario, seed maphash.Seed) *explorer {
	cfg := DefaultConfig()
	cfg.SpoolDir, cfg.SpoolMemory, cfg.Concurrency, cfg.SealGrace, cfg.DeleteGrace = t.TempDir(), 4<<20, 1, 0, graceTime
	if sc.config != nil {
		sc.config(&cfg)
	}
	x := &explorer{t: t, dir: cfg.SpoolDir, sc: sc, seed: seed}
	spools := newSpools(cfg.SpoolDir, cfg.SpoolMemory)
	for range sc.agents {
		x.agents = append(x.agents, newAgent(cfg, seed, spools))
	}
	x.closer = newAgent(cfg, seed, spools)
	x.closer.whole = true
	return x
}

// replay leads to the end of a schedule.
func (x *explorer) replay(path []action) *state {
	x.stop()
	w := newWorldIn(x.t, x.dir)
	w.pageLen = 2
	x.sc.setup(w)
	s := &state{sc: x.sc, world: w, agents: x.agents, passes: x.sc.passes, faults: x.sc.faults}
	for _, e := range x.sc.events {
		s.events = append(s.events, e.times)
	}
	for _, a := range path {
		s.apply(a)
	}
	return s
}

// stop ends all passes that are under way.
func (x *explorer) stop() {
	for _, a := range x.agents {
		a.stop()
	}
}

// enabled is what may happen next.
func (s *state) enabled() (all []action) {
	for i, a := range s.agents {
		if !a.running {
			if s.passes > 0 && (i == 0 || s.agents[i-1].running) { // idle ones are alike
				all = append(all, action{'p', int8(i), goOn})
			}
			continue
		}
		all = append(all, action{'s', int8(i), goOn})
		if s.faults > 0 {
			all = append(all, action{'s', int8(i), dies}, action{'s', int8(i), fails})
			if changes(a.at) {
				all = append(all, action{'s', int8(i), lost})
			}
		}
	}
	for i, e := range s.sc.events {
		if s.events[i] > 0 && (e.can == nil || e.can(s)) {
			all = append(all, action{'e', int8(i), goOn})
		}
	}
	return all
}

// changes says whether a call changes anything.
func changes(call string) bool {
	for _, verb := range []string{"swap", "remove", "trim", "put", "delete"} {
		if strings.HasPrefix(call, verb) {
			return true
		}
	}
	return false
}

// apply does one step.
func (s *state) apply(a action) {
	switch who := int(a.who); a.kind {
	case 'e':
		s.events[who]--
		s.last = s.sc.events[who].name
		s.sc.events[who].do(s.world)
	case 'p':
		s.last = fmt.Sprintf("worker %d begins a pass", who)
		s.agents[who].begin(s.world)
		if s.agents[who].running {
			s.passes--
		}
	case 's':
		s.last = fmt.Sprintf("worker %d: %s%s", who, s.agents[who].at, [...]string{"", " FAILS", " is made and its ANSWER LOST", ": DIES before it"}[a.verdict])
		if a.verdict != goOn {
			s.faults--
		}
		s.agents[who].step(a.verdict)
	}
}

// key is the same for states from which the same can happen.
func (s *state) key() uint64 {
	h := s.world.hash(s.agents[0].seed)*31 + uint64(s.passes*64+s.faults)
	for _, n := range s.events {
		h = h*31 + uint64(n)
	}
	var busy []uint64
	for _, a := range s.agents {
		if a.running {
			busy = append(busy, a.seen)
		}
	}
	slices.Sort(busy) // which of them is which does not matter
	for _, b := range busy {
		h = h*31 + b
	}
	return h
}

// hash sums up everything that a world holds.
func (w *world) hash(seed maphash.Seed) uint64 {
	h := maphash.Comparable(seed, w.now)
	if w.damageNext {
		h++
	}
	add := func(parts ...string) {
		var one uint64 = 7
		for _, p := range parts {
			one = one*31 + maphash.String(seed, p)
		}
		h += one // in any order
	}
	for p, m := range w.manifests {
		for field, raw := range m {
			add("m", p.Topic, field, raw)
		}
	}
	for key, s := range w.streams {
		h += maphash.String(seed, key)*31 + maphash.Comparable(seed, w.look(key))
		for _, e := range s.entries {
			h += maphash.String(seed, key)*37 + maphash.Comparable(seed, e.ID)
		}
	}
	for path := range w.objects {
		h += maphash.String(seed, path)*41 + w.hashOf(seed, path)
	}
	for topic, raw := range w.known {
		add("k", topic, raw)
	}
	for _, t := range w.topics {
		add("t", t.Name, t.Settings.ID)
	}
	for key, ids := range w.log {
		h += maphash.String(seed, key)*43 + uint64(len(ids))
	}
	if r := w.replica; r != nil {
		other := world{t: w.t, now: w.now, manifests: r.manifests, streams: r.streams, known: r.known, log: r.log}
		h = h*31 + other.hash(seed)
	}
	return h
}

func (w *world) hashOf(seed maphash.Seed, path string) uint64 {
	return maphash.Bytes(seed, w.objects[path].body)
}

// found is a state that a level has come upon.
type found struct {
	parent int32
	act    action
	key    uint64
	wrong  string
}

// explore visits every state, those with the shortest schedules first, and
// returns the first schedule that ends with something wrong.
func explore(t *testing.T, sc *scenario) (states int, wrong string) {
	seed := maphash.MakeSeed()
	var explorers []*explorer
	for range runtime.GOMAXPROCS(0) {
		explorers = append(explorers, newExplorer(t, sc, seed))
	}
	defer func() {
		for _, x := range explorers {
			x.stop()
		}
	}()
	all := []found{{parent: -1}}
	visited := map[uint64]bool{explorers[0].replay(nil).key(): true}
	for from := 0; from < len(all); {
		level, next := all[from:], make([][]found, len(explorers))
		var workers sync.WaitGroup
		for i, x := range explorers {
			workers.Go(func() {
				for k := i; k < len(level); k += len(explorers) {
					next[i] = append(next[i], x.expand(all, int32(from+k), visited)...)
				}
			})
		}
		workers.Wait()
		from = len(all)
		for _, f := range slices.Concat(next...) {
			if f.wrong != "" {
				return len(all), explorers[0].tell(append(pathTo(all, f.parent), f.act)) + f.wrong
			}
			if !visited[f.key] {
				visited[f.key] = true
				all = append(all, f)
			}
		}
		if len(all) > maxStates {
			t.Fatalf("more than %d states: make the scenario smaller", maxStates)
		}
	}
	return len(all), ""
}

// maxStates bounds a scenario, and the time that it takes.
const maxStates = 400_000

func pathTo(all []found, at int32) (path []action) {
	for ; at > 0; at = all[at].parent {
		path = append(path, all[at].act)
	}
	slices.Reverse(path)
	return path
}

// expand tries everything that may happen in one state.
func (x *explorer) expand(all []found, at int32, visited map[uint64]bool) (next []found) {
	path := pathTo(all, at)
	s := x.replay(path)
	acts := s.enabled()
	if len(acts) == 0 {
		if wrong := s.rest(x); wrong != "" {
			return []found{{parent: at, act: action{'e', -1, goOn}, wrong: wrong}}
		}
	}
	for i, a := range acts {
		if i > 0 {
			s = x.replay(path)
		}
		before := s.passes
		s.apply(a)
		if a.kind == 'p' && before == s.passes {
			continue // there was nothing to do
		}
		f := found{parent: at, act: a, key: s.key()}
		if visited[f.key] {
			continue
		}
		f.wrong = s.wrong(false)
		next = append(next, f)
	}
	return next
}

// tell writes down a schedule.
func (x *explorer) tell(path []action) string {
	var text strings.Builder
	for i, a := range path {
		if a.who < 0 {
			fmt.Fprintf(&text, "%3d. everything else goes well, and whoever leads goes on until nothing is left to do\n", i+1)
			break
		}
		fmt.Fprintf(&text, "%3d. %s\n", i+1, x.replay(path[:i+1]).last)
	}
	return text.String()
}

// rest goes on until nothing changes, and then judges more strictly.
func (s *state) rest(x *explorer) string {
	if !s.sc.ends {
		return ""
	}
	for range 8 {
		s.world.now = s.world.now.Add(2 * graceTime)
		x.closer.begin(s.world)
	}
	return s.wrong(true)
}

// wrong says what must not be.
func (s *state) wrong(settled bool) string {
	var lines []string
	for _, f := range s.world.judge(settled) {
		if s.sc.allow == nil || !s.sc.allow(s.world, f, settled) {
			lines = append(lines, "     "+f)
		}
	}
	if lines == nil {
		return ""
	}
	for _, p := range slices.SortedFunc(maps.Keys(s.world.manifests), func(a, b segment.Partition) int { return strings.Compare(a.Topic, b.Topic) }) {
		lines = append(lines, fmt.Sprintf("     manifest of %s: %s", p, s.world.life(p)))
	}
	return strings.Join(lines, "\n") + "\n"
}
