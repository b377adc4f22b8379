package offload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"korvet-offload/segment"
)

// scanners is how many manifests are read whole, and streams looked at, at
// once. The client sends concurrent commands in one pipeline, so this hides the
// round trip; it does not open connections.
const scanners = 64

// clockJump is by how much the Redis clock may run apart from this host's
// monotonic clock between two passes. Beyond it one of them was set, or
// another server answers, and ages mean nothing for once.
const (
	clockJump    = time.Hour
	clockSettles = time.Hour
)

// Scan is what Redis says at the start of a pass.
type Scan struct {
	At         time.Time // by the Redis server's clock
	Topics     []TopicState
	Partitions []PartitionScan // of the topics that are worked on, in their order
	Clock      error           // why this pass must not delete anything; nil = it may
	Registry   error           // why it must not delete anything of a topic; nil = it may
	Paused     segment.Pauses  // what must not be changed at all

	notes    []note
	strays   []stray        // streams that came back after they were dropped
	parked   func(Job) bool // says whether a job waits; nil = none does
	unlooked int            // segments whose streams it was not looked for, though it was for others
}

// PartitionScan is one partition and what its manifest holds; Err says why
// that could not be read.
type PartitionScan struct {
	Partition segment.Partition
	Topic     TopicState
	Active    []segment.Stored // the entries that are not settled, in their order
	Alien     []string         // fields that are no segment id
	Empty     bool             // there is no manifest
	// Streams is what was measured of the streams of active segments. Of an
	// empty manifest, number 0 stands for the stream under the partition's own key.
	Streams map[segment.Number]segment.OpenStream
	Base    int64 // entries under the partition's own key, while the first segment has another one
	Err     error

	index   *index
	missing map[segment.Number]error // why a sealed segment can't be copied, where it was looked for
}

// Totals sums up one partition.
type Totals struct {
	Open, Sealed, Remote, Both, Deleting, Illegal int // as in Counts

	Messages int64 // of the REMOTE segments
	Bytes    int64 // of their objects
	Oldest   int64 // epoch ms, when the sealed LOCAL segment that has waited longest was sealed; 0 = none, or not known
}

// Totals sums up what the partition holds.
func (p *PartitionScan) Totals() Totals {
	t := Totals{Illegal: len(p.Alien)}
	if x := p.index; x != nil {
		t.Both = len(x.present.list)
		t.Remote = t.Both + len(x.gone.list)
		t.Messages = x.gone.messages + x.present.messages
		t.Bytes = x.gone.objects + x.present.objects
	}
	for _, s := range p.Active {
		switch e := s.Entry; {
		case s.Err != nil:
			t.Illegal++
		case e.State == segment.Open:
			t.Open++
		case e.State == segment.Deleting:
			t.Deleting++
		case e.Tier == segment.Remote:
			t.Remote++
			t.Both++
			t.Messages += max(0, e.Count)
			if e.Object != nil {
				t.Bytes += e.Object.Bytes
			}
		default:
			t.Sealed++
			if e.SealedAt != 0 && (t.Oldest == 0 || e.SealedAt < t.Oldest) {
				t.Oldest = e.SealedAt
			}
		}
	}
	return t
}

// memory is what a worker keeps between passes beside the parking. It is
// dropped whenever leadership changes: the manifests are the truth.
type memory struct {
	indexes  map[segment.Partition]*index
	ids      map[string]string // topic -> UUID
	gone     map[string]bool   // topics that were not in the registry at the last pass
	known    map[string]string // records as they are in Redis; nil = not read yet
	registry int               // topics in the registry at the last pass; -1 = not known
	clocks   clocks
	recalled recall
	dropped  []dropped
	sharing  sharing
}

// clocks are the two clocks, as they were read.
type clocks struct {
	redis, here           time.Time     // the last time
	firstRedis, firstHere time.Time     // the first time
	offset                time.Duration // by which they have moved apart, when that was believed last
	jumped                time.Time     // by this host's clock; zero = it is believed
}

func newMemory() *memory {
	return &memory{indexes: map[segment.Partition]*index{}, ids: map[string]string{}, gone: map[string]bool{}, registry: -1, recalled: recall{}}
}

