package command

import (
	"context"
	"fmt"
	"strings"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/lease"
	"korvet-offload/segment"
)

// memberView is an instance that runs, as --output json prints it.
type memberView struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	Version   string    `json:"version"`
	Address   string    `json:"address"` // of its HTTP server; "" = it has none
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"` // by the Redis server's clock
	Shards    []int     `json:"shards"`  // that it holds; with a single one, 0 is the lead
	Of        int       `json:"of"`
}

// addMembers adds the instances that run. That they can't be asked for is no
// fault of what status is about.
func (v *statusView) addMembers(ctx context.Context, s *session) {
	v.Members = []memberView{}
	members, err := lease.Members(ctx, s.redis.Client(), s.cfg.Lease)
	if err != nil {
		v.Warnings = append(v.Warnings, "the instances that run are not known: "+leaseError(err).Error())
		return
	}
	for _, m := range members {
		v.Members = append(v.Members, memberView{ID: m.ID, Host: m.Host, Version: m.Version, Address: m.Address,
			StartedAt: timeOf(m.StartedAt), SeenAt: timeOf(m.SeenAt), Shards: append([]int{}, m.Shards...), Of: m.Of})
	}
	if v.LentTo, err = lease.Asked(ctx, s.redis.Client(), s.cfg.Lease); err != nil {
		v.Warnings = append(v.Warnings, "who has borrowed the lease is not known: "+leaseError(err).Error())
	}
	if text := disagreement(members, s.cfg.Lease.Shards); text != "" {
		v.Warnings = append(v.Warnings, text)
	}
}

// lentLines say who has borrowed the lease, for a person.
func (v statusView) lentLines() []string {
	if v.LentTo == "" {
		return nil
	}
	return []string{fmt.Sprintf("the lease is lent to %.200q, or about to be: nobody else works until it is given back", v.LentTo)}
}

// timeOf is a time that somebody has written, in epoch ms; one that JSON has no
// form of is the nearest that it has.
func timeOf(ms int64) time.Time { return time.UnixMilli(min(max(ms, 0), segment.MaxTime)).UTC() }

// memberLines are the instances for a person, at a time by the Redis clock.
func memberLines(members []memberView, at time.Time) (lines []string) {
	for _, m := range members {
		line := fmt.Sprintf("instance %q (%s): %s", m.ID, m.Version, m.does())
		if m.Address != "" {
			line += "; http at " + fmt.Sprintf("%q", m.Address)
		}
		line += "; seen " + m.seen(at)
		lines = append(lines, line)
	}
	return lines
}

// seen says how long ago an instance was seen. It shows itself at every tick, and
// at least every third of lease-duration; the scan is a moment old, too.
func (m memberView) seen(at time.Time) string {
	if d := at.Sub(m.SeenAt); d >= time.Second {
		return ago(d.Round(time.Second)) + " ago"
	}
	return "just now"
}

// does says what an instance does.
func (m memberView) does() string {
	switch {
	case len(m.Shards) == 0:
		return "waits to take over"
	case m.Of == 1:
		return "leads"
	}
	return fmt.Sprintf("works on %s of %d: %s", words.Count(len(m.Shards), "shard"), m.Of, strings.Trim(strings.Join(strings.Fields(fmt.Sprint(m.Shards)), ", "), "[]"))
}
