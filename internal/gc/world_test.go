package gc

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/internal/catalog"
	"korvet-offload/internal/testkit/memstore"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	errInjected = errors.New("injected")
	errForeign  = errors.New("it is somebody's table")

	errOtherLife = errors.New("it is of another life")
)

// world is a Redis and a store, both in memory, and what happens to them between
// the collector's calls.
type world struct {
	t         *testing.T
	layout    segment.Layout
	store     *memstore.Store
	manifests map[segment.Partition]map[string]string
	topics    []segment.Topic
	known     map[string]string
	pauses    map[string]string
	opt       Options
	age       time.Duration // of every object and upload
	notOurs   error
	foreign   map[string]bool // objects that are no segment files
	newest    segment.ID      // last id of all that are
	otherLife map[string]bool // objects that are no copies of what others of their segment are
	readFails error           // of two copies that are compared
	unstarted []s3sink.Unfinished
	aborted   []string
	short     map[segment.Partition]int64 // fields that come too few
	broken    map[segment.Partition]error
	extra     []s3sink.Info // what listings show beside what there is

	on    map[string][]func() // by call: what happens before the n-th
	calls map[string]int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, layout: segment.DefaultLayout(), store: memstore.New(s3sink.Owner{Namespace: "korvet"}), manifests: map[segment.Partition]map[string]string{},
		known: map[string]string{}, pauses: map[string]string{}, opt: Options{OlderThan: MinAge, Uploads: true}, age: 10 * MinAge,
		foreign: map[string]bool{}, otherLife: map[string]bool{}, short: map[segment.Partition]int64{}, broken: map[segment.Partition]error{}, on: map[string][]func(){}, calls: map[string]int{}}
	w.topic("orders", 1)
	return w
}

func (w *world) topic(name string, partitions int) {
	t := segment.Topic{Name: name, Settings: segment.DefaultTopicSettings()}
	t.Settings.Partitions, t.Settings.RemoteStorage = partitions, true
	w.topics = append(w.topics, t)
}

// happens makes something happen before the n-th call, from 1, of a kind.
func (w *world) happens(call string, n int, what func()) {
	for len(w.on[call]) < n {
		w.on[call] = append(w.on[call], nil)
	}
	w.on[call][n-1] = what
}

func (w *world) enter(call string) {
	w.calls[call]++
	if n := w.calls[call]; n <= len(w.on[call]) && w.on[call][n-1] != nil {
		w.on[call][n-1]()
	}
}

func part(topic string) segment.Partition { return segment.Partition{Topic: topic} }

// put stores an object and returns what an entry says of it.
func (w *world) put(path, body string) *segment.Object {
	w.t.Helper()
	sum := sha256.Sum256([]byte(body))
	u := s3sink.Upload{Key: path, Body: bytes.NewReader([]byte(body)), Size: int64(len(body)), SHA256: hex.EncodeToString(sum[:])}
	info, err := w.store.Put(context.Background(), u)
	if err != nil {
		w.t.Fatal(err)
	}
	return &segment.Object{Path: path, Bytes: info.Size, ETag: info.ETag, SHA256: u.SHA256}
}

func (w *world) path(p segment.Partition, n segment.Number, copied int64) string {
	return segment.ObjectPath(w.layout.Folder(p), n, copied, "")
}

func (w *world) set(p segment.Partition, n segment.Number, e segment.Entry) {
	if w.manifests[p] == nil {
		w.manifests[p] = map[string]string{}
	}
	w.manifests[p][n.String()] = string(e.Encode())
}

// remote is a segment that is REMOTE, GONE, with its object, and the older copies
// of it that lie about.
func (w *world) remote(p segment.Partition, n segment.Number, copied int64) segment.Entry {
	w.t.Helper()
	for c := range copied + 1 {
		o := w.put(w.path(p, n, c), fmt.Sprintf("%s/%s copy %d", p, n, c))
		if c == copied {
			e := segment.Entry{State: segment.Sealed, Tier: segment.Remote, Local: segment.Gone, Copy: copied, Count: 1, Object: o}
			w.set(p, n, e)
			return e
		}
	}
	return segment.Entry{}
}

// local is a segment that is LOCAL.
func (w *world) local(p segment.Partition, n segment.Number, copied int64) {
	w.set(p, n, segment.Entry{State: segment.Sealed, Tier: segment.Local, Copy: copied, Count: 1})
}

func (w *world) collector() *Collector {
	return New(Ports{Registry: w, Manifests: w, Store: w, Uploads: w, Now: w.now, Owned: w.owned, File: w.file, Earlier: w.earlier}, w.layout, w.opt)
}

