package metrics

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Ports times and counts all that goes through ports.
func (r *Registry) Ports(p offload.Ports) offload.Ports {
	timed := timing{r: r,
		page:  pair{r.count.readSeconds.of(tierLocal, succeeded), r.count.readSeconds.of(tierLocal, failed)},
		read:  pair{r.count.readSeconds.of(tierRemote, succeeded), r.count.readSeconds.of(tierRemote, failed)},
		write: pair{r.count.writeSeconds.of(tierRemote, succeeded), r.count.writeSeconds.of(tierRemote, failed)},
	}
	p.Known = countedKnown{p.Known, r}
	p.Manifests = countedManifests{p.Manifests, r}
	p.Removals = countedRemovals{p.Removals, r}
	p.Streams = timedStreams{p.Streams, &timed}
	p.Store = timedStore{p.Store, &timed}
	return p
}

// timing is the histograms that time is noted in: finding one each time would
// cost each page something.
type timing struct {
	r                 *Registry
	page, read, write pair
}

// pair is where success and failure are noted.
type pair struct{ good, bad prometheus.Observer }

// note takes how long something took. What was broken off by its caller says
// nothing.
func (p pair) note(ctx context.Context, took time.Duration, err error) {
	switch {
	case err == nil:
		p.good.Observe(took.Seconds())
	case ctx.Err() == nil:
		p.bad.Observe(took.Seconds())
	}
}

func (r *Registry) refused(guard string) { r.count.guardRejections.of(guard).Inc() }

type countedKnown struct { // the port's name is that of its method
	port offload.Known
	r    *Registry
}

func (c countedKnown) Known(ctx context.Context) (map[string]string, error) { return c.port.Known(ctx) }

func (c countedKnown) SwapKnown(ctx context.Context, topic, old, new string) (bool, error) {
	ok, err := c.port.SwapKnown(ctx, topic, old, new)
	if err == nil && !ok {
		c.r.refused(guardKnown)
	}
	return ok, err
}

type countedManifests struct {
	offload.Manifests
	r *Registry
}

func (c countedManifests) Change(ctx context.Context, p segment.Partition, change segment.Change) (bool, error) {
	ok, err := c.Manifests.Change(ctx, p, change)
	switch {
	case errors.Is(err, offload.ErrNotReplicated):
		c.r.refused(guardReplicas)
	case err == nil && !ok:
		c.r.refused(guardManifest)
	}
	return ok, err
}

type countedRemovals struct {
	offload.Removals
	r *Registry
}

func (c countedRemovals) Remove(ctx context.Context, key string, is offload.StreamInfo) (bool, error) {
	ok, err := c.Removals.Remove(ctx, key, is)
	if err == nil && !ok {
		c.r.refused(guardRemove)
	}
	return ok, err
}

func (c countedRemovals) Trim(ctx context.Context, key string, piece segment.Piece) (bool, error) {
	ok, err := c.Removals.Trim(ctx, key, piece)
	if err == nil && !ok {
		c.r.refused(guardTrim)
	}
	return ok, err
}

type timedStreams struct {
	offload.Streams
	t *timing
}

func (s timedStreams) Pages(key string, from, to segment.ID) offload.PageReader {
	return timedPages{s.Streams.Pages(key, from, to), s.t}
}

type timedPages struct {
	offload.PageReader
	t *timing
}

// Next times a page. The end of a stream is none.
func (p timedPages) Next(ctx context.Context, into *segment.Page) error {
	start := p.t.r.opt.Now()
	err := p.PageReader.Next(ctx, into)
	if !errors.Is(err, io.EOF) {
		p.t.page.note(ctx, p.t.r.opt.Now().Sub(start), err)
	}
	return err
}

type timedStore struct {
	offload.Store
	t *timing
}

func (s timedStore) Put(ctx context.Context, o offload.Upload) (offload.ObjectInfo, error) {
	start := s.t.r.opt.Now()
	info, err := s.Store.Put(ctx, o)
	took := s.t.r.opt.Now().Sub(start)
	if errors.Is(err, offload.ErrObjectExists) {
		s.t.r.refused(guardObject)
		s.t.r.count.writeSeconds.of(tierRemote, rejected).Observe(took.Seconds())
		return info, err
	}
	if err == nil {
		s.t.r.count.uploadBytes.Add(float64(o.Size))
	}
	s.t.write.note(ctx, took, err)
	return info, err
}

func (s timedStore) Open(ctx context.Context, path string) (io.ReadCloser, error) {
	start := s.t.r.opt.Now()
	body, err := s.Store.Open(ctx, path)
	if err != nil {
		s.t.read.note(ctx, s.t.r.opt.Now().Sub(start), err)
		return nil, err
	}
	return &timedObject{ReadCloser: body, ended: func(err error) { s.t.read.note(ctx, s.t.r.opt.Now().Sub(start), err) }}, nil
}

// timedObject is an object that is read. One that is closed before its end was
// not read whole, and says nothing.
type timedObject struct {
	io.ReadCloser
	ended func(error) // told once; nil afterwards
}

func (o *timedObject) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err == nil || o.ended == nil {
		return n, err
	}
	if errors.Is(err, io.EOF) {
		o.ended(nil)
	} else {
		o.ended(err)
	}
	o.ended = nil
	return n, err
}
