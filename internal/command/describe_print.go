package command

import (
	"fmt"
	"strings"
	"time"

	"korvet-offload/internal/words"
)

// lines is a segment for a person: what it is about, and then what is known.
func (d *describing) lines() (lines []string) {
	say := func(about, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%-9s ", about)+fmt.Sprintf(format, args...))
	}
	say("segment", "%s/%s", d.view.Partition, d.view.Segment)
	d.entryLines(say)
	d.streamLine(say)
	for _, o := range d.view.Objects {
		text := fmt.Sprintf("%s: %s, put %s, %s", o.Path, words.Size(o.Bytes), o.Put.Format(time.RFC3339), o.Verdict)
		if o.SHA256 != "" {
			text += ", SHA-256 " + o.SHA256
		}
		say("object", "%s", text)
	}
	if d.redis != nil && d.store == nil {
		say("object", "not looked at: korvet.storage.remote-path is not set")
	}
	if f := d.view.File; f != nil && f.Problem == "" {
		say("file", "schema version %d, %s, %s to %s", f.Version, words.Count(f.Messages, "message"), orNone(f.FirstID), orNone(f.LastID))
	}
	for _, text := range d.view.Differs {
		say("DIFFERS", "%s", text)
	}
	return lines
}

func (d *describing) entryLines(say func(about, format string, args ...any)) {
	switch {
	case d.redis == nil:
		return
	case d.stored == nil:
		say("entry", "none in %s", d.layout.ManifestKey(d.partition))
		return
	case d.stored.Err != nil:
		say("entry", "%.1000q in %s", d.stored.Raw, d.view.Entry.Manifest)
		return
	}
	e := d.stored.Entry
	state := strings.TrimSpace(fmt.Sprintf("%s %s %s", e.State, e.Tier, e.Local))
	say("where", "%s", d.view.Where)
	say("entry", "%s, revision %d, copy %d, in %s", state, e.Rev, e.Copy, d.view.Entry.Manifest)
	if e.Count >= 0 {
		say("messages", "%d", e.Count)
	}
	if !e.FirstID.IsZero() {
		say("ids", "%s to %s", e.FirstID, e.LastID)
		say("times", "%s to %s", idTimeCell(e.FirstID).text, idTimeCell(e.LastID).text)
	}
	if e.Shared() {
		say("range", "%s to %s of a shared stream", e.From, orNone(idText(e.To)))
	}
	for _, t := range []struct {
		about string
		ms    int64
	}{{"opened", e.OpenedAt}, {"sealed", e.SealedAt}, {"copied", e.RemoteAt}, {"hidden", e.DeletingAt}} {
		if t.ms > 0 {
			say(t.about, "%s", msCell(t.ms).text)
		}
	}
}

func (d *describing) streamLine(say func(about, format string, args ...any)) {
	s := d.view.Stream
	switch {
	case s == nil:
	case !s.Exists:
		say("stream", "%s: not there", s.Key)
	default:
		text := fmt.Sprintf("%s: %s, from %s, last generated id %s", s.Key, words.Count(s.Length, "entry"), orNone(s.FirstID), orNone(s.LastID))
		if s.EntriesAdded != nil {
			text += fmt.Sprintf(", %d added", *s.EntriesAdded)
		}
		if s.MaxDeletedID != "" {
			text += ", deleted up to " + s.MaxDeletedID
		}
		if s.Memory != nil {
			text += ", " + words.Size(*s.Memory) + " in Redis"
		}
		say("stream", "%s", text)
	}
}

func orNone(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
