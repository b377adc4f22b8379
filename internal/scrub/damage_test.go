package scrub

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func onBothStores(t *testing.T, test func(t *testing.T, w *world)) {
	t.Run("file", func(t *testing.T) { test(t, newWorld(t, false)) })
	t.Run("s3", func(t *testing.T) { test(t, newWorld(t, true)) })
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	onBothStores(t, func(t *testing.T, w *world) {
		cold, warm := w.topic("cold", "local.retention.ms", "1"), w.topic("warm")
		w.fill(cold, 4)
		w.fill(warm, 3)
		w.server.Exec("XADD", "events", "*", "f", "v")
		w.pass()
		for _, o := range []Options{{}, {Deep: true}, {CompareLocal: true}} {
			s, r := w.scrub(o)
			w.want("findings", s.findings)
			w.want("notes", s.notes)
			if r.Partitions != 3 || r.Segments != 10 || r.Objects != 7 || (o.Deep || o.CompareLocal) && r.Read != 7 || !o.Deep && !o.CompareLocal && r.Read != 0 {
				t.Errorf("%+v: %+v", o, r)
			}
		}
	})
}

// everyDamage damages what was moved in every way there is.
func everyDamage(w *world) (fast, deep, local, notes []string) {
	cold, warm := w.topic("cold", "local.retention.ms", "1"), w.topic("warm")
	w.fill(cold, 24)
	w.fill(warm, 6)
	finding := func(into *[]string, k Kind, p segment.Partition, n int, path string) {
		text := fmt.Sprintf("%s %s/%d", k, p, n)
		if path != "" {
			text += " " + path
		}
		*into = append(*into, text)
	}
	object := func(into *[]string, k Kind, n int) { finding(into, k, cold, n, path(cold, n)) }

	w.remove(path(cold, 0))
	object(&fast, MissingObject, 0)

	whole := w.read(path(cold, 1))
	w.write(path(cold, 1), whole[:len(whole)/2])
	object(&fast, Truncated, 1)

	w.write(path(cold, 2), append(w.read(path(cold, 2)), 'x'))
	object(&fast, ChecksumMismatch, 2)

	flipped := bytes.Clone(w.read(path(cold, 3)))
	flipped[len(flipped)/2] ^= 1
	w.write(path(cold, 3), flipped)
	object(&deep, ChecksumMismatch, 3)

	other := bytes.Repeat([]byte("no file of segments "), 20)
	w.write(path(cold, 4), other)
	sumsTo(w, cold, 4, other)
	object(&deep, Schema, 4)

	another := w.read(path(cold, 6))
	w.write(path(cold, 5), another)
	sumsTo(w, cold, 5, another)
	object(&deep, WrongContents, 5)

	w.change(cold, 7, func(e *segment.Entry) { e.Count++ })
	object(&deep, WrongContents, 7)

	w.server.Exec("HDEL", manifestKey(cold), "8")
	object(&fast, Orphan, 8)

	w.server.Exec("HDEL", manifestKey(cold), "9", "10")
	w.remove(path(cold, 9))
	w.remove(path(cold, 10))
	finding(&fast, Gap, cold, 9, "")

	w.change(cold, 11, func(e *segment.Entry) { e.Object.Path = path(cold, 12) })
	finding(&fast, DuplicatePath, cold, 11, path(cold, 12))
	object(&fast, Orphan, 11)

	w.change(cold, 13, func(e *segment.Entry) { e.Object.Path = "elsewhere/13.parquet" })
	finding(&fast, IllegalEntry, cold, 13, "elsewhere/13.parquet")
	object(&fast, Orphan, 13)

	w.server.Exec("HSET", manifestKey(cold), "14", "{", "fourteen", "x")
	finding(&fast, IllegalEntry, cold, 14, "")
	fast = append(fast, "illegal_entry cold:0")

	w.add(key(cold, 15), 1)
	finding(&fast, StrayStream, cold, 15, path(cold, 15))

	w.change(cold, 16, func(e *segment.Entry) {
		e.State, e.DeletingAt = segment.Deleting, time.Now().Add(-48*time.Hour).UnixMilli()
	})
	object(&fast, HalfDeleted, 16)
	w.change(cold, 17, func(e *segment.Entry) {
		e.State, e.DeletingAt = segment.Deleting, time.Now().Add(-2*time.Hour).UnixMilli()
	})
	w.remove(path(cold, 17))
	object(&fast, HalfDeleted, 17)

	newer := segment.ObjectPath("korvet:storage:local:cold:0", 18, 3, "")
	w.write(newer, w.read(path(cold, 18)))
	finding(&fast, Orphan, cold, 18, newer)

	above := path(cold, 99)
	w.write(above, w.read(path(cold, 18)))
	finding(&fast, Orphan, cold, 99, above)

	w.write("korvet:storage:local:cold:0/notes.txt", []byte("x"))
	fast = append(fast, "unknown_object cold:0 korvet:storage:local:cold:0/notes.txt")

	w.change(cold, 19, func(e *segment.Entry) {
		e.Copy = 1
		e.Object.Path = segment.ObjectPath("korvet:storage:local:cold:0", 19, 1, "")
	})
	w.write(segment.ObjectPath("korvet:storage:local:cold:0", 19, 1, ""), w.read(path(cold, 19)))
	finding(&notes, Orphan, cold, 19, path(cold, 19))

	copied := remade(w, cold, 20, 21)
	w.write(path(cold, 21), copied)
	w.change(cold, 21, func(e *segment.Entry) {
		is := w.entries(cold)[20]
		e.FirstID, e.LastID, e.Count = is.FirstID, is.LastID, is.Count
	})
	sumsTo(w, cold, 21, copied)
	finding(&deep, Overlap, cold, 21, "")
	finding(&notes, Overlap, cold, 21, "")

	// The streams.
	w.change(warm, 0, func(e *segment.Entry) { *e, _ = e.Recopy() })
	w.remove(path(warm, 0))
	w.server.Exec("DEL", key(warm, 0))
	finding(&fast, SourceMissing, warm, 0, "")
	w.change(warm, 1, func(e *segment.Entry) { *e, _ = e.Recopy() })
	w.remove(path(warm, 1))
	w.server.Exec("XTRIM", key(warm, 1), "MAXLEN", "3")
	finding(&fast, SourceMissing, warm, 1, "")
	first := w.entries(warm)[2].FirstID
	w.server.Exec("DEL", key(warm, 2))
	w.server.Exec("XADD", key(warm, 2), first.String(), "value", "other")
	finding(&fast, StreamDiffers, warm, 2, path(warm, 2))
	remake(w, warm, 3)
	finding(&local, StreamDiffers, warm, 3, path(warm, 3))
	w.server.Exec("XDEL", key(warm, 4), w.entries(warm)[4].FirstID.String())
	finding(&notes, StreamDiffers, warm, 4, path(warm, 4)) // with --compare-local only

	// What has no manifest.
	w.topic("lost")
	w.write("korvet:storage:local:lost:0/3.parquet", w.read(path(cold, 18)))
	fast = append(fast, "orphan lost:0 korvet:storage:local:lost:0/3.parquet")
	w.write("korvet:storage:local:removed:0/3.parquet", w.read(path(cold, 18)))
	notes = append(notes, "orphan removed:0 korvet:storage:local:removed:0/3.parquet")
	w.write("Back Up/x", []byte("x"))
	notes = append(notes, "unknown_object :0 Back Up/x")
	w.remove("_korvet_offload.json")
	fast = append(fast, "owner :0")
	return fast, deep, local, notes
}

