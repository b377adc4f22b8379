package repair

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"testing"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/scrub"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Whatever call fails, and be it the only one, nothing is said to be done.
func TestNoErrorIsPassedOver(t *testing.T) {
	server := redisserver.Start(t)
	for name, c := range map[string]struct {
		kind scrub.Kind
		gone bool
		do   func(r *rig)
	}{
		"recopy":    {scrub.MissingObject, false, func(r *rig) { r.lose(r.path(1, 0)) }},
		"repoint":   {scrub.MissingObject, true, func(r *rig) { r.copyObject(r.path(1, 0), r.path(1, 1)); r.lose(r.path(1, 0)) }},
		"take over": {scrub.Orphan, true, func(r *rig) { r.forget(1) }},
		"unstray":   {scrub.StrayStream, true, func(r *rig) { r.remake(1, 3, 4) }},
	} {
		t.Run(name, func(t *testing.T) {
			r := moved(t, 3, c.gone, server)
			c.do(r)
			restore := r.save()
			for calls := 0; ; calls++ {
				d := &death{calls: calls, once: true}
				steps, err := r.try(r.mortal(d), Options{Yes: true}, r.finding(1, c.kind))
				if !d.did {
					break
				}
				if err == nil && (len(steps) != 1 || steps[0].Result != Failed || !errors.Is(steps[0].Err, errDead)) {
					t.Errorf("call %d has failed: %s", calls, say(steps))
				}
				restore()
			}
		})
	}
}

// shelf is a store with one object.
type shelf struct {
	Store
	info offload.ObjectInfo
	body string
	err  error
}

func (s shelf) Stat(context.Context, string) (offload.ObjectInfo, error) { return s.info, s.err }

func (s shelf) Open(context.Context, string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(s.body)), nil
}

// An object is what was read only if all that the store tells is the same; where it
// tells nothing that changes with the bytes, they are read again.
func TestUnchanged(t *testing.T) {
	sum := sha256.Sum256([]byte("abc"))
	read := File{Path: "p", Size: 3, SHA256: hex.EncodeToString(sum[:])}
	for name, c := range map[string]struct {
		was, now offload.ObjectInfo
		body     string
		want     bool
	}{
		"the same ETag":    {offload.ObjectInfo{Size: 3, ETag: "e"}, offload.ObjectInfo{Size: 3, ETag: "e"}, "xyz", true},
		"another ETag":     {offload.ObjectInfo{Size: 3, ETag: "e"}, offload.ObjectInfo{Size: 3, ETag: "f"}, "abc", false},
		"another size":     {offload.ObjectInfo{Size: 3, ETag: "e"}, offload.ObjectInfo{Size: 4, ETag: "e"}, "abcd", false},
		"the same SHA-256": {offload.ObjectInfo{Size: 3, SHA256: "s"}, offload.ObjectInfo{Size: 3, SHA256: "s"}, "xyz", true},
		"another SHA-256":  {offload.ObjectInfo{Size: 3, SHA256: "s"}, offload.ObjectInfo{Size: 3, SHA256: "t"}, "abc", false},
		"the same bytes":   {offload.ObjectInfo{Size: 3}, offload.ObjectInfo{Size: 3}, "abc", true},
		"other bytes":      {offload.ObjectInfo{Size: 3}, offload.ObjectInfo{Size: 3}, "xyz", false},
	} {
		f := read
		f.ETag, f.told = c.was.ETag, c.was.SHA256
		r := reader{store: shelf{info: c.now, body: c.body}, dir: t.TempDir()}
		if same, err := r.unchanged(t.Context(), &f); same != c.want || err != nil {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
	r := reader{store: shelf{err: offload.ErrObjectMissing}, dir: t.TempDir()}
	if same, err := r.unchanged(t.Context(), &File{Path: "p"}); same || err != nil {
		t.Errorf("gone: %t, %v", same, err)
	}
}

// A file of another segment is none of this one, whatever rows it has.
func TestRowsOfAnotherSegment(t *testing.T) {
	r := moved(t, 1, false)
	body := r.files()[r.path(0, 0)]
	f := File{Size: int64(len(body))}
	of := parquetfile.FileID{StreamKey: r.layout.StreamKey(r.part), Segment: 0}
	if _, err := f.rows(t.Context(), strings.NewReader(body), of, nil, segment.MaxID()); err != nil || f.Contents.Count != perSegment {
		t.Errorf("%v, %+v", err, f.Contents)
	}
	of.Segment = 1
	if _, err := f.rows(t.Context(), strings.NewReader(body), of, nil, segment.MaxID()); !errors.Is(err, parquetfile.ErrOtherSegment) {
		t.Errorf("of segment 1: %v", err)
	}
}

// Bytes that this program would not write are right where the entry tells of them,
// and nowhere else.
func TestBytesThatTheEntryTellsOf(t *testing.T) {
	r := moved(t, 1, true)
	body := []byte(r.files()[r.path(0, 0)])
	of := parquetfile.FileID{StreamKey: r.layout.StreamKey(r.part), Segment: 0}
	at := 0
	for ; at < len(body); at++ { // where it does not show in the rows
		body[at] ^= 1
		f := File{Size: int64(len(body))}
		if _, err := f.rows(t.Context(), bytes.NewReader(body), of, nil, segment.MaxID()); err == nil && f.Contents == contentsOf(r.entry(0)) {
			break
		}
		body[at] ^= 1
	}
	if at == len(body) {
		t.Fatal("each bit shows in the rows")
	}
	r.damage(r.path(0, 0), func([]byte) []byte { return body })
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Leave, Left)
	sum := sha256.Sum256(body)
	r.set(0, func(e *segment.Entry) { e.Object.SHA256 = hex.EncodeToString(sum[:]) })
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.ChecksumMismatch)), Nothing, Healthy)
}

