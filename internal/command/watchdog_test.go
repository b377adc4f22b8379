package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/ops"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const stallLimit = 5 * time.Minute

func TestWatchdog(t *testing.T) {
	//fault:network | a step of a pass never returns | a call that is begun and not ended, under a simulated clock | the pass counts as hung after the stall-timeout, the oldest call is named, and nothing is said between passes
	synctest.Test(t, func(t *testing.T) {
		d := newWatchdog(stallLimit)
		quiet := func(when string) {
			t.Helper()
			if err := d.stalled(); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		time.Sleep(time.Hour)
		quiet("before the first pass")
		first := d.call("put object", "a.parquet")
		for range 10 {
			time.Sleep(stallLimit)
			quiet("while a body moves")
			d.moves()
		}
		time.Sleep(stallLimit / 2)
		second := d.call("read stream", "k")
		time.Sleep(stallLimit)
		quiet("just before the limit")
		time.Sleep(time.Second)
		want := `no progress for 5m1s in "put object a.parquet", begun 57m31s ago, and in 1 more (korvet.storage.offload.stall-timeout)`
		if err := d.stalled(); err == nil || err.Error() != want {
			t.Errorf("a pass that hangs: %v, want %s", err, want)
		}
		second()
		quiet("after one of the calls has returned")
		first()
		time.Sleep(stallLimit + time.Second)
		if err := d.stalled(); err == nil || !strings.Contains(err.Error(), "between two steps") {
			t.Errorf("a pass that does nothing: %v", err)
		}
		d.rest()
		time.Sleep(time.Hour)
		quiet("between two passes")
		d.moves() // a transport that reads on for a moment
		time.Sleep(time.Hour)
		quiet("after a late read")
	})
}

func TestAStoreThatDoesNotAnswer(t *testing.T) {
	//fault:network | the store takes requests and answers none | a call of the store in which nothing is heard, under a simulated clock | the program is not ready after half a minute, long before the call gives up
	synctest.Test(t, func(t *testing.T) {
		d := newWatchdog(stallLimit)
		end := d.call("read stream", "k")
		time.Sleep(time.Minute)
		if err := d.silent(); err != nil {
			t.Errorf("the store is not asked: %v", err)
		}
		end()
		end = d.storeCall("put object", "a")
		for range 5 {
			time.Sleep(silenceLimit)
			if err := d.silent(); err != nil {
				t.Errorf("while a body moves: %v", err)
			}
			d.hears()
		}
		time.Sleep(silenceLimit / 2)
		d.moves() // an attempt that failed is no answer
		time.Sleep(silenceLimit)
		if err := d.silent(); err == nil || err.Error() != `the store has not answered for 45s to "put object a"` {
			t.Errorf("%v", err)
		}
		end()
		if err := d.silent(); err != nil {
			t.Errorf("after the call: %v", err)
		}
	})
}

// Every method of every port is watched, those that are yet to come as well.
func TestEveryPortIsWatched(t *testing.T) {
	d := newWatchdog(stallLimit)
	unwatched := []string{"Streams.Pages", "Encoding.NewEncoder"} // what they return is watched, below
	ports := reflect.ValueOf(d.watch(offload.Ports{}))
	for i := range ports.NumField() {
		if name := ports.Type().Field(i).Name; name == "Gate" || name == "Share" {
			continue // they wait for nothing
		}
		eachMethod(ports.Type().Field(i).Name, ports.Field(i), func(name string, call func()) {
			if d.rest(); slices.Contains(unwatched, name) {
				return
			}
			if call(); d.moved.IsZero() {
				t.Errorf("%s is called without the watchdog knowing", name)
			}
		})
	}
	for _, inner := range []any{watchedPages{dog: d}, watchedEncoder{dog: d}, watchedObject{dog: d}} {
		v := reflect.ValueOf(inner)
		eachMethod(v.Type().Name(), v, func(name string, call func()) {
			if end := strings.HasSuffix(name, "Close") && !strings.HasPrefix(name, "watchedEncoder"); end {
				return // it waits for nothing
			}
			d.rest()
			d.call("begin", "a pass")()
			before := d.moved
			if call(); !d.moved.After(before) {
				t.Errorf("%s is called without the watchdog knowing", name)
			}
		})
	}
}

// eachMethod visits the methods of a port whose inner port is nil: calling one
// panics, but not before it has told the watchdog.
func eachMethod(name string, port reflect.Value, visit func(name string, call func())) {
	if port.Kind() == reflect.Interface {
		port = port.Elem()
	}
	for i := range port.NumMethod() {
		m := port.Method(i)
		args := make([]reflect.Value, m.Type().NumIn())
		for k := range args {
			args[k] = reflect.Zero(m.Type().In(k))
		}
		visit(name+"."+port.Type().Method(i).Name, func() {
			defer func() { _ = recover() }()
			m.Call(args)
		})
	}
}

// slowPorts is a store and a manifest whose calls take as long as a test says,
// and in which something moves all the time.
type slowPorts struct {
	offload.Store
	offload.Manifests
	pieces int
}

const pieceTime = stallLimit - time.Second

func (s slowPorts) Put(_ context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	for range s.pieces {
		<-time.After(pieceTime)
		if _, err := o.Body.ReadAt(make([]byte, 1), 0); err != nil {
			return offload.ObjectInfo{}, err
		}
	}
	return offload.ObjectInfo{}, nil
}

func (s slowPorts) Open(context.Context, string) (io.ReadCloser, error) { return s, nil }
func (s slowPorts) Close() error                                        { return nil }

func (s slowPorts) Read(p []byte) (int, error) {
	<-time.After(pieceTime)
	return min(1, len(p)), nil
}

func (s slowPorts) Each(_ context.Context, _ segment.Partition, take func(string, string)) (int64, error) {
	for range s.pieces {
		<-time.After(pieceTime)
		for range fieldStep {
			take("", "")
		}
	}
	return int64(s.pieces * fieldStep), nil
}

// A call may last for as long as it likes, if something moves in it.
func TestSlowIsNotHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatchdog(stallLimit)
		slow := slowPorts{pieces: 20}
		p := d.watch(offload.Ports{Store: slow, Manifests: slow})
		ctx, end := context.WithCancel(t.Context())
		go func() {
			tick := time.NewTicker(time.Minute)
			defer tick.Stop()
			for {
				if err := d.stalled(); err != nil {
					t.Error(err)
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
			}
		}()
		if _, err := p.Store.Put(ctx, offload.Upload{Path: "a", Body: bytes.NewReader([]byte("x")), Size: 1}); err != nil {
			t.Error(err)
		}
		body, err := p.Store.Open(ctx, "a")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(body, make([]byte, 20)); err != nil {
			t.Error(err)
		}
		if n, err := p.Manifests.Each(ctx, segment.Partition{}, func(string, string) {}); err != nil || n != 20*fieldStep {
			t.Errorf("%d fields, %v", n, err)
		}
		end()
	})
}

// An attempt that failed is a step forward: the next one has its own deadline.
func TestAttemptsMoveTheWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatchdog(stallLimit)
		heard := 0
		tell := d.hearing(func(s3sink.Event) { heard++ })
		defer d.call("look at object", "a")()
		for range 5 {
			time.Sleep(stallLimit)
			tell(s3sink.Event{Op: "stat", Err: errors.New("no answer")})
			if err := d.stalled(); err != nil {
				t.Error(err)
			}
		}
		if heard != 5 {
			t.Errorf("%d events were passed on", heard)
		}
	})
}

// An instance that follows, or can't ask for the lease, looks at the clock at
// each tick and has no pass that could hang, however long its ticks are.
func TestAFollowerDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newWatchdog(stallLimit)
		l := loopJournal{newJournal(zap.NewNop(), ops.NewHealth(nil)), d.rest, nil}
		for _, told := range []func(){l.Follows, func() { l.Failed(errors.New("refused")) }} {
			d.call("read", "the clock")()
			told()
			time.Sleep(2 * stallLimit)
			if err := d.stalled(); err != nil {
				t.Error(err)
			}
		}
	})
}
