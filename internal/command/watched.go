package command

import (
	"context"
	"io"
	"net/http/httptrace"
	"slices"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// watch makes a watchdog see all that goes through ports.
func (d *watchdog) watch(p offload.Ports) offload.Ports {
	return offload.Ports{
		Registry:  watchedRegistry{p.Registry, d},
		Known:     watchedKnown{p.Known, d},
		Manifests: watchedManifests{p.Manifests, d},
		Streams:   watchedStreams{p.Streams, d},
		Removals:  watchedRemovals{p.Removals, d},
		Clock:     watchedClock{p.Clock, d},
		Encoding:  watchedEncoding{p.Encoding, d},
		Store:     watchedStore{p.Store, d},
		Gate:      p.Gate,
		Share:     p.Share,
		Pauses:    watchedPauses{p.Pauses, d},
	}
}

// hearing makes what the store tells of itself move the watchdog: an attempt that
// failed has had a deadline, and the next one has another.
func (d *watchdog) hearing(tell func(s3sink.Event)) func(s3sink.Event) {
	return func(e s3sink.Event) {
		d.moves()
		tell(e)
	}
}

type watchedRegistry struct {
	offload.Registry
	dog *watchdog
}

func (w watchedRegistry) Topics(ctx context.Context) ([]segment.Topic, error) {
	defer w.dog.call("read", "the topic registry")()
	return w.Registry.Topics(ctx)
}

type watchedKnown struct { // the port's name is that of its method
	port offload.Known
	dog  *watchdog
}

func (w watchedKnown) Known(ctx context.Context) (map[string]string, error) {
	defer w.dog.call("read", "the known topics")()
	return w.port.Known(ctx)
}

func (w watchedKnown) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	defer w.dog.call("remember topic", topic)()
	return w.port.SwapKnown(ctx, topic, old, new)
}

type watchedManifests struct {
	offload.Manifests
	dog *watchdog
}

// fieldStep is after how many fields of a manifest, which come by the million,
// the watchdog is told.
const fieldStep = 1000

func (w watchedManifests) Each(ctx context.Context, p segment.Partition, take func(field, value string)) (int64, error) {
	defer w.dog.call("read manifest", p.String())()
	n := 0
	return w.Manifests.Each(ctx, p, func(field, value string) {
		if n++; n%fieldStep == 0 {
			w.dog.moves()
		}
		take(field, value)
	})
}

func (w watchedManifests) Peek(ctx context.Context, q []segment.Peek) ([]segment.Peeked, error) {
	return inPieces(q, func(q []segment.Peek) ([]segment.Peeked, error) {
		defer w.dog.call("read", "entries of manifests")()
		return w.Manifests.Peek(ctx, q)
	})
}

// pieceStep is how many questions are asked in one call: there may be a million
// streams, and each call has to show that something moves.
const pieceStep = 10_000

// inPieces asks all questions, some at a time.
func inPieces[Q, A any](q []Q, ask func([]Q) ([]A, error)) (all []A, err error) {
	if len(q) <= pieceStep {
		return ask(q)
	}
	for piece := range slices.Chunk(q, pieceStep) {
		a, err := ask(piece)
		if err != nil {
			return nil, err
		}
		all = append(all, a...)
	}
	return all, nil
}

func (w watchedManifests) Change(ctx context.Context, p segment.Partition, c segment.Change) (bool, error) {
	defer w.dog.call("change manifest", p.String()+"/"+c.Number.String())()
	return w.Manifests.Change(ctx, p, c)
}

type watchedStreams struct {
	offload.Streams
	dog *watchdog
}

func (w watchedStreams) StreamInfo(ctx context.Context, key string) (offload.StreamInfo, error) {
	defer w.dog.call("look at stream", key)()
	return w.Streams.StreamInfo(ctx, key)
}

func (w watchedStreams) Sizes(ctx context.Context, q []segment.SizeQuery) ([]segment.StreamSize, error) {
	return inPieces(q, func(q []segment.SizeQuery) ([]segment.StreamSize, error) {
		defer w.dog.call("measure", "streams")()
		return w.Streams.Sizes(ctx, q)
	})
}

func (w watchedStreams) Groups(ctx context.Context, key string) ([]segment.Group, error) {
	defer w.dog.call("look at the consumer groups of stream", key)()
	return w.Streams.Groups(ctx, key)
}