// vanishing is a store whose objects go between the look and the reading.
type vanishing struct{ storePorts }

func (vanishing) Open(context.Context, string) (io.ReadCloser, error) {
	return nil, offload.ErrObjectMissing
}

func TestAnObjectThatGoesAfterTheLookIsMissing(t *testing.T) {
	r := moved(t, 1, false)
	ports := r.ports
	ports.Store = vanishing{storePorts{r.store}}
	steps, err := r.try(ports, Options{}, r.finding(0, scrub.MissingObject))
	if err != nil || r.want(steps, Recopy, Would).Why == "" {
		t.Errorf("%v, %s", err, say(steps))
	}
}

// ending is a store that ends the context when a body was read.
type ending struct {
	storePorts
	end func()
}

func (e ending) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	body, err := e.storePorts.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	all, err := io.ReadAll(body)
	e.end()
	return io.NopCloser(bytes.NewReader(all)), err
}

// That the time is over while an object is looked into is no damage of it.
func TestAnEndInTheMiddleIsNoDamage(t *testing.T) {
	r := moved(t, 1, false)
	ctx, end := context.WithCancel(t.Context())
	ports := r.ports
	ports.Store = ending{storePorts{r.store}, end}
	var steps []Step
	_, err := New(ports, r.layout, Options{SpoolDir: r.spool}).Run(ctx, []scrub.Finding{r.finding(0, scrub.ChecksumMismatch)}, func(s Step) { steps = append(steps, s) })
	if len(steps) != 1 || steps[0].Result != Failed || !errors.Is(steps[0].Err, context.Canceled) {
		t.Errorf("%v, %s", err, say(steps))
	}
}

// leaky is a stream of which a page does not come.
type leaky struct{ Streams }

func (s leaky) Pages(key string, _, _ segment.ID) segment.PageReader {
	return s.Streams.Pages(key, segment.ID{}, idOf(0, 2))
}

func TestAStreamThatDoesNotComeWholeIsNotJudged(t *testing.T) {
	r := moved(t, 1, false)
	r.lose(r.path(0, 0))
	ports := r.ports
	ports.Streams = leaky{r.redis}
	steps, err := r.try(ports, Options{}, r.finding(0, scrub.MissingObject))
	if err != nil || len(steps) != 1 || !errors.Is(steps[0].Err, errUnsteady) {
		t.Errorf("%v, %s", err, say(steps))
	}
}

// A manifest that is none is not one without entries.
func TestAManifestThatIsNoneIsNotJudged(t *testing.T) {
	r := moved(t, 2, true)
	r.server.Exec("DEL", r.manifest())
	r.server.Exec("SET", r.manifest(), "x")
	if steps := r.repair(Options{Yes: true}, r.orphan(1)); len(steps) != 1 || steps[0].Result != Failed {
		t.Error(say(steps))
	}
	if got := r.server.Exec("GET", r.manifest()); got != "x" {
		t.Errorf("it is %q", got)
	}
}

// fleeting is a manifest whose entry goes between the list and the look at it.
type fleeting struct {
	redisPorts
	number segment.Number
}

func (f fleeting) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	a, err := f.redisPorts.Peek(ctx, q)
	for i, n := range q[0].Numbers {
		if err == nil && n == f.number {
			a[0].Raw[i] = ""
		}
	}
	return a, err
}

