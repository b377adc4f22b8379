package command

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"

	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// meanings are what a port's error can mean to the worker.
func meanings() []error {
	return []error{offload.ErrObjectExists, offload.ErrObjectMissing, offload.ErrObjectUnknown, offload.ErrStoreDown, offload.ErrRedisDown}
}

// mustMean checks that an error means that and nothing else, nil being a
// fault of one object alone, and is still what it was.
func mustMean(t *testing.T, got, original, want error) {
	t.Helper()
	for _, m := range meanings() {
		if is := errors.Is(got, m); is != (m == want) { //nolint:errorlint // the sentinel itself
			t.Errorf("%q: is %q: %t", original, m, is)
		}
	}
	if !errors.Is(got, original) {
		t.Errorf("%q became %q", original, got)
	}
}

func TestEveryStoreErrorHasAMeaning(t *testing.T) {
	var alone error
	decided := map[s3sink.Class]error{
		s3sink.ClassExists:      offload.ErrObjectExists,
		s3sink.ClassMissing:     offload.ErrObjectMissing,
		s3sink.ClassNoBucket:    offload.ErrStoreDown,
		s3sink.ClassDenied:      offload.ErrStoreDown,
		s3sink.ClassCredentials: offload.ErrStoreDown,
		s3sink.ClassThrottled:   offload.ErrStoreDown,
		s3sink.ClassUnavailable: offload.ErrStoreDown,
		s3sink.ClassTimeout:     offload.ErrStoreDown,
		s3sink.ClassConflict:    alone,
		s3sink.ClassClockSkew:   offload.ErrStoreDown,
		s3sink.ClassWrongRegion: offload.ErrStoreDown,
		s3sink.ClassUnsupported: alone, // CreateOnly has found that out before
		s3sink.ClassFull:        offload.ErrStoreDown,
		s3sink.ClassLocked:      alone, // comes of deletions, which have a meaning of their own
		s3sink.ClassInvalid:     alone,
		s3sink.ClassOther:       alone,
	}
	classes := constants(t, "../../s3sink/errors.go", "Class")
	if len(classes) != len(decided) {
		t.Errorf("the store has %d classes of errors, %d are decided here", len(classes), len(decided))
	}
	for _, name := range classes {
		class := s3sink.Class(name)
		want, ok := decided[class]
		if !ok {
			t.Errorf("decide what class %q means to the worker", class)
			continue
		}
		original := &s3sink.Error{Op: "put", Bucket: "s3://b", Key: "k", Class: class, Err: errors.New("x")}
		mustMean(t, storeError(original), original, want)
		wrapped := fmt.Errorf("around: %w", original)
		mustMean(t, storeError(wrapped), wrapped, want)
	}
	hidden := &s3sink.Error{Op: "stat", Bucket: "s3://b", Key: "k", Class: s3sink.ClassDenied, Err: errors.New("x")}
	mustMean(t, storeError(hidden), hidden, offload.ErrObjectUnknown)
	mustMean(t, storeError(context.Canceled), context.Canceled, alone)
	if storeError(nil) != nil {
		t.Error("nil became an error")
	}
}

// A right that is missing for deleting says nothing about putting.
func TestErrorsOfADeletion(t *testing.T) {
	for class, want := range map[s3sink.Class]error{
		s3sink.ClassDenied: offload.ErrDeleteDenied, s3sink.ClassLocked: offload.ErrDeleteDenied,
		s3sink.ClassUnavailable: offload.ErrStoreDown, s3sink.ClassNoBucket: offload.ErrStoreDown,
	} {
		err := deleteError(&s3sink.Error{Op: "delete", Class: class, Err: errors.New("x")})
		if !errors.Is(err, want) || errors.Is(err, offload.ErrDeleteDenied) && errors.Is(err, offload.ErrStoreDown) {
			t.Errorf("%s: %v", class, err)
		}
	}
	if deleteError(nil) != nil {
		t.Error("nil became an error")
	}
}

func TestEveryRedisErrorHasAMeaning(t *testing.T) {
	down := map[redisstore.Class]bool{
		redisstore.Unavailable: true,
		redisstore.Auth:        true,
		redisstore.Permission:  false, // of one key or command: the others may be allowed
		redisstore.WrongType:   false,
		redisstore.NoMemory:    true,
		redisstore.OutputLimit: false,
		redisstore.WrongMode:   true,
		redisstore.TLS:         true,
		redisstore.Protocol:    false,
		redisstore.Other:       false,

		redisstore.NotReplicated: false, // of this change
	}
	if n := len(constants(t, "../redisstore/errors.go", "Class")); n != len(redisstore.Classes()) || n != len(down) {
		t.Errorf("%d classes of errors, %d in the list, %d decided here", n, len(redisstore.Classes()), len(down))
	}
	for _, class := range redisstore.Classes() {
		isDown, ok := down[class]
		if !ok {
			t.Errorf("decide what class %q means to the worker", class)
			continue
		}
		original := &redisstore.Error{Op: "HGET", Key: "k", Class: class, Err: errors.New("x")}
		var want error
		if isDown {
			want = offload.ErrRedisDown
		}
		mustMean(t, redisError(original), original, want)
	}
	for _, original := range []error{io.EOF, context.Canceled} { // both are compared with ==
		if got := redisError(original); got != original { //nolint:errorlint // as the reader's contract has it
			t.Errorf("%v became %v", original, got)
		}
	}
	if redisError(nil) != nil {
		t.Error("nil became an error")
	}
}

// constants are the values of a file's constants of a type.
func constants(t *testing.T, file, of string) (values []string) {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); !ok || name.Name != of || len(spec.Values) != 1 {
			return true
		}
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, text)
		return true
	})
	if len(values) == 0 {
		t.Fatalf("no constants of type %s in %s", of, file)
	}
	return values
}

func TestLeaseOfAnotherMakesAFollower(t *testing.T) {
	r := newRig(t)
	r.server.Exec("SET", "korvet:storage:offload:lease", "somebody", "PX", "60000")
	s, err := redisstore.Open(t.Context(), redisstore.Config{URI: r.server.URI()}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := leader{lease.New(s.Client(), lease.Config{Key: "korvet:storage:offload:lease", Duration: demoSealedFor})}
	if _, _, err := l.Acquire(t.Context()); !errors.Is(err, offload.ErrFollower) || !errors.Is(err, lease.ErrHeld) {
		t.Error(err)
	}
	r.server.Exec("DEL", "korvet:storage:offload:lease")
	r.server.Exec("HSET", "korvet:storage:offload:lease", "f", "v")
	if _, _, err := l.Acquire(t.Context()); err == nil || errors.Is(err, offload.ErrFollower) {
		t.Error(err)
	}
}

func TestEveryReasonIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reasons.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range constants(t, "../../offload/errors.go", "Reason") {
		if !strings.Contains(string(page), "`"+reason+"`") {
			t.Errorf("docs/reasons.md does not say what %s is", reason)
		}
	}
}