func (w watchedStreams) Pages(key string, from, to segment.ID) offload.PageReader {
	return watchedPages{w.Streams.Pages(key, from, to), key, w.dog}
}

type watchedPages struct {
	offload.PageReader
	key string
	dog *watchdog
}

func (w watchedPages) Next(ctx context.Context, into *segment.Page) error {
	defer w.dog.call("read stream", w.key)()
	return w.PageReader.Next(ctx, into)
}

type watchedRemovals struct {
	offload.Removals
	dog *watchdog
}

func (w watchedRemovals) Remove(ctx context.Context, key string, is offload.StreamInfo) (bool, error) {
	defer w.dog.call("remove stream", key)()
	return w.Removals.Remove(ctx, key, is)
}

func (w watchedRemovals) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	defer w.dog.call("trim stream", key)()
	return w.Removals.Trim(ctx, key, piece)
}

type watchedPauses struct {
	offload.Pauses
	dog *watchdog
}

func (w watchedPauses) Paused(ctx context.Context) (segment.Pauses, error) {
	defer w.dog.call("read", "what is paused")()
	return offload.ReadPauses(ctx, w.Pauses)
}

type watchedClock struct {
	offload.Clock
	dog *watchdog
}

func (w watchedClock) Now(ctx context.Context) (time.Time, error) {
	defer w.dog.call("read", "the redis clock")()
	return w.Clock.Now(ctx)
}

type watchedEncoding struct {
	offload.Encoding
	dog *watchdog
}

func (w watchedEncoding) NewEncoder(to io.Writer, of offload.FileOf) offload.Encoder {
	return watchedEncoder{w.Encoding.NewEncoder(to, of), fileName(of), w.dog}
}

func (w watchedEncoding) Check(r io.ReaderAt, size int64, of offload.FileOf) (segment.Contents, error) {
	defer w.dog.call("read back the file of", fileName(of))()
	return w.Encoding.Check(r, size, of)
}

func fileName(of offload.FileOf) string { return of.StreamKey + "/" + of.Segment.String() }

type watchedEncoder struct {
	offload.Encoder
	of  string
	dog *watchdog
}

func (w watchedEncoder) Write(p *segment.Page) error {
	defer w.dog.call("write the file of", w.of)()
	return w.Encoder.Write(p)
}

func (w watchedEncoder) Close() (segment.Contents, error) {
	defer w.dog.call("finish the file of", w.of)()
	return w.Encoder.Close()
}

type watchedStore struct {
	offload.Store
	dog *watchdog
}

// answered makes each answer of the store move the watchdog: one call may make
// several requests. Those that fail show as events of the store.
func (w watchedStore) answered(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotFirstResponseByte: w.dog.hears})
}

func (w watchedStore) Put(ctx context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	defer w.dog.storeCall("put object", o.Path)()
	o.Body = watchedBody{o.Body, w.dog}
	return w.Store.Put(w.answered(ctx), o)
}

func (w watchedStore) Stat(ctx context.Context, path string) (offload.ObjectInfo, error) {
	defer w.dog.storeCall("look at object", path)()
	return w.Store.Stat(w.answered(ctx), path)
}

func (w watchedStore) Delete(ctx context.Context, paths []string) []error {
	defer w.dog.storeCall("delete", words.Count(len(paths), "object"))()
	return w.Store.Delete(w.answered(ctx), paths)
}

func (w watchedStore) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	defer w.dog.storeCall("open object", path)()
	body, err := w.Store.Open(w.answered(ctx), path)
	if err != nil {
		return nil, err
	}
	return watchedObject{body, path, w.dog}, nil
}

func (w watchedStore) CreateOnly(ctx context.Context) (bool, error) {
	defer w.dog.storeCall("claim", "the store")()
	return w.Store.CreateOnly(w.answered(ctx))
}

// watchedBody is the body of an upload.
type watchedBody struct {
	io.ReaderAt
	dog *watchdog
}

func (w watchedBody) ReadAt(p []byte, off int64) (int, error) {
	n, err := w.ReaderAt.ReadAt(p, off)
	w.dog.hears()
	return n, err
}

// watchedObject is an object that is read.
type watchedObject struct {
	io.ReadCloser
	path string
	dog  *watchdog
}

func (w watchedObject) Read(p []byte) (int, error) {
	defer w.dog.storeCall("read object", w.path)()
	return w.ReadCloser.Read(p)
}
