package redisstore

import (
	"math/rand/v2"
	"testing"
	"time"
)

// model is a server and a network as the pacer sees them.
type model struct {
	entryBytes int
	perEntry   time.Duration // of the server's time
	rtt        time.Duration
	noise      func(page int) time.Duration // on top of the wait
}

// run feeds the pacer pages of the model and returns the COUNTs it chose.
func (m model) run(p *pacer, pages int) []int {
	counts := make([]int, pages)
	for i := range counts {
		counts[i] = p.count
		n := p.next()
		wait := m.rtt + time.Duration(n)*m.perEntry
		if m.noise != nil {
			wait += m.noise(i)
		}
		p.done(n, n*m.entryBytes, wait, m.rtt)
	}
	return counts
}

func TestPacerSettles(t *testing.T) {
	us := time.Microsecond
	random := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		model
		limit     int
		low, high int // where COUNT settles
	}{
		"small entries near by":     {model{200, 800 * time.Nanosecond, 50 * us, nil}, 10_000, 200, 260},
		"small entries far away":    {model{200, 800 * time.Nanosecond, 2 * time.Millisecond, nil}, 10_000, 2_300, 2_500},
		"a fast server":             {model{200, 350 * time.Nanosecond, 30 * us, nil}, 10_000, 260, 350},
		"1 KiB entries":             {model{1100, 1200 * time.Nanosecond, 1 * time.Millisecond, nil}, 10_000, 940, 960},
		"64 KiB entries":            {model{65 << 10, 20 * us, 1 * time.Millisecond, nil}, 10_000, 15, 16},
		"5 MiB entries":             {model{5 << 20, time.Millisecond, 50 * us, nil}, 10_000, 1, 1},
		"a slow server":             {model{200, 100 * us, 50 * us, nil}, 10_000, 1, 2},
		"page-size below all":       {model{200, 800 * time.Nanosecond, 50 * us, nil}, 100, 100, 100},
		"page-size 1":               {model{200, 800 * time.Nanosecond, 50 * us, nil}, 1, 1, 1},
		"no round trip known":       {model{200, 800 * time.Nanosecond, 0, nil}, 10_000, 30, 65},
		"less than nothing to wait": {model{100, -time.Microsecond, 50 * us, nil}, 10_000, 10_000, 10_000},
		"every other page is late": {model{200, 800 * time.Nanosecond, 50 * us, func(i int) time.Duration {
			return time.Duration(i%2) * 20 * time.Millisecond
		}}, 10_000, 200, 260},
		"noise of up to 3 ms": {model{200, 800 * time.Nanosecond, 1 * time.Millisecond, func(int) time.Duration {
			return time.Duration(random.Int64N(int64(3 * time.Millisecond)))
		}}, 10_000, 900, 2_700},
		"a busy server, near by": {model{200, 800 * time.Nanosecond, 50 * us, func(int) time.Duration {
			return 1500 * us
		}}, 10_000, 200, 260},
		"a slow and busy server": {model{200, 20 * us, 50 * us, func(int) time.Duration { return 1500 * us }}, 10_000, 5, 14},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPacer(c.limit)
			for i, n := range c.run(&p, 100) {
				if n < 1 || n > c.limit {
					t.Fatalf("page %d: COUNT %d", i, n)
				}
				if i > 40 && (n < c.low || n > c.high) {
					t.Fatalf("page %d: COUNT %d, want %d to %d", i, n, c.low, c.high)
				}
			}
		})
	}
}

func TestPacerBeginsSmallAndGrowsInSteps(t *testing.T) {
	p := newPacer(10_000)
	counts := model{entryBytes: 100, rtt: time.Millisecond}.run(&p, 6)
	if counts[0] != firstCount {
		t.Errorf("first COUNT %d, want %d", counts[0], firstCount)
	}
	for i := 1; i < len(counts); i++ {
		if counts[i] > growth*counts[i-1] {
			t.Errorf("COUNTs %v: more than %d-fold in one step", counts, growth)
		}
	}
}

func TestPacerOneSlowPageChangesNothing(t *testing.T) {
	p := newPacer(10_000)
	m := model{entryBytes: 200, perEntry: 800, rtt: 50 * time.Microsecond}
	before := m.run(&p, 20)[19]
	p.done(p.count, p.count*200, time.Second, m.rtt)
	if after := p.count; after < before*9/10 {
		t.Errorf("COUNT fell from %d to %d after one page that waited", before, after)
	}
}

func TestPacerFollowsSizeDownAtOnceAndUpByHalves(t *testing.T) {
	p := newPacer(10_000)
	model{entryBytes: 100, rtt: time.Millisecond}.run(&p, 10)
	p.done(p.count, p.count*100_000, time.Millisecond, time.Millisecond)
	if p.count > 10 {
		t.Errorf("COUNT %d for entries of 100 kB", p.count)
	}
	small := model{entryBytes: 100, rtt: time.Millisecond}.run(&p, 30)
	if small[1] > 2*small[0]+1 || small[29] < 5_000 {
		t.Errorf("COUNTs %v after the entries became small again", small)
	}
}

func TestPacerAfterACut(t *testing.T) {
	p := newPacer(10_000)
	m := model{entryBytes: 100, perEntry: 100, rtt: time.Millisecond}
	m.run(&p, 10)
	at := p.count
	p.cut()
	if p.count != at/2 {
		t.Errorf("COUNT %d after a cut at %d", p.count, at)
	}
	for i, n := range m.run(&p, cutPages) {
		if n > at/2 {
			t.Fatalf("page %d after the cut: COUNT %d", i, n)
		}
	}
	if m.run(&p, 3); p.count <= at/2 {
		t.Errorf("COUNT %d: never grew again", p.count)
	}
	for range 20 {
		p.cut()
	}
	if p.count != 1 {
		t.Errorf("COUNT %d after 20 cuts", p.count)
	}
}

func TestPacerAfterAReplyThatWasLeft(t *testing.T) {
	p := newPacer(10_000)
	model{entryBytes: 20, perEntry: 100, rtt: time.Millisecond}.run(&p, 10)
	p.done(5_000, maxPage, time.Millisecond, time.Millisecond)
	p.left(3 << 20)
	if p.count != 1 {
		t.Errorf("COUNT %d after an entry of 3 MiB", p.count)
	}
}
