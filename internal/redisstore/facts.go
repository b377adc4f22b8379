package redisstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Facts is what the servers say of themselves, of their clock, and of the keys
// that this program works with. It judges nothing.
type Facts struct {
	Nodes    []Node // in the order of their addresses; in a cluster the replicas, too
	Clock    Clock
	Leases   []LeaseKey
	Topics   []segment.Topic // as Store.Topics returns them
	Registry RegistryKind
	NoTopics error    // why they are not known
	Lacks    []string // see Store.Lacks; only where Look.Rights asks for it
	NoRights error    // why it could not be found out
	NoAOF    error    // why WAITAOF can't be used; only where Look.WaitAOF asks for it
}

// Node is what one server says of itself.
type Node struct {
	Address string // host:port
	Err     error  // why it says nothing: the rest means nothing then

	Product  string // name and version
	Suitable bool   // it is compatible with Redis 6.2 or later
	Cluster  bool   // it is a node of a Redis Cluster
	Sentinel bool
	Primary  bool
	Follows  string // host:port of the primary of a replica

	Policy       string // maxmemory-policy; "" = it does not say
	MaxMemory    int64  // bytes; 0 = no limit, -1 = it does not say
	UsedMemory   int64  // bytes; -1 = it does not say
	SystemMemory int64  // bytes of the machine; -1 = it does not say

	Loading  bool     // it reads its data still
	AOF      bool     // it has an append-only file
	Failed   []string // what of its persistence went wrong last time, as INFO names it
	Replicas []Replica

	Config   map[string]string // what CONFIG GET has answered, by setting
	NoConfig error             // why CONFIG GET was not answered, or not asked
}

// Replica is a server that copies another.
type Replica struct {
	Address string
	Online  bool
	Behind  int64         // bytes of the replication stream that it has not confirmed
	Lag     time.Duration // since it was heard of last, to a second
}

// Clock compares the two clocks.
type Clock struct {
	Skew time.Duration // this host's minus the server's
	Err  error
}

// LeaseKey is the state of a leader's lease.
type LeaseKey struct {
	Key  string
	Held bool
	TTL  time.Duration // until it lapses; below 0 = never
	Err  error
}

// Look says what Store.Facts is to look at beside what INFO and TIME tell.
type Look struct {
	Leases  []string // the keys of the leases
	Config  bool     // ask for settings (CONFIG GET)
	Rights  bool     // try what the user may do
	WaitAOF bool     // try WAITAOF
}

// errNotAsked stands for CONFIG GET where Look does not want it.
var errNotAsked = errors.New("not asked")

// Facts asks the servers; everything is asked at once, and nothing is changed.
func (s *Store) Facts(ctx context.Context, look Look) Facts {
	var f Facts
	var wg sync.WaitGroup
	wg.Go(func() { f.Nodes = s.askNodes(ctx, look.Config) })
	wg.Go(func() { f.Clock = s.askClock(ctx) })
	wg.Go(func() { f.Leases = s.askLeases(ctx, look.Leases) })
	wg.Go(func() {
		f.Topics, f.NoTopics = s.Topics(ctx)
		f.Registry = s.RegistryKind()
	})
	if look.Rights {
		wg.Go(func() {
			f.Lacks = s.Lacks(ctx, checkTopic)
			_, f.NoRights = s.Now(ctx) // a server that went away has refused nothing
		})
	}
	if look.WaitAOF {
		wg.Go(func() { f.NoAOF = s.checkAOF(ctx) })
	}
	wg.Wait()
	return f
}

func (s *Store) askNodes(ctx context.Context, config bool) []Node {
	nodes := s.client.Nodes()
	all := make([]Node, len(nodes))
	var wg sync.WaitGroup
	for i, addr := range slices.Sorted(maps.Keys(nodes)) {
		wg.Go(func() { all[i] = s.askNode(ctx, addr, nodes[addr], config) })
	}
	wg.Wait()
	return all
}

func (s *Store) askNode(ctx context.Context, addr string, node rueidis.Client, config bool) Node {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	text, err := node.Do(limited, node.B().Info().Build()).ToString()
	if err != nil {
		return Node{Address: addr, Err: wrap(ctx, "INFO", "", err), NoConfig: errNotAsked}
	}
	n := readNode(infoLines(text))
	n.Address, n.NoConfig = addr, errNotAsked
	if config {
		n.Config, n.NoConfig = s.askConfig(ctx, node)
	}
	return n
}

// configNames are the settings of a server that matter here.
func configNames() []string {
	return []string{"appendfsync", "save", "min-replicas-to-write", "client-output-buffer-limit", "timeout"}
}

// askConfig asks for one setting after the other, as servers before 7.0 want
// it, and no further once it is refused.
func (s *Store) askConfig(ctx context.Context, node rueidis.Client) (map[string]string, error) {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	all := map[string]string{}
	for _, name := range configNames() {
		got, err := node.Do(limited, node.B().ConfigGet().Parameter(name).Build()).AsStrMap()
		if err != nil {
			return nil, wrap(ctx, "CONFIG GET", "", err)
		}
		if value, ok := got[name]; ok {
			all[name] = value
		}
	}
	return all, nil
}

// readNode reads INFO. A number that can't be read is one that was not told.
func readNode(info map[string]string) Node {
	e := readEviction(info)
	n := Node{
		Product: product(info), Suitable: atLeast62(info["redis_version"]),
		Cluster:  info["cluster_enabled"] == "1" || info["redis_mode"] == "cluster",
		Sentinel: info["redis_mode"] == "sentinel",
		Primary:  !isReplica(info["role"]),
		Policy:   e.Policy, MaxMemory: e.MaxMemory,
		UsedMemory: told(info["used_memory"]), SystemMemory: told(info["total_system_memory"]),
		Loading: info["loading"] == "1", AOF: info["aof_enabled"] == "1",
		Replicas: readReplicas(info),
	}
	if host := info["master_host"]; host != "" {
		n.Follows = host + ":" + info["master_port"]
	}
	for _, name := range diskStatuses() {
		if v := info[name]; v != "" && v != "ok" {
			n.Failed = append(n.Failed, name+" is "+v)
		}
	}
	return n
}

func told(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// readReplicas reads the lines slave0, slave1 ... of a primary.
func readReplicas(info map[string]string) []Replica {
	var all []Replica
	end := told(info["master_repl_offset"])
	for i := range len(info) {
		line, ok := info["slave"+strconv.Itoa(i)]
		if !ok {
			break
		}
		f := map[string]string{}
		for part := range strings.SplitSeq(line, ",") {
			name, value, _ := strings.Cut(part, "=")
			f[name] = value
		}
		all = append(all, Replica{
			Address: f["ip"] + ":" + f["port"], Online: f["state"] == "online",
			Behind: max(0, end-told(f["offset"])), Lag: time.Duration(min(max(0, told(f["lag"])), maxLag)) * time.Second,
		})
	}
	return all
}

// maxLag is more seconds than any replica is kept for.
const maxLag = 1_000_000

// clockTries is how often the time is asked for: the fastest answer says most.
const clockTries = 3

func (s *Store) askClock(ctx context.Context) Clock {
	best, least := Clock{}, time.Duration(-1)
	for range clockTries {
		sent := time.Now()
		now, err := s.Now(ctx)
		if err != nil {
			return Clock{Err: err}
		}
		if took := time.Since(sent); least < 0 || took < least {
			least, best.Skew = took, sent.Add(took/2).Round(0).Sub(now)
		}
	}
	return best
}
