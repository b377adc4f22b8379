package checker

import (
	"errors"
	"fmt"
	"math"
)

// The words of the contract.
const (
	stateOpen     = "OPEN"
	stateSealed   = "SEALED"
	stateDeleting = "DELETING"
	tierLocal     = "LOCAL"
	tierRemote    = "REMOTE"
	copyPresent   = "PRESENT"
	copyDropping  = "DROPPING"
	copyGone      = "GONE"
)

// noCount is the count of an entry that does not say how many it has.
const noCount = -1

// entry is a manifest entry. Zero stands for "not there", but for count.
type entry struct {
	state, tier, local string
	key, withTopic     string
	rev, copy, count   int64
	openedAt, sealedAt int64
	remoteAt           int64
	deletingAt         int64
	from, to           id
	firstID, lastID    id
	aged               bool
	described          bool // it has an object
	object             description
}

// description is what an entry says of its object.
type description struct {
	path, etag, sha256 string
	bytes              int64
}

// parseEntry reads a manifest's value; an error says why it is no entry of
// the contract, or one that nobody could do anything with.
func parseEntry(raw string) (entry, error) {
	e, err := readEntry(raw)
	if err == nil {
		err = e.useless()
	}
	return e, err
}

// readEntry is parseEntry that takes what is an entry by the contract's letter.
func readEntry(raw string) (entry, error) {
	e := entry{count: noCount}
	if err := eachField(raw, e.read); err != nil {
		return e, err
	}
	return e, e.contradiction()
}

func (e *entry) read(name, value string) error {
	if value == "null" {
		return nil
	}
	switch name {
	case "v":
		var version int64
		if err := number(name, value, &version); err != nil {
			return err
		}
		if version != 1 {
			return fmt.Errorf("of version %d", version)
		}
		return nil
	case "state":
		return word(name, value, &e.state, stateOpen, stateSealed, stateDeleting)
	case "tier":
		return word(name, value, &e.tier, tierLocal, tierRemote)
	case "local":
		return word(name, value, &e.local, copyPresent, copyDropping, copyGone)
	case "withTopic":
		return word(name, value, &e.withTopic, stateOpen, stateSealed)
	case "aged":
		e.aged = value == "true"
		if !e.aged && value != "false" {
			return fmt.Errorf("aged is %s", value)
		}
		return nil
	case "key":
		if err := text(name, value, &e.key); err != nil || e.key == "" {
			return errors.New("key is no text, or an empty one")
		}
		return nil
	case "object":
		e.described = true
		return eachField(value, e.object.read)
	case "source":
		return eachField(value, readSource)
	}
	if to := e.idField(name); to != nil {
		return idOf(name, value, to)
	}
	if to := e.numberField(name); to != nil {
		return number(name, value, to)
	}
	return nil // somebody else's
}

func (e *entry) idField(name string) *id {
	switch name {
	case "from":
		return &e.from
	case "to":
		return &e.to
	case "firstId":
		return &e.firstID
	case "lastId":
		return &e.lastID
	}
	return nil
}

func (e *entry) numberField(name string) *int64 {
	switch name {
	case "rev":
		return &e.rev
	case "copy":
		return &e.copy
	case "count":
		return &e.count
	case "openedAt":
		return &e.openedAt
	case "sealedAt":
		return &e.sealedAt
	case "remoteAt":
		return &e.remoteAt
	case "deletingAt":
		return &e.deletingAt
	}
	return nil
}

// readSource looks at what an entry says of the stream that was copied, which
// nothing here needs.
func readSource(name, value string) error {
	var some id
	var count int64
	switch {
	case value == "null":
	case name == "lastId", name == "maxDeletedId":
		return idOf("source."+name, value, &some)
	case name == "added", name == "crc32c":
		return number("source."+name, value, &count)
	}
	return nil
}

func (d *description) read(name, value string) error {
	if value == "null" {
		return nil
	}
	switch name {
	case "path":
		return text("object.path", value, &d.path)
	case "etag":
		return text("object.etag", value, &d.etag)
	case "sha256":
		return text("object.sha256", value, &d.sha256)
	case "bytes":
		return number("object.bytes", value, &d.bytes)
	}
	return nil
}

// contradiction says what an entry lacks, or where it contradicts itself.
func (e *entry) contradiction() error {
	switch {
	case e.state == "":
		return errors.New("state is missing")
	case e.tier == "":
		return errors.New("tier is missing")
	case e.state == stateOpen && e.remote():
		return errors.New("OPEN and REMOTE at once")
	case !e.remote() && e.local != "" && e.local != copyPresent:
		return fmt.Errorf("LOCAL, and its local copy is %s", e.local)
	case !e.firstID.none() && !e.lastID.none() && e.lastID.before(e.firstID):
		return fmt.Errorf("firstId %s is above lastId %s", e.firstID, e.lastID)
	case !e.to.none() && e.to.before(e.from):
		return fmt.Errorf("from %s is above to %s", e.from, e.to)
	}
	return nil
}

// useless says what readers, or whoever deletes a stream or an object, would
// need to know of a segment, or would be led astray by.
func (e *entry) useless() error {
	switch {
	case !e.remote() && e.described:
		return fmt.Errorf("LOCAL, and it names object %s", e.object.path)
	case e.shared() && e.state == stateSealed && e.to.none():
		return errors.New("SEALED, and the range has no end")
	case !e.remote():
		return nil
	case !e.described:
		return errors.New("REMOTE, and it names no object")
	case e.object.path == "" || e.object.sha256 == "":
		return errors.New("REMOTE, and it does not say which object it has")
	case e.count == noCount:
		return errors.New("REMOTE, and it does not say how many messages it has")
	case e.count > 0 && (e.firstID.none() || e.lastID.none()):
		return errors.New("REMOTE, and it does not say from where to where it goes")
	}
	return nil
}

// shared says whether the segment is a range of a stream that others share.
func (e *entry) shared() bool { return !e.from.none() || !e.to.none() }

// end is the last id that belongs to the segment.
func (e *entry) end() id {
	if e.to.none() {
		return lastOfAll()
	}
	return e.to
}

func (e *entry) hidden() bool { return e.state == stateDeleting }
func (e *entry) remote() bool { return e.tier == tierRemote }
func (e *entry) gone() bool   { return e.local == copyGone }

func word(name, value string, to *string, words ...string) error {
	if err := text(name, value, to); err != nil {
		return err
	}
	for _, w := range words {
		if *to == w {
			*to = w
			return nil
		}
	}
	return fmt.Errorf("%s is %s", name, value)
}

func number(name, value string, to *int64) error {
	n, ok := parseDecimal(value)
	if !ok || n > math.MaxInt64 {
		return fmt.Errorf("%s is %s, no whole number", name, value)
	}
	*to = int64(n)
	return nil
}

func idOf(name, value string, to *id) error {
	var s string
	if err := text(name, value, &s); err != nil {
		return err
	}
	var ok bool
	if *to, ok = parseID(s); !ok {
		return fmt.Errorf("%s is %s, no stream id", name, value)
	}
	return nil
}
