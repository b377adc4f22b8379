package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/stage"
	"korvet-offload/segment"
)

// The partitions of a crash life, each with a fate of its own.
const (
	adoptedTopic  = "adopted"  // its whole log is one stream, which becomes segment 0, and expires
	bareTopic     = "bare"     // its broker writes as little as it may into an entry
	lateTopic     = "late"     // entries come late, after the copy
	thinTopic     = "thin"     // the same, and one is deleted
	takenTopic    = "taken"    // something else lies at its first path
	restoredTopic = "restored" // its manifest is put back to before the copy
	quickTopic    = "quick"    // it is past total retention before it can be copied
	awayTopic     = "away"     // it is removed and comes back
	doomedTopic   = "doomed"   // it is removed for good
	plainKey      = "events"   // a plain stream
	countedKey    = "counted"  // one that is cut by number
)

// lifeStep is how much time passes from one pass to the next, by the clock
// that the worker sees: more than each grace.
const lifeStep = 10 * time.Second

// crashLife is a whole life of some partitions, told in scenes. It goes the
// same way every time, and goes on where a worker has died.
type crashLife struct {
	*stage.Stage
	t       *testing.T
	faults  []string // variables of the workers, until one has died of them
	plain   []string // settings of the plain streams
	kept    map[string]string
	deleted map[string]bool // ids that somebody has deleted
	died    bool
	orphans bool // objects that nothing names do not count
}

func newCrashLife(t *testing.T, options ...redisserver.Option) *crashLife {
	t.Helper()
	l := &crashLife{t: t, Stage: stage.New(t, faultyProgram(t), options...), kept: map[string]string{}, deleted: map[string]bool{}}
	l.Env = append(l.Env,
		"KORVET_STORAGE_OFFLOAD_SEAL_GRACE=0",
		"KORVET_STORAGE_OFFLOAD_DELETE_GRACE=5s",
		"KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=5s",
		"KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true",
		"KORVET_STORAGE_OFFLOAD_EXPIRE_UNUPLOADED=expire",
		"KORVET_STORAGE_OFFLOAD_HOLD_PENDING=true",
		"KORVET_STREAMS_0_KEY="+plainKey,
		"KORVET_STREAMS_0_SEGMENT_TIME=1ms",
		"KORVET_STREAMS_1_KEY="+countedKey,
		"KORVET_STREAMS_1_SEGMENT_ENTRIES=3",
	)
	return l
}

// part is the one partition of a topic, or a plain stream.
func part(name string) segment.Partition {
	return segment.Partition{Topic: name, Plain: name == plainKey || name == countedKey}
}

func allParts() (all []segment.Partition) {
	for _, name := range []string{adoptedTopic, bareTopic, lateTopic, thinTopic, takenTopic, restoredTopic, quickTopic, awayTopic, doomedTopic, plainKey, countedKey} {
		all = append(all, part(name))
	}
	return all
}

// scenes are the life: what others do, and then a pass.
func (l *crashLife) scenes() []func() {
	return []func(){l.birth, l.firstMessages, l.beforeTheCopies, l.afterTheCopies, l.whatWasHiddenGrows, l.beforeTheDrops,
		l.topicsGo, l.nothing, l.oneComesBack}
}

// run plays the life to its end. A pass whose worker has died is made again.
func (l *crashLife) run() {
	for _, scene := range l.scenes() {
		scene()
		l.Ahead(lifeStep)
		l.pass()
	}
}

// pass is one pass that is made to its end, by one worker or, if that dies,
// another.
func (l *crashLife) pass() *stage.Process {
	l.t.Helper()
	p := l.Once(append(l.faults, l.plain...)...)
	if p.Killed() && !l.died {
		l.died, l.faults = true, nil
		l.FreeLease()
		p = l.Once(l.plain...)
	}
	if code := p.Code(); code != 0 && code != 1 {
		l.t.Fatalf("a pass ends with %d; its log:\n%s", code, p.Log())
	}
	return p
}

func (l *crashLife) nothing() {}

