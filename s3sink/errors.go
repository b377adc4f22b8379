package s3sink

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Class says what kind of failure an error is, and so what can be done.
type Class string

// All classes there are.
const (
	ClassExists      Class = "exists"       // the key is taken
	ClassMissing     Class = "missing"      // no such object
	ClassNoBucket    Class = "no-bucket"    // no such bucket or folder
	ClassDenied      Class = "denied"       // a permission is missing
	ClassLocked      Class = "locked"       // it must be kept for some time yet
	ClassCredentials Class = "credentials"  // there are none, or they are not accepted
	ClassThrottled   Class = "throttled"    // the store asks for fewer requests
	ClassUnavailable Class = "unavailable"  // the store or the network does not work
	ClassTimeout     Class = "timeout"      // an attempt took too long, or stood still
	ClassConflict    Class = "conflict"     // another writer was busy with the key
	ClassClockSkew   Class = "clock-skew"   // this host's clock is wrong
	ClassWrongRegion Class = "wrong-region" // the bucket is elsewhere
	ClassUnsupported Class = "unsupported"  // the store can't do this
	ClassFull        Class = "full"         // no space, or a quota is used up
	ClassInvalid     Class = "invalid"      // the request or a setting is wrong
	ClassOther       Class = "other"        // ended by the caller, or not known
)

// Classes lists every class.
func Classes() []Class {
	return []Class{ClassExists, ClassMissing, ClassNoBucket, ClassDenied, ClassLocked, ClassCredentials, ClassThrottled, ClassUnavailable,
		ClassTimeout, ClassConflict, ClassClockSkew, ClassWrongRegion, ClassUnsupported, ClassFull, ClassInvalid, ClassOther}
}

// Errors to compare with by errors.Is.
var (
	ErrExists      = errors.New("object exists")
	ErrMissing     = errors.New("object does not exist")
	ErrUnknown     = errors.New("not allowed to see whether the object exists")
	ErrUnsupported = errors.New("store has no conditional puts")
	ErrLocked      = errors.New("object is locked")
)

// Error is what went wrong with one object, or with the bucket if Key is "".
type Error struct {
	Op     string // put, stat, get, list, delete, check, claim
	Bucket string // s3://bucket or file:///folder
	Key    string // as the store knows it, below the bucket
	Class  Class
	Hint   string // what to do; may be ""
	Err    error  // the cause; never holds secrets
}

// Error is one line: what failed, where, why, and what to do.
func (e *Error) Error() string {
	where := e.Bucket
	switch {
	case where == "":
		where = e.Key
	case e.Key != "":
		where += "/" + e.Key
	}
	msg := e.Op + " " + where + ": " + oneLine(e.Err.Error())
	if e.Hint != "" {
		msg += "; " + e.Hint
	}
	return msg
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is compares with the sentinel errors of this package.
func (e *Error) Is(target error) bool {
	switch target {
	case ErrExists:
		return e.Class == ClassExists
	case ErrMissing:
		return e.Class == ClassMissing
	case ErrUnknown:
		return e.Class == ClassDenied && e.Op == "stat"
	case ErrUnsupported:
		return e.Class == ClassUnsupported && e.Op != "delete"
	case ErrLocked:
		return e.Class == ClassLocked
	}
	return false
}

// ClassOf gives the class of an error of a Store: ClassOther for any other
// error, "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassOther
}

// retriable says whether the same attempt may do better a little later.
func (c Class) retriable() bool {
	switch c {
	case ClassThrottled, ClassUnavailable, ClassTimeout, ClassConflict:
		return true
	}
	return false
}

// answer is an error that a store has sent, with nothing in it that could be
// secret.
type answer struct {
	status  int
	code    string
	message string
}

func (a *answer) Error() string {
	var parts []string
	if a.code != "" {
		parts = append(parts, a.code)
	}
	if a.message != "" {
		parts = append(parts, a.message)
	}
	if a.status != 0 {
		parts = append(parts, fmt.Sprintf("(HTTP %d)", a.status))
	}
	return strings.Join(parts, " ")
}

var (
	codePattern   = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]{0,63}$`)
	secretPattern = regexp.MustCompile(`[A-Za-z0-9+=%/]{100,}|[A-Za-z0-9+=%_-]{40,}`)
	blankPattern  = regexp.MustCompile(`\s+`)
)

// maxMessage is how much of a store's message is repeated, in bytes.
const maxMessage = 300

// redact makes one short line of a text that came from elsewhere and hides
// what could be a key, a token or a signature in it.
func redact(text string) string {
	text = secretPattern.ReplaceAllString(oneLine(text), "***")
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}

func oneLine(text string) string {
	return strings.TrimSpace(blankPattern.ReplaceAllString(text, " "))
}
