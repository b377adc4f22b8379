package segment

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// EntryVersion is the version of the entries that this program reads and
// writes; an entry without one is of this version.
const EntryVersion = 1

// ParseEntry reads a manifest value. What is not a legal entry gives
// ErrIllegalEntry, or ErrEntryVersion where it may be legal for a later
// program.
func ParseEntry(raw []byte) (Entry, error) {
	e := Entry{Count: NoCount}
	var err error
	if e.fields, err = parseObject(raw); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrIllegalEntry, err)
	}
	if err := checkVersion(e.fields); err != nil {
		return Entry{}, err
	}
	for _, f := range e.fields {
		if err := e.read(f); err != nil {
			return Entry{}, fmt.Errorf("%w: field %s: %w", ErrIllegalEntry, f.name, err)
		}
	}
	if err := e.check(); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrIllegalEntry, err)
	}
	return e, nil
}

// checkVersion comes before the rest: the fields of a later version may mean
// anything.
func checkVersion(fields []field) error {
	for _, f := range fields {
		if f.name != "v" || string(f.raw) == "null" {
			continue
		}
		var v int64
		if err := readNumber(f.raw, &v); err != nil {
			return fmt.Errorf("%w: field v: %w", ErrIllegalEntry, err)
		}
		if v != EntryVersion {
			return fmt.Errorf("%w %d; this program knows version %d", ErrEntryVersion, v, EntryVersion)
		}
	}
	return nil
}

func (e *Entry) read(f field) error {
	if string(f.raw) == "null" {
		return nil // as if it were not there
	}
	switch f.name {
	case "state":
		return readWord(f.raw, &e.State, Open, Sealed, Deleting)
	case "tier":
		return readWord(f.raw, &e.Tier, Local, Remote)
	case "local":
		return readWord(f.raw, &e.Local, Present, Dropping, Gone)
	case "rev":
		return readNumber(f.raw, &e.Rev)
	case "copy":
		return readNumber(f.raw, &e.Copy)
	case "count":
		return readNumber(f.raw, &e.Count)
	case "openedAt":
		return readNumber(f.raw, &e.OpenedAt)
	case "sealedAt":
		return readNumber(f.raw, &e.SealedAt)
	case "remoteAt":
		return readNumber(f.raw, &e.RemoteAt)
	case "deletingAt":
		return readNumber(f.raw, &e.DeletingAt)
	case "aged":
		e.Aged = string(f.raw) == "true"
		if !e.Aged && string(f.raw) != "false" {
			return errors.New("want true or false")
		}
	case "withTopic":
		return readWord(f.raw, &e.WithTopic, Open, Sealed)
	case "source":
		e.Source = new(Source)
		if err := e.Source.read(f.raw); err != nil {
			return errors.New("want an object with lastId, added and maxDeletedId")
		}
	case "key":
		var err error
		if e.Key, err = unquote(f.raw); err != nil || e.Key == "" {
			return errors.New("want a text that is not empty")
		}
	case "from":
		return readID(f.raw, &e.From)
	case "to":
		return readID(f.raw, &e.To)
	case "firstId":
		return readID(f.raw, &e.FirstID)
	case "lastId":
		return readID(f.raw, &e.LastID)
	case "object":
		e.Object = new(Object)
		if err := e.Object.read(f.raw); err != nil {
			return errors.New("want an object with path, bytes, etag and sha256")
		}
	}
	return nil
}

// read takes an entry's field object.
func (o *Object) read(raw []byte) error {
	return readFields(raw, func(f field) (err error) {
		switch f.name {
		case "path":
			o.Path, err = unquote(f.raw)
		case "bytes":
			err = readNumber(f.raw, &o.Bytes)
		case "etag":
			o.ETag, err = unquote(f.raw)
		case "sha256":
			o.SHA256, err = unquote(f.raw)
		}
		return err
	})
}

// readFields reads an object field by field; one that is null counts as absent.
func readFields(raw []byte, read func(field) error) error {
	fields, err := parseObject(raw)
	if err != nil {
		return err
	}
	for _, f := range fields {
		if string(f.raw) == "null" {
			continue
		}
		if err := read(f); err != nil {
			return err
		}
	}
	return nil
}

func readWord[W ~string](raw []byte, to *W, words ...W) error {
	s, err := unquote(raw)
	i := slices.Index(words, W(s))
	if err != nil || i < 0 {
		return fmt.Errorf("%s is none of %q", shorten(raw), words)
	}
	*to = words[i]
	return nil
}

func readNumber(raw []byte, to *int64) error {
	n, err := strconv.ParseUint(string(raw), 10, 63)
	if err != nil {
		return fmt.Errorf("%s is not a whole number from 0 upwards", shorten(raw))
	}
	*to = int64(n) //nolint:gosec // 63 bits
	return nil
}

func readID(raw []byte, to *ID) error {
	s, err := unquote(raw)
	if err != nil {
		return fmt.Errorf("%s is not a stream id", shorten(raw))
	}
	id, err := ParseID(s)
	*to = id
	return err
}

// shorten keeps a message to one readable line, whatever the manifest holds.
func shorten(raw []byte) string {
	if len(raw) > 40 {
		return fmt.Sprintf("%q...", raw[:40])
	}
	return fmt.Sprintf("%q", raw)
}

