package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"korvet-offload/s3sink"
)

//fault:operator | The folder of the objects is not mounted, or remote-path names another place | Another folder, empty, in place of the one with the objects, before run, run --once and the first upload | Exit code 2 at the start, with what to do; no marker, no file and no id is written, and nothing counts as deleted
func TestARootWithoutTheObjects(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	mounted := rig.root() + "-mounted"
	if err := os.Rename(rig.root(), mounted); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(rig.root(), 0o700); err != nil {
		t.Fatal(err)
	}
	before := rig.server.Exec("HGETALL", "korvet:storage:manifest:orders:0")
	environ := append(slices.Clone(rig.environ), "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=127.0.0.1:0")
	for _, verb := range []string{"run --once", "run"} {
		r := call(t, environ, strings.Fields(verb)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "mount the disk") || !strings.Contains(r.stderr, "restore --claim --yes") {
			t.Fatalf("%s: %+v", verb, r) // and a daemon that does start does not end
		}
	}
	s := sessionOf(t, environ, quiet{}) // as one that could not ask the store at its start
	if _, err := s.store.CreateOnly(t.Context()); !errors.Is(err, s3sink.ErrAnotherRoot) || s3sink.ClassOf(err) != s3sink.ClassInvalid {
		t.Errorf("the first upload: %v", err)
	}
	for _, err := range (objectStore{s.store}).Delete(t.Context(), []string{"korvet:storage:local:orders:0/0.parquet"}) {
		if !errors.Is(err, s3sink.ErrAnotherRoot) {
			t.Errorf("a deletion: %v", err)
		}
	}
	if files, err := os.ReadDir(rig.root()); err != nil || len(files) > 0 {
		t.Errorf("there are %v, %v", files, err)
	}
	if after := rig.server.Exec("HGETALL", "korvet:storage:manifest:orders:0"); after != before {
		t.Errorf("the manifest was\n%s\nand is\n%s", before, after)
	}

	if err := os.Remove(rig.root()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(mounted, rig.root()); err != nil {
		t.Fatal(err)
	}
	mustRead(t, call(t, environ, "run", "--once"), exitDone, "")
}

// A root whose marker alone is lost is the right one. So is one that a person
// claims as it is.
func TestARootWithoutItsMarker(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	id := rig.cluster()
	if err := os.Remove(filepath.Join(rig.root(), s3sink.MarkerKey)); err != nil {
		t.Fatal(err)
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	s := sessionOf(t, rig.environ, quiet{})
	if _, err := s.store.CreateOnly(t.Context()); err != nil || rig.marker(t).Cluster != id {
		t.Errorf("the marker is %+v, redis is %q, %v", rig.marker(t), id, err)
	}

	if err := os.RemoveAll(rig.root()); err != nil {
		t.Fatal(err)
	}
	if r := call(t, rig.environ, "run", "--once"); r.code != exitUsage {
		t.Errorf("%+v", r)
	}
	mustRead(t, call(t, rig.environ, "restore", "--claim"), exitDone, "", "this Redis would claim it as it is", "--yes does it")
	if _, err := os.Stat(rig.root()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was claimed: %v", err)
	}
	mustRead(t, call(t, rig.environ, "restore", "--claim", "--yes"), exitDone, "", "has claimed the root as it is")
	if got := rig.marker(t); got.Cluster != id {
		t.Errorf("the marker is %+v, redis is %q", got, id)
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
}

// The oldest object may have gone with the marker, as a rule of the bucket deletes
// both first: with others of its partition beside it the root is the right one.
func TestARootThatHasLostItsOldestObject(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	for _, name := range []string{s3sink.MarkerKey, "korvet:storage:local:orders:0/0.parquet"} {
		if err := os.Remove(filepath.Join(rig.root(), name)); err != nil {
			t.Fatal(err)
		}
	}
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
}

// The objects of a topic that has left the registry tell, too.
func TestARootWithoutTheObjectsOfARemovedTopic(t *testing.T) {
	rig := newRig(t)
	mustRead(t, call(t, rig.environ, "run", "--once"), exitDone, "")
	if err := os.RemoveAll(rig.root()); err != nil {
		t.Fatal(err)
	}
	rig.server.Exec("DEL", "korvet:topics", "korvet:topic:orders")
	if r := call(t, rig.environ, "run", "--once"); r.code != exitUsage || !strings.Contains(r.stderr, "mount the disk") {
		t.Errorf("%+v", r)
	}
}

// What keeps the look from an answer keeps the marker from being put.
func TestARootThatNobodyCanTell(t *testing.T) {
	k := &keeper{}
	c := &cluster{redis: k, objects: func(context.Context) error { return errors.New("away") }}
	if id, err := c.ID(t.Context()); err == nil || id != "" || k.id != "" {
		t.Errorf("%q, %v", id, err)
	}
	c.empty.Store(true)
	if id, err := c.ID(t.Context()); err != nil || id == "" || k.id != id {
		t.Errorf("%q, %v", id, err)
	}
}
