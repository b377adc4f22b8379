package command

import (
	"net"
	"net/netip"
	"os"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/board"
	"korvet-offload/internal/config"
	"korvet-offload/internal/page"
	"korvet-offload/lease"
	"korvet-offload/offload"
)

// newBoard makes the board that shows a daemon.
func newBoard(cfg config.Config, settings []config.Setting, d *daemon) *board.Board {
	b := board.New(board.Config{
		Instance: board.Instance{Host: hostName(), Version: version().Version, Namespace: cfg.Redis.Layout.Namespace,
			RemotePath: cfg.Store.URL, StartedAt: time.Now().UTC()},
		SLA: cfg.Worker.TickInterval + cfg.Worker.SLA, Enabled: cfg.Worker.Enabled,
	}, board.Sources{Alive: d.alive, Outages: d.journal.outages, Eviction: d.evicts})
	b.SetSettings(shownSettings(settings))
	return b
}

// ports makes the board and the metrics see what goes through ports.
func (d *daemon) ports(p offload.Ports) offload.Ports { return d.metrics.Ports(d.board.Ports(p)) }

// shownSettings are settings as the board has them.
func shownSettings(settings []config.Setting) []board.Setting {
	shown := make([]board.Setting, len(settings))
	for i, s := range settings {
		shown[i] = board.Setting{Name: s.Name, Value: s.Value, Source: s.Source, From: s.From}
	}
	return shown
}

// newSite makes the page and the API of a daemon.
func newSite(cfg config.Config, d *daemon) (*page.Site, error) {
	return page.New(page.Options{Board: d.board, Tick: cfg.Worker.TickInterval, Token: cfg.Ops.Token != "", TLS: cfg.Ops.CertFile != "",
		Pauser: func() page.Pauser {
			if s := d.session.Load(); s != nil {
				return pauser{s.redis, s.pauses}
			}
			return nil
		}})
}

// evicts is what Redis may evict, as it was heard last.
func (d *daemon) evicts() board.Eviction {
	e := d.eviction.Last()
	return board.Eviction{Risk: string(e.Risk()), Policy: e.Policy, MaxMemory: e.MaxMemory, Advice: e.Advice()}
}

// hostName is that of this host.
func hostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		return "unknown"
	}
	return host
}

// showMembers tells the board which instances there are.
func (d *daemon) showMembers(v lease.View) {
	if v.Err != nil {
		return
	}
	members := make([]board.Member, len(v.Members))
	for i, m := range v.Members {
		members[i] = board.Member{ID: m.ID, Host: m.Host, Version: m.Version, Address: m.Address, StartedAt: timeOf(m.StartedAt),
			SeenAt: timeOf(m.SeenAt), Shards: append([]int{}, m.Shards...), Of: m.Of, Self: m.ID == v.Self}
	}
	d.board.SetMembers(members)
}

// outages are the parts that are down, in the order in which they are looked at.
func (j *journal) outages() []board.Outage {
	j.mu.Lock()
	defer j.mu.Unlock()
	var all []board.Outage
	for _, p := range parts() {
		if o, down := j.down[p]; down {
			all = append(all, board.Outage{Part: string(p), Text: o.text, Since: o.since.UTC()})
		}
	}
	return all
}

// boardLoop is a board as offload.Loop wants it.
type boardLoop struct{ *board.Board }

// Failed implements offload.LoopObserver: the journal keeps what is down.
func (b boardLoop) Failed(error) {}

var _ offload.LoopObserver = boardLoop{}

// warnIfOpen says that anybody who reaches the server can look.
func warnIfOpen(log *zap.Logger, a net.Addr, token string) {
	at, err := netip.ParseAddrPort(a.String())
	if token == "" && err == nil && !at.Addr().Unmap().IsLoopback() {
		log.Warn("the HTTP server answers other hosts, and asks for no token: whoever reaches it sees names of topics, settings and metrics; set korvet.storage.offload.http.token, or listen on 127.0.0.1",
			zap.String("address", a.String()))
	}
}

// badCertificate tells that the server goes on with the certificate it has.
func (j *journal) badCertificate(err error) {
	j.log.Error("the certificate can't be read again; going on with the one before", zap.Error(err))
}