// check refuses what no sequence of legal transitions can lead to.
func (e *Entry) check() error {
	switch {
	case e.State == "":
		return errors.New("field state is missing")
	case e.Tier == "":
		return errors.New("field tier is missing")
	case e.State == Open && e.Tier == Remote:
		return errors.New("OPEN and REMOTE at once")
	case e.Tier == Local && e.Local != "" && e.Local != Present:
		return fmt.Errorf("LOCAL, and its local copy is %s", e.Local)
	case !e.FirstID.IsZero() && !e.LastID.IsZero() && e.FirstID.Compare(e.LastID) > 0:
		return fmt.Errorf("firstId %s is above lastId %s", e.FirstID, e.LastID)
	case !e.To.IsZero() && e.From.Compare(e.To) > 0:
		return fmt.Errorf("from %s is above to %s", e.From, e.To)
	}
	return nil
}

// Encode writes the entry as a manifest value. Fields keep the order in which
// they were read; new ones follow in the order of the contract; what this
// program does not know stays byte for byte.
func (e Entry) Encode() []byte {
	known := e.known()
	out := append(make([]byte, 0, 512), '{')
	for _, f := range e.fields {
		raw := f.raw
		if i := slices.IndexFunc(known, func(k field) bool { return k.name == f.name }); i >= 0 {
			raw = known[i].raw
			known = slices.Delete(known, i, i+1)
		}
		out = appendField(out, f.name, raw)
	}
	for _, f := range known {
		out = appendField(out, f.name, f.raw)
	}
	return append(out, '}')
}

// known lists the fields that this program writes, in the order of the
// contract; a nil value takes a field away that was there.
func (e Entry) known() []field {
	number := func(n int64, there bool) json.RawMessage {
		if !there {
			return nil
		}
		return json.RawMessage(fmt.Sprint(n))
	}
	text := func(s string) json.RawMessage {
		if s == "" {
			return nil
		}
		return mustJSON(s)
	}
	id := func(id ID) json.RawMessage {
		if id.IsZero() {
			return nil
		}
		return json.RawMessage(`"` + id.String() + `"`)
	}
	flag := func(on bool) json.RawMessage {
		if !on {
			return nil
		}
		return json.RawMessage("true")
	}
	return []field{
		{"v", number(EntryVersion, true)},
		{"rev", number(e.Rev, e.Rev != 0)},
		{"state", text(string(e.State))},
		{"tier", text(string(e.Tier))},
		{"key", text(e.Key)},
		{"copy", number(e.Copy, e.Copy != 0)},
		{"from", id(e.From)},
		{"to", id(e.To)},
		{"firstId", id(e.FirstID)},
		{"lastId", id(e.LastID)},
		{"count", number(e.Count, e.Count != NoCount)},
		{"openedAt", number(e.OpenedAt, e.OpenedAt != 0)},
		{"sealedAt", number(e.SealedAt, e.SealedAt != 0)},
		{"remoteAt", number(e.RemoteAt, e.RemoteAt != 0)},
		{"local", text(string(e.Local))},
		{"object", e.object()},
		{"source", e.source()},
		{"deletingAt", number(e.DeletingAt, e.DeletingAt != 0)},
		{"aged", flag(e.Aged)},
		{"withTopic", text(string(e.WithTopic))},
	}
}

// object keeps what was read of the object unless this program has put
// another in its place, and then keeps its unknown fields.
func (e Entry) object() json.RawMessage {
	if e.Object == nil {
		return nil
	}
	var before []field
	if i := slices.IndexFunc(e.fields, func(f field) bool { return f.name == "object" }); i >= 0 {
		var was Object
		if was.read(e.fields[i].raw) == nil && was == *e.Object {
			return e.fields[i].raw
		}
		before, _ = parseObject(e.fields[i].raw) // not an object: nothing to keep
	}
	out := mustJSON(e.Object)
	for _, f := range before {
		switch f.name {
		case "path", "bytes", "etag", "sha256":
		default:
			out = append(appendField(out[:len(out)-1], f.name, f.raw), '}')
		}
	}
	return out
}

// source keeps what was read unless this program has put another in its place.
func (e Entry) source() json.RawMessage {
	if e.Source == nil {
		return nil
	}
	if i := slices.IndexFunc(e.fields, func(f field) bool { return f.name == "source" }); i >= 0 {
		var was Source
		if was.read(e.fields[i].raw) == nil && was == *e.Source {
			return e.fields[i].raw
		}
	}
	return e.Source.encode()
}

func appendField(out []byte, name string, raw json.RawMessage) []byte {
	if raw == nil {
		return out
	}
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	out = append(out, mustJSON(name)...)
	out = append(out, ':')
	return append(out, raw...)
}

// mustJSON is for texts and the plain structs of this package, which always
// have a JSON form. Keys and paths are written as they are, not escaped for HTML.
func mustJSON(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ParseManifest makes a manifest of the fields and values of its Hash, given
// in turn.
func ParseManifest(p Partition, pairs []string) Manifest {
	m := Manifest{Partition: p, Entries: make([]Stored, 0, len(pairs)/2)}
	for i := 0; i+1 < len(pairs); i += 2 {
		n, err := ParseNumber(pairs[i])
		if err != nil {
			m.Alien = append(m.Alien, pairs[i])
			continue
		}
		e, err := ParseEntry([]byte(pairs[i+1]))
		m.Entries = append(m.Entries, Stored{Number: n, Raw: pairs[i+1], Entry: e, Err: err})
	}
	slices.SortFunc(m.Entries, func(a, b Stored) int { return cmp.Compare(a.Number, b.Number) })
	slices.Sort(m.Alien)
	return m
}