// sumsTo makes an entry tell of other bytes.
func sumsTo(w *world, p segment.Partition, n int, b []byte) {
	sum := sha256.Sum256(b)
	info, err := w.store.Stat(w.t.Context(), path(p, n))
	if err != nil {
		w.t.Fatal(err)
	}
	w.change(p, n, func(e *segment.Entry) {
		e.Object.Bytes, e.Object.SHA256, e.Object.ETag = int64(len(b)), hex.EncodeToString(sum[:]), info.ETag
	})
}

// remade is the file of one segment with the messages of another.
func remade(w *world, p segment.Partition, from, as int) []byte {
	b := w.read(path(p, from))
	f, err := parquetfile.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		w.t.Fatal(err)
	}
	var out bytes.Buffer
	enc := parquetfile.NewWriter(&out, parquetfile.FileID{StreamKey: segment.DefaultLayout().StreamKey(p), Segment: segment.Number(as)}) //nolint:gosec // small
	if err := f.Read(w.t.Context(), enc.Write); err != nil {
		w.t.Fatal(err)
	}
	if _, err := enc.Close(); err != nil {
		w.t.Fatal(err)
	}
	return out.Bytes()
}

// remake makes the stream of a segment anew, with the same ids and one value that
// is another one: nothing that the server tells shows it.
func remake(w *world, p segment.Partition, n int) {
	var commands []byte
	commands = redisserver.AppendCommand(commands, "DEL", key(p, n))
	pages := w.redis.Pages(key(p, n), segment.ID{}, segment.MaxID())
	defer pages.Close()
	var page segment.Page
	for entry := 0; ; page.Reset() {
		err := pages.Next(w.t.Context(), &page)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for i := range page.Len() {
			value := string(page.Value(i * 2))
			if entry++; entry == 5 {
				value = "forged"
			}
			commands = redisserver.AppendCommand(commands, "XADD", key(p, n), page.ID(i).String(), "value", value, "key", "k")
		}
	}
	w.server.Pipe(commands)
}

