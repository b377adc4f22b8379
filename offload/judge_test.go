package offload

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"korvet-offload/internal/testkit/checker"
	"korvet-offload/segment"
)

// judge is what the checker finds.
func (w *world) judge(settled bool) (lines []string) {
	now := w.now.UnixMilli()
	rules := checker.Rules{Settled: settled, Hidden: !settled, OrphanAge: time.Hour, May: func(a checker.Ack) string { return w.may(a, now) }}
	for _, f := range checker.Check(w.snapshot(), w.acks(), rules) {
		if f.Kind != checker.Stray { // reported by the program, and kept
			lines = append(lines, fmt.Sprintf("%s: %s", f.Kind, f.Text))
		}
	}
	return lines
}

// may says why a message may be gone; "" = it may not.
func (w *world) may(a checker.Ack, now int64) string {
	if w.forgiven[a.Key+" "+a.ID] {
		return "deleted"
	}
	id, err := segment.ParseID(a.ID)
	for _, t := range w.topics {
		if r := t.Settings.RetentionMs; err == nil && r >= 0 && now-int64(id.Ms) > r {
			return "expired"
		}
	}
	return ""
}

func (w *world) snapshot() checker.World {
	c := checker.World{Now: w.now.UnixMilli(), Streams: map[string][]checker.Message{}, Objects: map[string]checker.Object{}}
	for p, m := range w.manifests {
		c.Partitions = append(c.Partitions, checker.Partition{
			Name: p.String(), StreamKey: segment.DefaultLayout().StreamKey(p), Plain: p.Plain, Manifest: m,
		})
	}
	for key, s := range w.streams {
		c.Streams[key] = messages(s.entries)
	}
	for path, o := range w.objects {
		sum := sha256.Sum256(o.body)
		f := w.file(path)
		seen := checker.Object{Size: int64(len(o.body)), SHA256: hex.EncodeToString(sum[:]), Messages: messages(f.Entries)}
		if f.Of == (FileOf{}) {
			seen.Bad = "no segment file"
		}
		c.Objects[path] = seen
	}
	return c
}

func messages(entries []fakeEntry) []checker.Message {
	all := make([]checker.Message, 0, len(entries))
	for _, e := range entries {
		all = append(all, checker.Message{ID: e.ID.String(), Sum: sumOf(e.Fields)})
	}
	return all
}

// sumOf is the bytes of a message.
func sumOf(fields [][2]string) string {
	var b strings.Builder
	for _, f := range fields {
		b.WriteString(f[0])
		b.WriteByte(0)
		b.WriteString(f[1])
		b.WriteByte(0)
	}
	return b.String()
}

func (w *world) acks() (all []checker.Ack) {
	for key, ids := range w.log {
		part := w.partitionOf(key)
		for _, id := range ids {
			all = append(all, checker.Ack{Partition: part, Key: key, ID: id.String(), Sum: sumOf(fieldsOf(key, id))})
		}
	}
	return all
}

// partitionOf is whose stream a key is.
func (w *world) partitionOf(key string) string {
	for p := range w.manifests {
		if own := segment.DefaultLayout().StreamKey(p); key == own || strings.HasPrefix(key, own+":") {
			return p.String()
		}
	}
	return ""
}