func (l *crashLife) birth() {
	for _, topic := range []string{adoptedTopic, bareTopic, lateTopic, thinTopic, takenTopic, restoredTopic, awayTopic, doomedTopic} {
		l.Topic(topic, "segment.ms", "1", "retention.ms", "-1")
	}
	l.Topic(quickTopic, "segment.ms", "1", "retention.ms", "1")
	l.MustAppend(part(adoptedTopic), l.Layout.StreamKey(part(adoptedTopic)), 5)
	l.MustAppend(part(bareTopic), l.Layout.SegmentKey(part(bareTopic), 0), 3)
	l.Do("HSET", l.Layout.ManifestKey(part(bareTopic)), "0", `{"state":"OPEN","tier":"LOCAL","broker":{"epoch":3}}`)
	l.put(l.objectPath(part(takenTopic), 0), "not what you think")
	l.MustAppend(part(plainKey), plainKey, 6)
	l.MustAppend(part(countedKey), countedKey, 3)
}

// produce appends to the open segment of each.
func (l *crashLife) produce(names ...string) {
	l.t.Helper()
	for _, name := range names {
		p := part(name)
		if p.Plain {
			l.MustAppend(p, name, 4)
			continue
		}
		for number, raw := range l.Manifest(p) {
			n, _ := segment.ParseNumber(number)
			if e := l.Entry(p, n); e.State == segment.Open {
				l.MustAppend(p, l.keyOf(p, n), 4)
			} else if e.State == "" {
				l.t.Fatalf("entry %s/%s: %s", p, number, raw)
			}
		}
	}
}

func (l *crashLife) keyOf(p segment.Partition, n segment.Number) string {
	if e := l.Entry(p, n); e.Key != "" {
		return e.Key
	}
	return l.Layout.SegmentKey(p, n)
}

func (l *crashLife) firstMessages() {
	l.produce(lateTopic, thinTopic, takenTopic, restoredTopic, quickTopic, awayTopic, doomedTopic, plainKey, countedKey)
}

func (l *crashLife) beforeTheCopies() {
	l.late(quickTopic)
	l.produce(plainKey, awayTopic, doomedTopic)
	l.kept[restoredTopic], _ = l.Do("HGET", l.Layout.ManifestKey(part(restoredTopic)), "0").(string)
}

// late appends to the stream of the first segment, whatever became of it.
func (l *crashLife) late(name string) {
	l.MustAppend(part(name), l.keyOf(part(name), 0), 2)
}

func (l *crashLife) afterTheCopies() {
	l.Do("HSET", l.Layout.ManifestKey(part(restoredTopic)), "0", l.kept[restoredTopic])
	l.late(lateTopic)
	l.late(thinTopic)
	l.deleteOne(part(thinTopic))
	l.produce(countedKey, plainKey, awayTopic, doomedTopic)
	for range 3 { // the server counts five in the open range, and two are there
		l.deleteOne(part(countedKey))
	}
	if e := l.Entry(part(plainKey), 0); e.Tier == segment.Remote && e.Local == segment.Present {
		l.put(e.Object.Path, "damaged")
	}
	l.kept[adoptedTopic], _ = l.Do("DUMP", l.keyOf(part(adoptedTopic), 0)).(string)
	for _, topic := range []string{adoptedTopic, lateTopic, thinTopic} {
		l.Topic(topic, "local.retention.ms", "1")
	}
	l.plain = []string{"KORVET_STREAMS_0_LOCAL_RETENTION_TIME=1ms"}
}

// deleteOne deletes the last message but one of a partition's stream.
func (l *crashLife) deleteOne(p segment.Partition) {
	var of []checker.Ack
	for _, a := range l.Acks {
		if a.Partition == p.String() && !l.deleted[a.Key+" "+a.ID] {
			of = append(of, a)
		}
	}
	a := of[len(of)-2]
	l.deleted[a.Key+" "+a.ID] = true
	l.Do("XDEL", a.Key, a.ID)
}

// whatWasHiddenGrows also brings a stream back that was dropped, as a failover
// can.
func (l *crashLife) whatWasHiddenGrows() {
	if l.Entry(part(adoptedTopic), 0).Local == segment.Gone {
		l.Do("RESTORE", l.keyOf(part(adoptedTopic), 0), "0", l.kept[adoptedTopic])
	}
	l.late(quickTopic)
	l.produce(awayTopic, doomedTopic)
	l.Topic(awayTopic, "local.retention.ms", "1")
}