// Scan reads the registry and what has to be known of every partition that is
// worked on, by whichever instance, and looks whether what is to be copied is
// there. A manifest that can't be read is noted and stops no other; an error
// means that Redis as a whole did not answer.
func (w *Worker) Scan(ctx context.Context) (Scan, error) {
	s, err := w.scan(ctx, nil)
	if err == nil {
		err = w.lookForSources(ctx, &s)
	}
	return s, err
}

// scan is Scan for the partitions of a share; nil = all.
func (w *Worker) scan(ctx context.Context, share Share) (Scan, error) {
	var mine terms
	if share != nil {
		mine = share.Terms()
	}
	here := w.now()
	now, err := w.ports.Clock.Now(ctx)
	if err != nil {
		return Scan{}, fmt.Errorf("read the redis clock: %w", err)
	}
	topics, err := w.ports.Registry.Topics(ctx)
	if err != nil {
		return Scan{}, fmt.Errorf("read the topic registry: %w", err)
	}
	if w.memory.known == nil || share != nil || w.memory.recalled.absent(topics) { // others write there too
		if w.memory.known, err = w.ports.Known.Known(ctx); err != nil {
			return Scan{}, fmt.Errorf("read the topics that were offloaded before: %w", err)
		}
	}
	paused, err := ReadPauses(ctx, w.ports.Pauses)
	if err != nil {
		return Scan{}, err
	}
	lost := w.memory.recalled.look(topics, w.memory.known)
	s := Scan{At: now, Paused: paused, Clock: w.memory.clocks.read(now, here), Registry: cmp.Or(lost, w.memory.registryDoubt(topics)), parked: w.parked.waits}
	r := newRoster(topics, w.memory.known, s.Clock != nil || s.Registry != nil, w.cfg, now)
	s.Topics = r.states
	for i, t := range s.Topics {
		s.Topics[i].Elsewhere = !mine.whole(t)
	}
	w.memory.registry = inRegistry(topics)
	s.Partitions = w.partitions(s.Topics, mine)
	s.notes = s.myNotes(r.notes)
	if lost != nil {
		s.notes = w.memory.recalled.withoutRecalled(s.notes, topics)
	}
	w.memory.keepOnly(s.Partitions)
	if err := w.readManifests(ctx, s.Partitions, now); err != nil {
		return s, err
	}
	if err := w.measure(ctx, s.Partitions); err != nil {
		return s, err
	}
	s.strays, err = w.lookForStrays(ctx)
	return s, err
}

// read notes what the two clocks say, and says why ages mean nothing now. A
// clock that has jumped is believed again when it has jumped back, or has gone on
// steadily for clockSettles: whoever has set it wrongly may still notice.
func (c *clocks) read(now, here time.Time) error {
	if c.here.IsZero() {
		c.firstRedis, c.firstHere = now, here
	}
	offset := now.Sub(c.firstRedis) - here.Sub(c.firstHere) // the latter is monotonic
	moved := (offset - c.offset).Round(time.Second)
	leap := (now.Sub(c.redis) - here.Sub(c.here)).Abs() > clockJump
	c.redis, c.here = now, here
	switch {
	case moved.Abs() <= clockJump:
		c.offset, c.jumped = offset, time.Time{} // it may drift
		return nil
	case c.jumped.IsZero() || leap:
		c.jumped = here
	case here.Sub(c.jumped) >= clockSettles:
		c.offset, c.jumped = offset, time.Time{}
		return nil
	}
	return fmt.Errorf("%w: the redis clock has moved by %s against this host's; nothing is deleted until it has moved back, or has been steady for %s",
		errClock, moved, clockSettles)
}

// registryDoubt says why nothing of a topic may be deleted in this pass.
func (m *memory) registryDoubt(topics []segment.Topic) error {
	if inRegistry(topics) > 0 || m.registry == 0 {
		return nil
	}
	for name, raw := range m.known {
		if r, err := parseRecord(name, raw); err == nil && r.RemovedAt == 0 && !declared(topics, name) {
			return fmt.Errorf("%w: it reads as empty, and topics were offloaded before, %s among them; nothing of a topic is deleted in this pass",
				errRegistry, name)
		}
	}
	return nil
}

func declared(topics []segment.Topic, name string) bool {
	for _, t := range topics {
		if !t.Plain && t.Name == name {
			return true
		}
	}
	return false
}

