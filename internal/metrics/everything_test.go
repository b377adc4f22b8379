package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"korvet-offload/internal/scrub"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// everything makes every reason, class, operation, result and guard happen.
func everything(b *bench) {
	loop, o := b.LoopObserver(), b.Observer()
	loop.Leads()
	b.SetPaused(true, 1)
	b.SetUploadRate(5)
	b.SetEviction("none")
	b.SetMemory("n", 100, 1000)
	b.now = b.now.Add(time.Minute)
	b.SetMemory("n", 200, 1000)
	p := plan(named("a"), named("b"))
	p.Topics[0].Settings.LocalRetentionMs = 60_000
	waits(&p, "a", 1, time.Second, 10)
	waits(&p, "a", 2, time.Hour, 10)
	for i, reason := range offload.Reasons() {
		p.Problems = append(p.Problems, offload.Problem{Topic: "a", Partition: i, Reason: reason})
	}
	o.Planned(p)
	for _, result := range offload.Results() {
		if result != offload.Nothing {
			out := copied("a", 1)
			out.Result = result
			o.Finished(out)
		}
	}
	for _, out := range []offload.Outcome{
		{Action: offload.Drop, Result: offload.Reopened, Cause: segment.ErrStreamChanged},
		{Action: offload.Drop, Result: offload.Reopened, Cause: errors.New("damaged")},
		{Action: offload.Delete, Result: offload.Reopened},
	} {
		o.Finished(out)
	}
	for _, a := range []offload.Action{"", offload.Create, offload.Copy, offload.Drop, offload.Hide} {
		for _, reason := range offload.Reasons() {
			o.Failed(offload.Problem{Topic: "a", Action: a, Reason: reason, Took: time.Second})
		}
	}
	loop.Failed(errors.New("no lease"))
	report := offload.Report{Plan: p, Problems: p.Problems}
	for _, phase := range offload.PassPhases() {
		report.Phases = append(report.Phases, offload.PhaseTime{Phase: phase})
	}
	loop.Passed(report, nil)
	loop.Passed(offload.Report{}, offload.ErrRedisDown)
	store(b)
	ports(b)
	b.UploadWaited(time.Second)
	b.VerifyRead(1, 7)
	loop.Lost(errors.New("gone"))
	loop.Leads()
	o.Planned(p)
	loop.Passed(report, nil)
	b.Verified(map[scrub.Kind]int64{scrub.Gap: 2})
}

func store(b *bench) {
	for _, op := range append(s3sink.Operations(), "bucket policy") {
		b.StoreCall(s3sink.Call{Op: op, Took: time.Millisecond, Waited: time.Second})
		for _, class := range s3sink.Classes() {
			b.StoreCall(s3sink.Call{Op: op, Class: class})
			b.StoreEvent(s3sink.Event{Op: op, Class: class, Attempt: 1})
		}
	}
	b.StoreEvent(s3sink.Event{Op: "limit", Limit: 3})
	b.StoreEvent(s3sink.Event{Op: "abort", Class: s3sink.ClassOther}) // no retry
}

// ports goes through every port that is watched, once well and once badly.
func ports(b *bench) {
	ctx := context.Background()
	for _, err := range []error{nil, errors.New("refused"), fmt.Errorf("%w: x", offload.ErrNotReplicated), fmt.Errorf("%w: x", offload.ErrObjectExists)} {
		p := b.Ports(answering(err))
		_, _ = p.Known.SwapKnown(ctx, "t", "", "")
		_, _ = p.Manifests.Change(ctx, segment.Partition{}, segment.Change{})
		_, _ = p.Removals.Remove(ctx, "k", offload.StreamInfo{})
		_, _ = p.Removals.Trim(ctx, "k", segment.Piece{})
		_ = p.Streams.Pages("k", segment.ID{}, segment.ID{}).Next(ctx, nil)
		_, _ = p.Store.Put(ctx, offload.Upload{Size: 7})
		if body, err := p.Store.Open(ctx, "o"); err == nil {
			_, _ = io.Copy(io.Discard, body)
		}
	}
}

// answering are ports that refuse, or fail with an error.
func answering(err error) offload.Ports {
	a := answers{err}
	return offload.Ports{Known: known{a}, Manifests: manifests{err: err}, Streams: streams{err: err}, Removals: a, Store: objects{err: err}}
}

type answers struct{ err error }

func (a answers) Remove(context.Context, string, offload.StreamInfo) (bool, error) {
	return false, a.err
}
func (a answers) Trim(context.Context, string, segment.Piece) (bool, error) { return false, a.err }

type known struct{ answers }

func (k known) Known(context.Context) (map[string]string, error) { return nil, k.err }
func (k known) SwapKnown(context.Context, string, string, string) (bool, error) {
	return false, k.err
}

type manifests struct {
	offload.Manifests
	err error
}

func (m manifests) Change(context.Context, segment.Partition, segment.Change) (bool, error) {
	return false, m.err
}

type streams struct {
	offload.Streams
	err error
}

func (s streams) Pages(string, segment.ID, segment.ID) offload.PageReader { return pages{s.err} }

type pages struct{ err error }

func (p pages) Next(context.Context, *segment.Page) error { return p.err }
func (pages) Close() error                                { return nil }

type objects struct {
	offload.Store
	err error
}

func (o objects) Put(context.Context, offload.Upload) (offload.ObjectInfo, error) {
	return offload.ObjectInfo{}, o.err
}

func (o objects) Open(context.Context, string) (io.ReadCloser, error) {
	return body{}, o.err
}

type body struct{}

func (body) Read([]byte) (int, error) { return 0, io.EOF }
func (body) Close() error             { return nil }
