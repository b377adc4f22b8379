package command

import (
	"context"

	"korvet-offload/internal/config"
	"korvet-offload/internal/metrics"
	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// newMetrics makes the metrics of a daemon, which is up while up says so.
func newMetrics(cfg config.Config, up func() bool) *metrics.Registry {
	b := version()
	m := metrics.New(metrics.Options{
		Version: b.Version, Revision: b.Revision, Go: b.Go,
		Topics: cfg.Ops.TopicMetrics, MaxTopics: cfg.Ops.MaxTopics,
		SLA: cfg.Worker.TickInterval + cfg.Worker.SLA, Shards: cfg.Lease.Shards, Up: up,
	})
	m.SetUploadRate(cfg.Worker.UploadRate)
	return m
}

// tells makes a store tell a journal and the metrics what it does.
func (d *daemon) tells() s3sink.Options {
	return s3sink.Options{
		OnEvent: func(e s3sink.Event) {
			d.journal.storeEvent(e)
			d.metrics.StoreEvent(e)
		},
		OnCall: d.metrics.StoreCall,
	}
}

// observer is told what the worker does.
func (d *daemon) observer() offload.Observer {
	return observers{d.journal, d.metrics.Observer(), d.board}
}

// up says whether there is nothing that keeps the worker from working.
func (d *daemon) up() bool {
	return d.cfg.Worker.Enabled && d.session.Load() != nil && d.journal.up()
}

// up says whether no part is down.
func (j *journal) up() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.downBecause() == ""
}

// countPauses tells the metrics what is paused.
func (d *daemon) countPauses(now segment.Pauses) {
	all, names := false, 0
	for _, p := range now.List {
		if p.Scope == (segment.Scope{}) {
			all = true
		} else {
			names++
		}
	}
	d.metrics.SetPaused(all, names)
}

// countShards tells the metrics what this instance's share is. Where there is
// but one, it is whether it leads.
func (d *daemon) countShards(v lease.View) {
	if d.cfg.Lease.Shards > 1 {
		d.metrics.SetShards(len(v.Held))
	}
}

// measureMemory tells the metrics how full Redis is, and what it may evict. A
// user who may not ask knows nothing of either.
func (d *daemon) measureMemory(ctx context.Context, redis *redisstore.Store) {
	if m, err := redis.Memory(ctx); err == nil {
		d.metrics.SetMemory(m.Node, m.Used, m.Max)
	}
	d.metrics.SetEviction(string(d.eviction.Last().Risk()))
}
