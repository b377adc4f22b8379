package points

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// deaf is every port: it does nothing, and counts.
type deaf struct{ calls *int }

func (d deaf) note()                                           { *d.calls++ }
func (d deaf) Topics(context.Context) ([]segment.Topic, error) { d.note(); return nil, nil }
func (d deaf) Known(context.Context) (map[string]string, error) {
	d.note()
	return map[string]string{}, nil
}

func (d deaf) SwapKnown(context.Context, string, string, string) (bool, error) {
	d.note()
	return true, nil
}

func (d deaf) Each(context.Context, segment.Partition, func(field, value string)) (int64, error) {
	d.note()
	return 0, nil
}
func (d deaf) Peek(context.Context, []segment.Peek) ([]segment.Peeked, error) {
	d.note()
	return nil, nil
}

func (d deaf) Change(context.Context, segment.Partition, segment.Change) (bool, error) {
	d.note()
	return true, nil
}

func (d deaf) StreamInfo(context.Context, string) (offload.StreamInfo, error) {
	d.note()
	return offload.StreamInfo{}, nil
}

func (d deaf) Sizes(context.Context, []segment.SizeQuery) ([]segment.StreamSize, error) {
	d.note()
	return nil, nil
}
func (d deaf) Groups(context.Context, string) ([]segment.Group, error) { d.note(); return nil, nil }
func (d deaf) Remove(context.Context, string, offload.StreamInfo) (bool, error) {
	d.note()
	return true, nil
}
func (d deaf) Trim(context.Context, string, segment.Piece) (bool, error) { d.note(); return true, nil }
func (d deaf) Now(context.Context) (time.Time, error)                    { d.note(); return time.UnixMilli(5), nil }
func (d deaf) Put(context.Context, offload.Upload) (offload.ObjectInfo, error) {
	d.note()
	return offload.ObjectInfo{}, nil
}

func (d deaf) Stat(context.Context, string) (offload.ObjectInfo, error) {
	d.note()
	return offload.ObjectInfo{}, nil
}
func (d deaf) Delete(_ context.Context, p []string) []error { d.note(); return make([]error, len(p)) }
func (d deaf) Open(context.Context, string) (io.ReadCloser, error) {
	d.note()
	return io.NopCloser(strings.NewReader("")), nil
}
func (d deaf) CreateOnly(context.Context) (bool, error) { d.note(); return true, nil }
func (d deaf) Check(io.ReaderAt, int64, offload.FileOf) (segment.Contents, error) {
	d.note()
	return segment.Contents{}, nil
}
func (d deaf) Pages(string, segment.ID, segment.ID) offload.PageReader { return deafReader{d} }
func (d deaf) NewEncoder(io.Writer, offload.FileOf) offload.Encoder    { return deafEncoder{d} }
func (d deaf) ports() offload.Ports {
	return offload.Ports{Registry: d, Known: d, Manifests: d, Streams: d, Removals: d, Clock: d, Encoding: d, Store: d}
}

type deafReader struct{ deaf }

func (d deafReader) Next(context.Context, *segment.Page) error { d.note(); return nil }
func (d deafReader) Close() error                              { d.note(); return nil }

type deafEncoder struct{ deaf }

func (d deafEncoder) Write(*segment.Page) error        { d.note(); return nil }
func (d deafEncoder) Close() (segment.Contents, error) { d.note(); return segment.Contents{}, nil }

// eachMethod calls every method of every port with zero values, those of
// readers and encoders too, and says of each whether it returned an error.
func eachMethod(p offload.Ports, told func(method string, err error)) {
	ports := reflect.ValueOf(p)
	for i := range ports.NumField() {
		if ports.Field(i).IsNil() {
			continue // Gate, Pauses and Share change nothing
		}
		methods(ports.Field(i).Elem(), ports.Type().Field(i).Type, told)
	}
}