// beforeTheDrops takes the first entry of the plain stream away: what lies in
// front of the second segment is then in none.
func (l *crashLife) beforeTheDrops() {
	manifest := l.Layout.ManifestKey(part(plainKey))
	l.kept[plainKey], _ = l.Do("HGET", manifest, "0").(string)
	l.Do("HDEL", manifest, "0")
	l.produce(awayTopic, doomedTopic)
}

func (l *crashLife) topicsGo() {
	if l.kept[plainKey] != "" {
		l.Do("HSET", l.Layout.ManifestKey(part(plainKey)), "0", l.kept[plainKey])
	}
	l.Unregister(awayTopic)
	l.Unregister(doomedTopic)
	l.Topic(adoptedTopic, "retention.ms", "1")
}

func (l *crashLife) oneComesBack() {
	l.Topic(awayTopic, "segment.ms", "1", "retention.ms", "-1", "local.retention.ms", "1")
	l.produceHidden(doomedTopic)
}

// produceHidden appends to what was the open segment before its topic went.
func (l *crashLife) produceHidden(name string) {
	for number := range l.Manifest(part(name)) {
		n, _ := segment.ParseNumber(number)
		if e := l.Entry(part(name), n); e.WithTopic == segment.Open || e.State == segment.Open {
			l.MustAppend(part(name), l.keyOf(part(name), n), 2)
		}
	}
}

func (l *crashLife) objectPath(p segment.Partition, n segment.Number) string {
	return segment.ObjectPath(l.Layout.Folder(p), n, 0, "")
}

// put writes an object as anybody could.
func (l *crashLife) put(path, body string) {
	l.t.Helper()
	file := filepath.Join(l.Root, path)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(body), 0o600); err != nil {
		l.t.Fatal(err)
	}
}

// settle makes passes until two in a row change nothing and all is well.
func (l *crashLife) settle() {
	l.t.Helper()
	before := ""
	for range 12 {
		l.Ahead(lifeStep)
		p := l.pass()
		now := l.picture()
		if now == before && p.Code() == 0 {
			return
		}
		before = now
	}
	l.t.Fatalf("it does not come to rest: %s", before)
}

// picture is all manifests as one text.
func (l *crashLife) picture() string {
	var lines []string
	for _, p := range allParts() {
		for n, raw := range l.Manifest(p) {
			lines = append(lines, p.String()+"/"+n+" "+raw)
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// judge looks at what is left of the life: nothing is lost, and nothing is
// stuck.
func (l *crashLife) judge() {
	l.t.Helper()
	for _, f := range l.Judge(allParts(), checker.Rules{May: l.may, Settled: true}).Findings {
		if f.Kind == checker.Orphan && (l.orphans || superseded(f.Path)) {
			continue // an object that was replaced by the next copy outlives it
		}
		l.t.Errorf("%s", f)
	}
	for _, p := range allParts() {
		for number, raw := range l.Manifest(p) {
			n, _ := segment.ParseNumber(number)
			if e := l.Entry(p, n); e.State == segment.Deleting || e.State == segment.Sealed && (e.Tier == segment.Local || e.Local == segment.Dropping) {
				l.t.Errorf("%s/%s is stuck: %s", p, number, raw)
			}
		}
	}
}

// may says which messages need not be there in the end.
func (l *crashLife) may(a checker.Ack) string {
	switch {
	case l.deleted[a.Key+" "+a.ID]:
		return "deleted"
	case a.Partition == part(doomedTopic).String():
		return "its topic is gone"
	case a.Partition == part(quickTopic).String(), a.Partition == part(adoptedTopic).String():
		return "expired"
	}
	return ""
}

// superseded says whether a path is that of a first copy in a partition where
// second ones are made.
func superseded(path string) bool {
	for _, name := range []string{lateTopic, thinTopic, takenTopic, plainKey} {
		if strings.HasSuffix(filepath.Dir(path), name+":0") || filepath.Dir(path) == name {
			return !strings.Contains(filepath.Base(path), "-")
		}
	}
	return false
}

// trace lists the points that a file has noted.
func trace(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