// Of a neighbor that has just gone nobody knows what it held.
func TestANeighborThatGoesIsUnknown(t *testing.T) {
	r := moved(t, 3, true)
	r.forget(1)
	ports := r.ports
	ports.Manifests = fleeting{redisPorts{r.redis}, 0}
	steps, err := r.try(ports, Options{Yes: true}, r.orphan(1))
	if err != nil || !strings.Contains(r.want(steps, Leave, Left).Why, "nobody knows what segment 0 beside it holds") {
		t.Errorf("%v, %s", err, say(steps))
	}
}

// What a neighbor holds is told by its entry, or by its stream, or by nobody.
func TestWhatANeighborHolds(t *testing.T) {
	r := newRig(t)
	r.server.Exec("XADD", r.key(9), "10-0", "a", "b")
	first, last := segment.ID{Ms: 10}, segment.ID{Ms: 20}
	object := &segment.Object{Path: r.path(7, 0), Bytes: 9, SHA256: strings.Repeat("0", 64)}
	remote := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Object: object, Count: 2, FirstID: first, LastID: last}
	for name, c := range map[string]struct {
		number       segment.Number
		entry        segment.Entry
		known, holds bool
	}{
		"REMOTE":                     {7, remote, true, true},
		"REMOTE, nothing in it":      {7, with(remote, func(e *segment.Entry) { e.Count, e.FirstID, e.LastID = 0, segment.ID{}, segment.ID{} }), false, false},
		"REMOTE, not told":           {9, with(remote, func(e *segment.Entry) { e.Count, e.FirstID, e.LastID = segment.NoCount, segment.ID{}, segment.ID{} }), false, true},
		"OPEN, nothing in it":        {7, segment.NewOpen("", 1), false, false},
		"OPEN":                       {9, segment.NewOpen("", 1), true, true},
		"OPEN, under a key":          {7, segment.NewOpen(r.key(9), 1), true, true},
		"LOCAL, not told, no stream": {7, segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: segment.NoCount}, false, true},
		"LOCAL, nothing in it":       {9, segment.Entry{State: segment.Sealed, Tier: segment.Local}, false, false},
		"a range with nothing in it": {7, segment.Entry{State: segment.Sealed, Tier: segment.Local, Key: "s", From: first, To: last}, true, true},
	} {
		r.server.Exec("HSET", r.manifest(), c.number.String(), string(c.entry.Encode()))
		p := &part{Repairer: New(r.ports, r.layout, Options{}), partition: r.part}
		b, holds, err := p.neighbor(t.Context(), c.number)
		if b.Known != c.known || holds != c.holds || err != nil {
			t.Errorf("%s: known %t, holds %t, %v", name, b.Known, holds, err)
		}
	}
}

func with(e segment.Entry, change func(*segment.Entry)) segment.Entry {
	change(&e)
	return e
}

// A REMOTE entry that names no object is healed from its stream.
func TestAnEntryWithoutAnObject(t *testing.T) {
	r := moved(t, 2, false)
	r.set(0, func(e *segment.Entry) { e.Object = nil })
	r.want(r.repair(Options{Yes: true}, r.finding(0, scrub.IllegalEntry)), Recopy, Done)
	r.wantReadable(0, 1)
}

// hasty are ports where somebody else is faster at the very last moment.
type hasty struct {
	redisPorts
	first func()
}

func (h hasty) Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error) {
	h.first()
	return h.redisPorts.Change(ctx, p, c)
}

func (h hasty) Remove(ctx context.Context, key string, is segment.StreamInfo) (bool, error) {
	h.first()
	return h.redisPorts.Remove(ctx, key, is)
}

// What somebody else changes between the last look and the change is not said to be
// healed.
func TestSomebodyElseIsFasterAtTheLastMoment(t *testing.T) {
	r := moved(t, 2, false)
	r.lose(r.path(0, 0))
	ports := r.ports
	ports.Manifests = hasty{redisPorts{r.redis}, func() { r.set(0, func(e *segment.Entry) { e.Rev++ }) }}
	steps, err := r.try(ports, Options{Yes: true}, r.finding(0, scrub.MissingObject))
	r.want(steps, Recopy, LostRace)
	if e := r.entry(0); err != nil || e.Tier != segment.Remote {
		t.Errorf("%v, the entry is %s", err, e.Encode())
	}

	r = moved(t, 2, true, r.server)
	r.remake(1, 3, 4)
	ports = r.ports
	ports.Removals = hasty{redisPorts{r.redis}, func() { r.server.Exec("XADD", r.key(1), idOf(1, 8).String(), "a", "b") }}
	steps, err = r.try(ports, Options{Yes: true}, r.finding(1, scrub.StrayStream))
	r.want(steps, Unstray, LostRace)
	if n := len(r.streamSums(1)); err != nil || n != 3 {
		t.Errorf("%v, %d messages", err, n)
	}
}
