package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/rueidis"
)

// EvictionRisk says what a server may evict, by what that costs. The list is
// closed, and ordered by how bad it is.
type EvictionRisk string

// The risks.
const (
	// EvictsNothing: the server refuses writes when it is full.
	EvictsNothing EvictionRisk = "none"
	// EvictsLease: only keys with a time to live. Of ours that is the lease: two
	// instances may work at once then, and nothing is lost.
	EvictsLease EvictionRisk = "lease"
	// EvictsStreams: any key, and so a stream that was not copied yet, or a
	// manifest.
	EvictsStreams EvictionRisk = "streams"
	// EvictionUnknown: the server does not say.
	EvictionUnknown EvictionRisk = "unknown"
)

// Eviction is what a server does when its memory is full.
type Eviction struct {
	Policy    string // maxmemory-policy; "" = the server does not say
	MaxMemory int64  // bytes; 0 = no limit, so that nothing is ever evicted
	Node      string // which server, host:port
}

// Risk is what the policy may cost. A policy with a name that is not known
// counts as one that evicts any key.
func (e Eviction) Risk() EvictionRisk {
	switch {
	case e.Policy == "":
		return EvictionUnknown
	case e.Policy == "noeviction", e.MaxMemory == 0:
		return EvictsNothing
	case strings.HasPrefix(e.Policy, "volatile-"):
		return EvictsLease
	}
	return EvictsStreams
}

func (e Eviction) String() string {
	if e.Policy == "" {
		return "redis " + e.Node + " does not say what it evicts when its memory is full"
	}
	return fmt.Sprintf("redis %s: maxmemory-policy %s, maxmemory %d", e.Node, e.Policy, e.MaxMemory)
}

// Advice is what to do; "" where there is nothing to do.
func (e Eviction) Advice() string {
	if e.Risk() != EvictsStreams {
		return ""
	}
	return "set maxmemory-policy to noeviction: with this one the server may remove streams that were not copied yet, and manifests"
}

// Eviction asks the servers what they may evict: in a cluster every node that
// answers, and the worst is returned. It needs INFO; an error of class
// Permission means that the user may not ask.
func (s *Store) Eviction(ctx context.Context) (Eviction, error) {
	nodes := s.client.Nodes()
	var worst Eviction
	var failed error
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		e, err := s.evictionOf(ctx, nodes[addr])
		if err != nil {
			failed = wrap(ctx, "INFO", "", err)
			continue
		}
		if e.Node = addr; worst.Node == "" || e.rank() > worst.rank() {
			worst = e
		}
	}
	if worst.Node == "" {
		return worst, failed
	}
	return worst, nil
}

// rank orders risks; one that is not known hides none that is.
func (e Eviction) rank() int {
	return slices.Index([]EvictionRisk{EvictionUnknown, EvictsNothing, EvictsLease, EvictsStreams}, e.Risk())
}

func (s *Store) evictionOf(ctx context.Context, node rueidis.Client) (Eviction, error) {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	text, err := node.Do(limited, node.B().Info().Section("memory").Build()).ToString()
	if err != nil {
		return Eviction{}, err
	}
	return readEviction(infoLines(text)), nil
}

// readEviction takes a limit that can't be read for one.
func readEviction(info map[string]string) Eviction {
	limit, err := strconv.ParseInt(info["maxmemory"], 10, 64)
	if err != nil {
		limit = -1
	}
	return Eviction{Policy: info["maxmemory_policy"], MaxMemory: limit}
}

// checkEviction: an evicted stream is lost data.
func (s *Store) checkEviction(ctx context.Context) Finding {
	f := Finding{Name: "eviction", OK: true}
	e, err := s.Eviction(ctx)
	if err != nil {
		return Finding{Name: f.Name, Detail: err.Error(), Advice: adviceFor(err)}
	}
	f.Detail = e.String()
	switch e.Risk() {
	case EvictsLease:
		f.Detail += ": only keys with a time to live are evicted, of ours the lease, which costs work done twice and no data"
	case EvictsStreams:
		f.OK, f.Advice = false, e.Advice()
	}
	return f
}