func methods(v reflect.Value, port reflect.Type, told func(string, error)) {
	for i := range port.NumMethod() {
		m := port.Method(i)
		var args []reflect.Value
		for j := range m.Type.NumIn() {
			args = append(args, reflect.New(m.Type.In(j)).Elem())
		}
		if m.Name == "Delete" {
			args[1] = reflect.ValueOf([]string{"a"})
		}
		results := v.MethodByName(m.Name).Call(args)
		last := results[len(results)-1]
		if last.Kind() == reflect.Interface && last.Type().NumMethod() > 1 {
			methods(last.Elem(), last.Type(), told)
			continue
		}
		if last.Kind() == reflect.Slice {
			last = last.Index(0)
		}
		err, _ := last.Interface().(error)
		told(port.Name()+"."+m.Name, err)
	}
}

func TestEveryMethodPassesAPoint(t *testing.T) {
	var before, after []string
	calls := 0
	wrapped := Wrap(deaf{&calls}.ports(), func(point string, s Side) error {
		if s == Before {
			before = append(before, Call(point))
		} else {
			after = append(after, Call(point))
		}
		return nil
	})
	var made []string
	eachMethod(wrapped, func(method string, err error) {
		made = append(made, method)
		if err != nil {
			t.Errorf("%s: %v", method, err)
		}
	})
	if calls != len(made) || len(made) < 22 {
		t.Errorf("%d calls came through of %d", calls, len(made))
	}
	for _, m := range append(made, "Streams.Pages", "Encoding.NewEncoder") {
		if !slices.Contains(before, m) || !slices.Contains(after, m) {
			t.Errorf("%s has no point", m)
		}
	}
}

func TestAFaultTakesThePlaceOfTheCallOrOfItsAnswer(t *testing.T) {
	for side, want := range map[Side]int{Before: 0, After: 18} {
		calls := 0
		fault := errors.New("fault")
		wrapped := Wrap(deaf{&calls}.ports(), func(_ string, s Side) error {
			if s == side {
				return fault
			}
			return nil
		})
		eachMethod(wrapped, func(method string, err error) {
			if !errors.Is(err, fault) {
				t.Errorf("%s %s: %v", side, method, err)
			}
		})
		if calls < want || want == 0 && calls > 0 {
			t.Errorf("%s: %d calls came through", side, calls)
		}
	}
}

func TestPointsAreNamedByTheStack(t *testing.T) {
	var points []string
	calls := 0
	w := offload.New(offload.DefaultConfig(), segment.DefaultLayout(), Wrap(deaf{&calls}.ports(), func(p string, s Side) error {
		if s == Before {
			points = append(points, p)
		}
		return nil
	}), nil)
	if _, err := w.Scan(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"Worker.Scan Worker.scan Clock.Now", "Worker.Scan Worker.scan Registry.Topics", "Worker.Scan Worker.scan Known.Known",
		"Worker.Scan Worker.scan Worker.readManifests Worker.peek Manifests.Peek", "Worker.Scan Worker.scan Worker.measure Streams.Sizes"}
	if !slices.Equal(points, want) {
		t.Errorf("points %q\nwant   %q", points, want)
	}
	if got := Site(points[3]); got != "Worker.peek Manifests.Peek" {
		t.Errorf("site %q", got)
	}
}

func TestFunctionOfASymbol(t *testing.T) {
	for symbol, want := range map[string]string{
		"(*copying).flip":                              "copying.flip",
		"(*copying).flip-fm":                           "copying.flip",
		"(*pass).each.func1":                           "pass.each",
		"(*pass).each.func1.2":                         "pass.each",
		"(*pass).each.func1.gowrap1":                   "pass.each",
		"(*pass).expire.(*pass).deleteBatch.func1":     "pass.deleteBatch",
		"(*Worker).readManifests.func1-range2":         "Worker.readManifests",
		"(*pass).expire-range1":                        "pass.expire",
		"(*pass).expire.Chunk[go.shape.[]a.b,c].func2": "",
		"guarded":                       "guarded",
		"guarded.func1":                 "guarded",
		"roster.write":                  "roster.write",
		"(*pass).attempt.guarded.func1": "guarded",
		"(*fetcher).run.(*fetcher).next.func1.deferwrap1.1": "fetcher.next",
	} {
		if got := function(symbol); got != want {
			t.Errorf("%s: %q, want %q", symbol, got, want)
		}
	}
}
