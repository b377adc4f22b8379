package offload

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"korvet-offload/segment"
)

// ask is one stream to be measured, and for what.
type ask struct {
	part   *PartitionScan
	number segment.Number
	set    func(segment.StreamSize)
	idle   bool // nothing depends on it but what is shown: an error is none of the segment's
}

// measure finds out how large streams are, as far as rolling and retention
// need it. Redis is asked in few round trips, and reads no entry but the ends
// of streams whose age or beginning nobody has written down.
func (w *Worker) measure(ctx context.Context, parts []PartitionScan) error {
	var q []segment.SizeQuery
	var asks []ask
	for i := range parts {
		p := &parts[i]
		if p.Err != nil {
			continue
		}
		p.Streams = map[segment.Number]segment.OpenStream{}
		add := func(key string, memory bool, a ask) {
			q = append(q, segment.SizeQuery{Key: key, Memory: memory})
			a.part = p
			asks = append(asks, a)
		}
		w.wanted(p, add)
	}
	answers, err := w.ports.Streams.Sizes(ctx, q)
	if err != nil {
		return fmt.Errorf("measure streams: %w", err)
	}
	for i, a := range answers {
		if a.Err != nil && asks[i].idle {
			continue
		}
		if a.Err != nil {
			asks[i].part.spoil(asks[i].number, fmt.Errorf("measure stream %s: %w", q[i].Key, a.Err))
			continue
		}
		asks[i].set(a)
	}
	return w.lookAtStreams(ctx, parts)
}

// wanted says which of a partition's streams have to be measured.
func (w *Worker) wanted(p *PartitionScan, add func(key string, memory bool, a ask)) {
	settings := p.Topic.Topic.Settings
	bytes := settings.AverageMessageBytes == 0
	rolls := w.rolls(p)
	if p.Empty && rolls {
		add(w.layout.StreamKey(p.Partition), false, ask{set: p.note(0)})
	}
	if rolls && !p.Partition.Plain && p.isNew() {
		add(w.layout.StreamKey(p.Partition), false, ask{set: func(s segment.StreamSize) { p.Base = s.Length }})
	}
	w.wantedActive(p, add)
	if !bytes || settings.Local().Bytes < 0 || p.index.present.unmeasured == 0 || p.Partition.Plain {
		return
	}
	for _, s := range p.index.present.list {
		if s.local < 0 {
			add(w.key(p.Partition, s.number, s.key), true, ask{number: s.number, set: func(size segment.StreamSize) {
				p.index.present.measured(s.number, size.Bytes)
			}})
		}
	}
}

// wantedActive says which of the streams of active segments have to be measured.
func (w *Worker) wantedActive(p *PartitionScan, add func(key string, memory bool, a ask)) {
	before := p.index.sizes
	p.index.sizes = nil
	settings := p.Topic.Topic.Settings
	bytes, local := settings.AverageMessageBytes == 0, settings.Local().Bytes >= 0
	for _, s := range p.Active {
		e, key := s.Entry, w.key(p.Partition, s.Number, s.Entry.Key)
		size, known := before[s.Number]
		switch {
		case s.Err != nil || p.Partition.Plain || e.State == segment.Deleting:
		case e.State == segment.Open && (w.rolls(p) || local || settings.RetentionBytes >= 0):
			add(key, bytes, ask{number: s.Number, set: p.note(s.Number)})
		case e.State == segment.Open || !bytes && e.Count >= 0 || e.Tier == segment.Remote && !local:
		case known:
			p.sealedSize(s.Number, size)
		default:
			add(key, bytes, ask{number: s.Number, idle: !local || !bytes, set: func(size segment.StreamSize) {
				p.sealedSize(s.Number, segment.OpenStream{Length: size.Length, Bytes: size.Bytes})
			}})
		}
	}
}

// note keeps the size of a stream for this scan.
func (p *PartitionScan) note(n segment.Number) func(segment.StreamSize) {
	return func(s segment.StreamSize) {
		p.Streams[n] = segment.OpenStream{Length: s.Length, Bytes: s.Bytes}
	}
}

// sealedSize notes how large the stream of a sealed segment is, and remembers
// it: it is asked for once, since nothing is to be added. A stream that is not
// there is looked for again.
func (p *PartitionScan) sealedSize(n segment.Number, size segment.OpenStream) {
	p.Streams[n] = size
	if size.Length == 0 {
		return
	}
	if p.index.sizes == nil {
		p.index.sizes = map[segment.Number]segment.OpenStream{}
	}
	p.index.sizes[n] = size
}

// isNew says whether all that the partition has is its first segment, under
// the usual key.
func (p *PartitionScan) isNew() bool {
	return p.index.fields() == 1 && len(p.Active) == 1 && p.Active[0].Err == nil && p.Active[0].Number == 0 &&
		p.Active[0].Entry.State == segment.Open && p.Active[0].Entry.Key == ""
}

// rolls says whether this worker seals the partition's segments.
func (w *Worker) rolls(p *PartitionScan) bool {
	return (w.cfg.Roll || p.Partition.Plain) && p.Topic.Works()
}

// key is the stream of a segment.
func (w *Worker) key(p segment.Partition, n segment.Number, own string) string {
	if own != "" {
		return own
	}
	return w.layout.SegmentKey(p, n)
}