func (w *world) now(context.Context) (time.Time, error) { return time.Now().Add(w.age), nil }
func (w *world) owned(context.Context) error            { w.enter("owned"); return w.notOurs }

func (w *world) file(_ context.Context, _ segment.Partition, o catalog.Object) (segment.Contents, error) {
	w.enter("file")
	if w.foreign[o.Info.Key] {
		return segment.Contents{}, errForeign
	}
	return segment.Contents{LastID: w.newest}, nil
}

func (w *world) earlier(_ context.Context, _ segment.Partition, o catalog.Object, named segment.Object) error {
	w.enter("earlier")
	if w.otherLife[o.Info.Key] || w.otherLife[named.Path] {
		return errOtherLife
	}
	return w.readFails
}

func (w *world) Topics(context.Context) ([]segment.Topic, error) {
	w.enter("topics")
	return slices.Clone(w.topics), nil
}

func (w *world) Known(context.Context) (map[string]string, error) { return w.known, nil }

func (w *world) Paused(context.Context) (segment.Pauses, error) {
	w.enter("paused")
	return segment.ParsePauses(w.pauses), nil
}

func (w *world) Each(_ context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	w.enter("each")
	for _, f := range slices.Sorted(maps.Keys(w.manifests[p])) {
		take(f, w.manifests[p][f])
	}
	return int64(len(w.manifests[p])) + w.short[p], w.broken[p]
}

func (w *world) Peek(_ context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	w.enter("peek")
	all := make([]segment.Peeked, len(q))
	for i, one := range q {
		all[i].Fields, all[i].Err = int64(len(w.manifests[one.Partition])), w.broken[one.Partition]
		for _, n := range one.Numbers {
			all[i].Raw = append(all[i].Raw, w.manifests[one.Partition][n.String()])
		}
	}
	return all, nil
}

func (w *world) List(ctx context.Context, prefix string) iter.Seq2[s3sink.Info, error] {
	w.enter("list")
	return func(yield func(s3sink.Info, error) bool) {
		var all []s3sink.Info
		for info, err := range w.store.List(ctx, prefix) {
			if err != nil {
				yield(info, err)
				return
			}
			all = append(all, info)
		}
		for _, info := range append(all, w.extra...) {
			if strings.HasPrefix(info.Key, prefix) && !yield(info, nil) {
				return
			}
		}
	}
}

func (w *world) Stat(ctx context.Context, key string) (s3sink.Info, error) {
	w.enter("stat")
	return w.store.Stat(ctx, key)
}

func (w *world) Delete(ctx context.Context, keys []string) []error {
	w.enter("delete")
	return w.store.Delete(ctx, keys)
}

func (w *world) Uploads(context.Context) iter.Seq2[s3sink.Unfinished, error] {
	return func(yield func(s3sink.Unfinished, error) bool) {
		for _, u := range w.unstarted {
			if !yield(u, nil) {
				return
			}
		}
	}
}

func (w *world) AbortUpload(_ context.Context, u s3sink.Unfinished) error {
	w.aborted = append(w.aborted, u.ID)
	return nil
}

// look looks, and must go well.
func (w *world) look() Plan {
	w.t.Helper()
	plan, err := w.collector().Look(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return plan
}

// names are the paths of candidates.
func names(all []Candidate) []string {
	list := []string{}
	for _, c := range all {
		list = append(list, strings.TrimPrefix(c.Object.Info.Key, "korvet:storage:local:"))
	}
	return list
}

// collect looks, then removes, with something that happens in between, and
// returns what was deleted and why others were not.
func (w *world) collect(ctx context.Context, between func()) (deleted []string, why string, err error) {
	w.t.Helper()
	plan := w.look()
	clear(w.calls)
	between()
	deleted = []string{}
	err = w.collector().Remove(ctx, plan, func(o Outcome) {
		switch {
		case o.Object == nil:
			deleted = append(deleted, "upload "+o.Upload.ID)
		case o.Result == Deleted:
			deleted = append(deleted, names([]Candidate{*o.Object})...)
		default:
			why += fmt.Sprintf("%s: %s%v\n", o.Result, o.Why, o.Err)
		}
	})
	return deleted, why, err
}

// must checks what a plan would delete.
func (w *world) must(what string, want ...string) Plan {
	w.t.Helper()
	plan := w.look()
	if got := names(plan.Objects); !slices.Equal(got, want) {
		w.t.Errorf("%s: %q would go, want %q", what, got, want)
	}
	return plan
}

func (w *world) pause(s segment.Scope) { w.pauses[s.Field()] = segment.Pause{Scope: s}.Encode() }
