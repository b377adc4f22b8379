package test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// The same life with producers that hold on to sealed segments, within the
// seal grace and far beyond local retention, with somebody who deletes
// entries, with connections that are cut, and with workers that are killed at
// random, two of them at once now and then: nothing that was acknowledged and
// not deleted is lost.
//
//fault:crash | The worker dies at any moment | SIGKILL some ten times in twenty seconds, at random | No acknowledged message is lost, altered or found twice
//fault:leaders | The lease is taken away from a leader that goes on | The lease key is deleted beside a running worker and another one is started | No acknowledged message is lost, altered or found twice
//fault:redis | Connections are cut while scripts run | CLIENT KILL of the worker's user at random moments | What was done twice, or not at all, loses nothing
//fault:late-data | Producers append to segments that are sealed, copied or dropped | Producers that hold on to a segment for up to its total retention | A message is in the object, in the stream, or in a stray stream that is reported
//fault:late-data | Somebody else deletes entries of a segment in any phase | XDEL and XTRIM of random entries | Nothing goes but what was deleted
func TestLifeWithTrouble(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	l := newLife(t, newRig(t))
	l.redis.Exec("ACL", "SETUSER", "worker", "on", ">pw", "~*", "+@all")
	l.env = append(l.env, "KORVET_REDIS_URI="+l.redis.UserURI("worker", "pw"))
	w := &workers{life: l, random: rand.New(rand.NewPCG(seed, 0))}
	w.start()
	producers := l.everywhere()
	for i, holds := range []time.Duration{lifeSealGrace * 2 / 3, lifeLocal, lifeLocal + 3*time.Second} {
		producers = append(producers, &broker.Producer{Partition: l.parts[i], Seed: seed + uint64(i), Batch: 2, Pace: 50 * time.Millisecond, Reread: 3, HoldsOn: holds})
	}
	for i := range 4 { // these come back when the stream has been dropped
		producers = append(producers, &broker.Producer{Partition: l.parts[0], Seed: seed + uint64(10+i), Batch: 2, Pace: 50 * time.Millisecond,
			Reread: 1, HoldsOn: lifeRetention, Silent: true})
	}
	l.begin(producers...)
	over := after(20 * time.Second)
	thief := rand.New(rand.NewPCG(seed, 1))
	for !over() {
		w.kill()
		for range 5 {
			l.deleteSome(thief, 3)
		}
	}
	l.end()
	await(t, "a last worker has had some time", time.Minute, after(4*time.Second))
	w.stop()
	v := l.verify(checker.Late, checker.Stray, checker.Orphan) // reported, or seen to be
	t.Logf("%d kills, %d of a leader beside another; %+v; seen %v", w.kills, w.twos, v, l.watch.steps)
	if w.kills < 10 || w.twos == 0 {
		t.Errorf("%d kills, %d leaders beside another", w.kills, w.twos)
	}
	if v.OnStore == 0 || v.Excused["expired"] == 0 || v.Excused["deleted"] == 0 || len(v.strays) == 0 {
		t.Errorf("that was no trouble: %+v", v)
	}
	l.mustReport(v, w.logs)
}

// workers are killed and started again.
type workers struct {
	*life
	random      *rand.Rand
	running     []*process
	logs        []string
	kills, twos int
}

func (w *workers) start() { w.running = append(w.running, w.life.start("run")) }

// kill waits for a random moment, kills the worker and starts another, having
// cut its connections before, which may lose the answers to its scripts. Its
// lease would lapse by itself; one time in three it is taken away from the
// worker while it runs, so that another leads before it knows.
func (w *workers) kill() {
	w.pause(800)
	w.redis.Exec("CLIENT", "KILL", "USER", "worker")
	w.pause(800)
	if w.random.IntN(3) == 0 {
		w.redis.Exec("DEL", w.layout.LeaseKey())
		w.start()
		w.twos++
		w.pause(600)
	}
	for _, p := range w.running {
		p.kill()
		w.kills++
		w.logs = append(w.logs, p.log())
	}
	w.redis.Exec("DEL", w.layout.LeaseKey()) // or wait for it to lapse
	w.running = nil
	w.start()
}

// pause waits for a random time, in milliseconds at most.
func (w *workers) pause(most int) {
	d := time.Duration(w.random.IntN(most)) * time.Millisecond
	await(w.t, "a random time passes", time.Minute, after(d))
}

func (w *workers) stop() {
	for _, p := range w.running {
		p.signal(syscall.SIGTERM)
		if code := p.wait(w.t, 20*time.Second); code != 0 {
			w.t.Errorf("exit %d\n%s", code, p.log())
		}
		w.logs = append(w.logs, p.log())
	}
}

// deleteSome deletes entries of a random stream, by id or, now and then, from
// its beginning, and notes that first.
func (l *life) deleteSome(random *rand.Rand, most int) {
	sources := l.books.Sources()
	if len(sources) == 0 {
		return
	}
	s := sources[random.IntN(len(sources))]
	ids := slices.SortedFunc(maps.Keys(l.books.Acks(s)), segment.ID.Compare)
	trim := random.IntN(8) == 0
	if !trim {
		random.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	}
	ids = ids[:min(most, len(ids))]
	args := []string{"XDEL", s.Key}
	for _, id := range ids {
		l.books.Deleted(s, id)
		args = append(args, id.String())
	}
	if trim {
		args = []string{"XTRIM", s.Key, "MINID", "=", ids[len(ids)-1].String()}
	}
	l.redis.Exec(args...)
}

// mustReport checks that a stream was reported where no reader finds all that
// is in it: one that is not what was copied, and one that came back after it
// was dropped. Of the latter, once its entry says GONE, a worker that was
// started since does not know, until it is to delete the object, which it then
// does not.
func (l *life) mustReport(v verdict, logs []string) {
	l.t.Helper()
	all := strings.Join(logs, "\n")
	changed := func(key string) bool { return strings.Contains(all, "stream "+key+" is not what was copied") }
	for key, n := range v.strays {
		if strings.Contains(all, "stray stream: "+key+" has ") || changed(key) {
			continue
		}
		entry := l.entryAt(key)
		l.t.Logf("stream %s, %d messages, was not reported: %s", key, n, entry)
		if !strings.Contains(entry, `"GONE"`) {
			l.t.Errorf("stream %s was not reported before its object went", key)
		}
	}
	for key, n := range v.late {
		if !changed(key) {
			l.t.Errorf("stream %s has %d messages more than its object, and nobody was told", key, n)
		}
	}
}

// entryAt is the manifest entry of a segment of topic orders, by its stream.
func (l *life) entryAt(key string) string {
	manifest := strings.Replace(key[:strings.LastIndex(key, ":")], ":local:", ":manifest:", 1)
	return l.redis.Exec("HGET", manifest, key[strings.LastIndex(key, ":")+1:])
}