func TestEveryDamageIsFoundAndNothingElse(t *testing.T) {
	onBothStores(t, func(t *testing.T, w *world) {
		fast, deep, local, notes := everyDamage(w)
		withoutNote := func(list []string) (out []string) {
			for _, l := range list {
				if l != "stream_differs warm:0/4 "+path(segment.Partition{Topic: "warm"}, 4) {
					out = append(out, l)
				}
			}
			return out
		}
		s, _ := w.scrub(Options{Deep: true})
		w.want("findings of deep", s.findings, append(append([]string{}, fast...), deep...)...)
		w.want("notes of deep", s.notes, withoutNote(notes)...)
		s, _ = w.scrub(Options{CompareLocal: true})
		w.want("findings of compare-local", s.findings, append(append(append([]string{}, fast...), deep...), local...)...)
		w.want("notes of compare-local", s.notes, notes...)
		s, _ = w.scrub(Options{})
		if w.s3 != nil { // the ETag tells
			fast = append(fast, deep[0])
		}
		w.want("findings of fast", s.findings, fast...)
		w.want("notes of fast", s.notes, withoutNote(notes)...)
	})
}

// A message that is in two segments is found, though another one that overlaps with
// both goes on for longer.
func TestTheSameMessageInTwoOfThreeSegments(t *testing.T) {
	w := newWorld(t, false)
	p := w.topic("t")
	const base = 1_700_000_000_000
	for n, ids := range [][]uint64{{10, 50, 100}, {20, 200}, {50, 60}} {
		e := segment.Entry{State: segment.Sealed, Tier: segment.Local, Count: int64(len(ids)), OpenedAt: 1, SealedAt: 1,
			FirstID: segment.ID{Ms: base + ids[0]}, LastID: segment.ID{Ms: base + ids[len(ids)-1]}}
		for _, ms := range ids {
			w.server.Exec("XADD", key(p, n), segment.ID{Ms: base + ms}.String(), "value", fmt.Sprint("at ", ms))
		}
		w.server.Exec("HSET", manifestKey(p), strconv.Itoa(n), string(e.Encode()))
	}
	w.pass()
	s, _ := w.scrub(Options{Deep: true})
	w.want("findings", s.findings, "overlap t:0/2")
}