// spoil notes that a stream can't be measured: its segment is then not worked
// on, as if its entry were illegal.
func (p *PartitionScan) spoil(n segment.Number, err error) {
	for i := range p.Active {
		if p.Active[i].Number == n && p.Active[i].Err == nil {
			p.Active[i].Err = err // the next scan reads the entry anew
			return
		}
	}
	if p.Empty {
		p.Err = err
	}
}

// lookAtStreams reads what Sizes does not tell: the first entry of an OPEN
// segment that does not say when it was opened, and all of plain streams.
func (w *Worker) lookAtStreams(ctx context.Context, parts []PartitionScan) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(scanners)
	for i := range parts {
		p := &parts[i]
		if p.Err != nil {
			continue
		}
		s, ok := p.open()
		if !ok || !p.Partition.Plain && (s.Entry.OpenedAt != 0 || !w.rolls(p)) {
			continue
		}
		g.Go(func() error {
			err := w.lookAtStream(ctx, p, s)
			if err == nil || ctx.Err() != nil || errors.Is(err, ErrRedisDown) {
				return err
			}
			p.spoil(s.Number, err)
			return nil
		})
	}
	return g.Wait()
}

func (w *Worker) lookAtStream(ctx context.Context, p *PartitionScan, s segment.Stored) error {
	info, err := w.ports.Streams.StreamInfo(ctx, w.key(p.Partition, s.Number, s.Entry.Key))
	if err != nil {
		return err
	}
	if p.Partition.Plain {
		return w.measurePlain(ctx, p, s, info)
	}
	o := p.Streams[s.Number]
	o.FirstMs = int64(min(info.FirstID.Ms, 1<<62)) //nolint:gosec // 62 bits
	p.Streams[s.Number] = o
	return nil
}

// open is the segment that producers append to: the OPEN one, if it is also
// the last. Values that are no entries do not count, unless a later program may
// have written them.
func (p *PartitionScan) open() (segment.Stored, bool) {
	for _, s := range slices.Backward(p.Active) {
		if s.Err != nil && !errors.Is(s.Err, segment.ErrEntryVersion) {
			continue
		}
		settled := max(p.index.gone.highest(), p.index.present.highest())
		return s, s.Err == nil && s.Entry.State == segment.Open && s.Number >= settled
	}
	return segment.Stored{}, false
}

// measurePlain estimates how much of a plain stream is in its open range, and
// so in the others.
func (w *Worker) measurePlain(ctx context.Context, p *PartitionScan, s segment.Stored, info segment.StreamInfo) error {
	if info.Length > 0 && info.FirstID.Compare(s.Entry.From) < 0 && len(p.Active) == 1 && len(p.index.present.list) == 0 {
		return fmt.Errorf("%w: stream %s begins with %s, below %s, where its first segment begins: it was made anew with smaller ids; what lies below is in no segment, is never copied, and keeps all behind it from being trimmed; copy it by hand and trim it",
			errAmbiguous, p.Partition, info.FirstID, s.Entry.From)
	}
	o := segment.OpenStream{Length: p.inOpenRange(s, info), Bytes: -1}
	if p.Topic.Topic.Settings.AverageMessageBytes == 0 && info.Length > 0 {
		a, err := w.ports.Streams.Sizes(ctx, []segment.SizeQuery{{Key: p.Partition.Topic, Memory: true}})
		if err == nil {
			err = a[0].Err
		}
		if err != nil {
			return fmt.Errorf("measure stream %s: %w", p.Partition, err)
		}
		o.Bytes = share(a[0].Bytes, o.Length, info.Length)
		w.measureRanges(p, a[0].Bytes, info.Length)
	}
	p.Streams[s.Number] = o
	return nil
}

// inOpenRange is how many entries the open range has. What was added since it
// began is known from Redis 7.0 on; before, it is what the other ranges don't
// account for.
func (p *PartitionScan) inOpenRange(s segment.Stored, info segment.StreamInfo) int64 {
	if !info.Exists || info.LastID.Compare(s.Entry.From) < 0 {
		return 0 // nothing has come since
	}
	n := info.Length - p.index.present.messages
	for _, other := range p.Active {
		if other.Err == nil && other.Number != s.Number {
			n -= max(0, other.Entry.Count)
		}
	}
	if src := s.Entry.Source; src != nil && src.Added >= 0 && info.EntriesAdded >= 0 {
		if n = info.EntriesAdded - src.Added; n < 0 { // lost and made anew
			n = info.Length
		}
	}
	return min(max(n, 1), info.Length)
}

// measureRanges gives each range of a plain stream its share of the whole.
func (w *Worker) measureRanges(p *PartitionScan, bytes, length int64) {
	for _, s := range p.Active {
		if s.Err == nil && s.Entry.State != segment.Open {
			p.Streams[s.Number] = segment.OpenStream{Length: max(0, s.Entry.Count), Bytes: share(bytes, max(0, s.Entry.Count), length)}
		}
	}
	if p.Topic.Topic.Settings.Local().Bytes < 0 {
		return
	}
	for _, s := range p.index.present.list {
		p.index.present.measured(s.number, share(bytes, s.count, length))
	}
}

// share is the part of bytes that n of all entries take, if they are alike.
func share(bytes, n, all int64) int64 {
	return int64(float64(bytes) * float64(min(n, all)) / float64(all))
}
