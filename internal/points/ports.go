package points

import (
	"context"
	"io"
	"strings"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Wrap puts a hook around every call of every port.
func Wrap(p offload.Ports, h Hook) offload.Ports {
	return offload.Ports{
		Registry:  registry{p.Registry, h},
		Known:     known{p.Known, h},
		Manifests: manifests{p.Manifests, h},
		Streams:   streams{p.Streams, h},
		Removals:  removals{p.Removals, h},
		Clock:     clock{p.Clock, h},
		Encoding:  encoding{p.Encoding, h},
		Store:     store{p.Store, h},
		Gate:      p.Gate,
		Share:     p.Share,
		Pauses:    p.Pauses,
	}
}

// call makes a call with the hook on both sides.
func call[T any](h Hook, port string, do func() (T, error)) (T, error) {
	return named(h, name(port), do)
}

func named[T any](h Hook, point string, do func() (T, error)) (T, error) {
	var none T
	if err := h(point, Before); err != nil {
		return none, err
	}
	v, err := do()
	if lost := h(point, After); lost != nil {
		return none, lost
	}
	return v, err
}

// nothing lets a call that returns only an error be one with a result.
func nothing(do func() error) func() (struct{}, error) {
	return func() (struct{}, error) { return struct{}{}, do() }
}

type registry struct {
	offload.Registry
	hook Hook
}

func (r registry) Topics(ctx context.Context) ([]segment.Topic, error) {
	return call(r.hook, "Registry.Topics", func() ([]segment.Topic, error) { return r.Registry.Topics(ctx) })
}

type known struct { // the port's name is that of its method
	port offload.Known
	hook Hook
}

func (k known) Known(ctx context.Context) (map[string]string, error) {
	return call(k.hook, "Known.Known", func() (map[string]string, error) { return k.port.Known(ctx) })
}

func (k known) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	return call(k.hook, "Known.SwapKnown", func() (bool, error) { return k.port.SwapKnown(ctx, topic, old, new) })
}

type manifests struct {
	offload.Manifests
	hook Hook
}

func (m manifests) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	return call(m.hook, "Manifests.Each", func() (int64, error) { return m.Manifests.Each(ctx, p, take) })
}

func (m manifests) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	return call(m.hook, "Manifests.Peek", func() ([]segment.Peeked, error) { return m.Manifests.Peek(ctx, q) })
}

func (m manifests) Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error) {
	return call(m.hook, "Manifests.Change", func() (bool, error) { return m.Manifests.Change(ctx, p, c) })
}

type streams struct {
	offload.Streams
	hook Hook
}

func (s streams) StreamInfo(ctx context.Context, key string) (offload.StreamInfo, error) {
	return call(s.hook, "Streams.StreamInfo", func() (offload.StreamInfo, error) { return s.Streams.StreamInfo(ctx, key) })
}

func (s streams) Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	return call(s.hook, "Streams.Sizes", func() ([]segment.StreamSize, error) { return s.Streams.Sizes(ctx, q) })
}

func (s streams) Groups(ctx context.Context, key string) ([]segment.Group, error) {
	return call(s.hook, "Streams.Groups", func() ([]segment.Group, error) { return s.Streams.Groups(ctx, key) })
}

// Pages can't fail; a fault of its own shows at the first page.
func (s streams) Pages(key string, from, to segment.ID) offload.PageReader {
	r, err := call(s.hook, "Streams.Pages", func() (offload.PageReader, error) { return s.Streams.Pages(key, from, to), nil })
	return pageReader{r, s.hook, strings.Join(chain(), " "), err}
}

// pageReader knows who asked for the pages: they are fetched elsewhere.
type pageReader struct {
	offload.PageReader // nil after a fault
	hook               Hook
	asked              string
	fault              error
}

func (r pageReader) Next(ctx context.Context, into *segment.Page) error {
	if r.fault != nil {
		return r.fault
	}
	point := strings.TrimSpace(r.asked + " " + name("PageReader.Next"))
	_, err := named(r.hook, point, nothing(func() error { return r.PageReader.Next(ctx, into) }))
	return err
}

func (r pageReader) Close() error {
	if r.fault != nil {
		return r.fault
	}
	_, err := call(r.hook, "PageReader.Close", nothing(r.PageReader.Close))
	return err
}

type removals struct {
	offload.Removals
	hook Hook
}

func (r removals) Remove(ctx context.Context, key string, is offload.StreamInfo) (bool, error) {
	return call(r.hook, "Removals.Remove", func() (bool, error) { return r.Removals.Remove(ctx, key, is) })
}

func (r removals) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	return call(r.hook, "Removals.Trim", func() (bool, error) { return r.Removals.Trim(ctx, key, piece) })
}

type clock struct {
	offload.Clock
	hook Hook
}

func (c clock) Now(ctx context.Context) (time.Time, error) {
	return call(c.hook, "Clock.Now", func() (time.Time, error) { return c.Clock.Now(ctx) })
}

type encoding struct {
	offload.Encoding
	hook Hook
}

// NewEncoder can't fail; a fault of its own shows at the first page.
func (e encoding) NewEncoder(w io.Writer, s offload.FileOf) offload.Encoder {
	enc, err := call(e.hook, "Encoding.NewEncoder", func() (offload.Encoder, error) { return e.Encoding.NewEncoder(w, s), nil })
	return encoder{enc, e.hook, err}
}

func (e encoding) Check(r io.ReaderAt, size int64, s offload.FileOf) (segment.Contents, error) {
	return call(e.hook, "Encoding.Check", func() (segment.Contents, error) { return e.Encoding.Check(r, size, s) })
}

type encoder struct {
	offload.Encoder // nil after a fault
	hook            Hook
	fault           error
}

func (e encoder) Write(p *segment.Page) error {
	if e.fault != nil {
		return e.fault
	}
	_, err := call(e.hook, "Encoder.Write", nothing(func() error { return e.Encoder.Write(p) }))
	return err
}

func (e encoder) Close() (segment.Contents, error) {
	if e.fault != nil {
		return segment.Contents{}, e.fault
	}
	return call(e.hook, "Encoder.Close", e.Encoder.Close)
}

type store struct {
	offload.Store
	hook Hook
}

func (s store) Put(ctx context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	return call(s.hook, "Store.Put", func() (offload.ObjectInfo, error) { return s.Store.Put(ctx, o) })
}

func (s store) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	return call(s.hook, "Store.Stat", func() (offload.ObjectInfo, error) { return s.Store.Stat(ctx, path) })
}

func (s store) Delete(ctx context.Context, paths []string) []error {
	errs, err := call(s.hook, "Store.Delete", func() ([]error, error) { return s.Store.Delete(ctx, paths), nil })
	for range paths {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (s store) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	var body io.ReadCloser
	_, err := call(s.hook, "Store.Open", nothing(func() (err error) {
		body, err = s.Store.Open(ctx, path)
		return err
	}))
	if err != nil && body != nil { // it was opened, and the answer was lost
		_ = body.Close()
	}
	return body, err
}

func (s store) CreateOnly(ctx context.Context) (bool, error) {
	return call(s.hook, "Store.CreateOnly", func() (bool, error) { return s.Store.CreateOnly(ctx) })
}