// partitions lists what is worked on. Of a shard that was another instance's
// since the last pass nothing is remembered.
func (w *Worker) partitions(states []TopicState, mine terms) []PartitionScan {
	defer w.memory.sharing.begin(mine, states)
	var parts []PartitionScan
	for _, s := range states {
		if s.Topic.Err != nil || s.Phase == "" || s.Phase == Abandoned {
			continue
		}
		if w.memory.ids[s.Topic.Name] != s.Topic.Settings.ID { // made anew under the same name
			w.memory.forget(s.Topic.Name)
			w.memory.ids[s.Topic.Name] = s.Topic.Settings.ID
		}
		w.memory.back(s)
		for n := range s.Topic.Settings.Partitions {
			p := s.Topic.Partition(n)
			shard := func(shards int) int { return s.shard(p, shards) }
			if !mine.owns(shard) {
				continue
			}
			if !w.memory.sharing.kept(mine, shard) {
				delete(w.memory.indexes, p)
			}
			parts = append(parts, PartitionScan{Topic: s, Partition: p})
		}
	}
	return parts
}

func (m *memory) forget(topic string) {
	for p := range m.indexes {
		if p.Topic == topic {
			delete(m.indexes, p)
		}
	}
	m.dropped = slices.DeleteFunc(m.dropped, func(d dropped) bool { return d.partition.Topic == topic })
}

// keepOnly lets go of the partitions that are no longer worked on, or no longer
// by this instance.
func (m *memory) keepOnly(parts []PartitionScan) {
	there := make(map[segment.Partition]bool, len(parts))
	for _, p := range parts {
		there[p.Partition] = true
	}
	for p := range m.indexes {
		if !there[p] {
			delete(m.indexes, p)
		}
	}
}

// readManifests brings the indexes up to date, and copies what a plan needs.
func (w *Worker) readManifests(ctx context.Context, parts []PartitionScan, now time.Time) error {
	whole, err := w.peek(ctx, parts, now)
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(scanners)
	read := make([]*index, len(parts))
	for _, i := range whole {
		if gctx.Err() != nil {
			break
		}
		g.Go(func() error {
			var err error
			read[i], err = w.readWhole(gctx, parts[i].Partition, now)
			parts[i].Err = err
			if err != nil && (gctx.Err() != nil || errors.Is(err, ErrRedisDown)) {
				return err
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, i := range whole {
		if read[i] != nil {
			w.memory.indexes[parts[i].Partition] = read[i]
			w.watchLast(parts[i].Partition, read[i])
		}
	}
	for i := range parts {
		if parts[i].Err == nil {
			parts[i].show(w.memory.indexes[parts[i].Partition])
		}
	}
	return nil
}

func (p *PartitionScan) show(x *index) {
	p.index, p.Active, p.Alien = x, x.active, x.alien
	p.Empty = x.fields() == 0
}

// peek asks for the active entries of the manifests that are known, and
// returns the places of those that have to be read whole.
func (w *Worker) peek(ctx context.Context, parts []PartitionScan, now time.Time) (whole []int, err error) {
	var at []int
	var q []segment.Peek
	for i := range parts {
		x := w.memory.indexes[parts[i].Partition]
		if x == nil || !w.now().Before(x.until) {
			whole = append(whole, i)
			continue
		}
		at, q = append(at, i), append(q, x.question(parts[i].Partition))
	}
	answers, err := w.ports.Manifests.Peek(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	for k, a := range answers {
		i := at[k]
		x := w.memory.indexes[q[k].Partition]
		switch {
		case a.Err != nil:
			parts[i].Err = fmt.Errorf("read the manifest of %s: %w", q[k].Partition, a.Err)
			x.stale()
		case !x.answer(q[k], a, now.UnixMilli()):
			whole = append(whole, i)
		}
	}
	return whole, nil
}

// readTries bounds how often a manifest is read that does not hold still.
const readTries = 3

func (w *Worker) readWhole(ctx context.Context, p segment.Partition, now time.Time) (*index, error) {
	for range readTries {
		r := reading{now: now.UnixMilli()}
		fields, err := w.ports.Manifests.Each(ctx, p, r.field)
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", p, err)
		}
		if x, ok := r.index(fields, w.now().Add(w.untilWhole())); ok {
			return x, nil
		}
	}
	return nil, fmt.Errorf("read the manifest of %s: %w", p, errTorn)
}

// untilWhole is between three quarters of fullEvery and the whole.
func (w *Worker) untilWhole() time.Duration {
	return fullEvery - time.Duration(w.jitter()*float64(fullEvery/4))
}
