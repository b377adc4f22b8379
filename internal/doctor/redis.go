package doctor

import (
	"strconv"
	"strings"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/words"
)

// RedisWant is what the settings want of Redis.
type RedisWant struct {
	Cluster      bool
	WaitReplicas int
	WaitAOF      bool
	Tick         time.Duration
	Lease        time.Duration
	Holders      map[string]string // who holds which lease, by key; those that are not known are missing
	Rights       bool              // the facts say what the user lacks
}

// NoRedis is the finding where Redis can't be reached: there is no other then.
func NoRedis(err error) []Finding {
	return []Finding{fail("redis.reach", reachAdvice(err), "%s", err)}
}

func reachAdvice(err error) string {
	switch redisstore.ClassOf(err) {
	case redisstore.Auth:
		return "check korvet.redis.username and korvet.redis.password, or those in korvet.redis.uri"
	case redisstore.TLS:
		return "check rediss:// in korvet.redis.uri, and korvet.redis.ca-file"
	case redisstore.WrongMode:
		return "check korvet.redis.cluster and the kind of address in korvet.redis.uri"
	case redisstore.Permission:
		return "take the user of docs/redis-acl.txt"
	}
	return "see that a primary listens at korvet.redis.uri and that this host may reach it"
}

// OfRedis judges what a Redis that was reached says.
func OfRedis(f redisstore.Facts, w RedisWant) []Finding {
	all := []Finding{good("redis.reach", "%s answered", words.Count(len(f.Nodes), "server"))}
	all = append(all, eachNode(f.Nodes, w)...)
	all = append(all, clock(f.Clock), lease(f.Leases, w), topics(f))
	if w.Rights {
		all = append(all, rights(f.Lacks, f.NoRights))
	}
	return append(all, waitAOF(f.NoAOF, w.WaitAOF))
}

// nodeCheck judges one server; which servers count depends on the check.
type nodeCheck struct {
	id        string
	primaries bool // replicas do not count
	judge     func(redisstore.Node, RedisWant) Finding
}

func nodeChecks() []nodeCheck {
	return []nodeCheck{
		{"redis.version", false, version},
		{"redis.mode", false, mode},
		{"redis.role", false, role},
		{"redis.policy", false, policy},
		{"redis.memory", true, memory},
		{"redis.persistence", true, persistence},
		{"redis.replicas", true, replicas},
		{"redis.min-replicas", true, minReplicas},
		{"redis.output-buffer", true, outputBuffer},
		{"redis.timeout", false, idleTimeout},
	}
}

// eachNode makes one finding of each check, the worst of all servers.
func eachNode(nodes []redisstore.Node, w RedisWant) []Finding {
	var all []Finding
	for _, c := range nodeChecks() {
		var of []Finding
		for _, n := range nodes {
			if c.primaries && !n.Primary && n.Err == nil {
				continue
			}
			of = append(of, named(n, len(nodes), ofNode(c, n, w)))
		}
		if len(of) == 0 {
			of = []Finding{skip(c.id, "", "no primary answered")}
		}
		all = append(all, worst(of))
	}
	return all
}

func ofNode(c nodeCheck, n redisstore.Node, w RedisWant) Finding {
	if n.Err != nil {
		return unasked(c.id, "+info", n.Err)
	}
	return c.judge(n, w)
}

// named says which server it is where there are several.
func named(n redisstore.Node, of int, f Finding) Finding {
	if of > 1 {
		f.Seen = n.Address + ": " + f.Seen
	}
	return f
}

// unasked is what could not be asked, and the rule that is missing for it.
func unasked(id, rule string, err error) Finding {
	do := ""
	if redisstore.ClassOf(err) == redisstore.Permission {
		do = "grant " + rule + " to see it"
	}
	return skip(id, do, "it can't be asked: %s", err)
}

func version(n redisstore.Node, _ RedisWant) Finding {
	if !n.Suitable {
		return fail("redis.version", "use a server that is compatible with Redis 6.2 or later", "%s", n.Product)
	}
	return good("redis.version", "%s", n.Product)
}

func mode(n redisstore.Node, w RedisWant) Finding {
	const id = "redis.mode"
	switch {
	case n.Sentinel:
		return fail(id, "write korvet.redis.uri as redis+sentinel://"+n.Address+"/master-name", "it is a sentinel")
	case n.Cluster && !w.Cluster:
		return fail(id, "set korvet.redis.cluster to true", "it is a node of a Redis Cluster")
	case !n.Cluster && w.Cluster:
		return fail(id, "set korvet.redis.cluster to false", "it is no node of a Redis Cluster")
	case n.Cluster:
		return good(id, "Redis Cluster")
	}
	return good(id, "single server")
}

func role(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.role"
	switch {
	case n.Primary:
		return good(id, "primary")
	case n.Cluster:
		return good(id, "replica of %s", n.Follows)
	}
	return fail(id, "give the address of the primary, or those of the sentinels", "replica of %s", n.Follows)
}

func policy(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.policy"
	e := redisstore.Eviction{Policy: n.Policy, MaxMemory: n.MaxMemory, Node: n.Address}
	switch e.Risk() {
	case redisstore.EvictionUnknown:
		return skip(id, "", "the server does not say what it evicts when its memory is full")
	case redisstore.EvictsStreams:
		return fail(id, e.Advice(), "%s, maxmemory %s", n.Policy, limitText(n.MaxMemory))
	case redisstore.EvictsLease:
		return warn(id, "set maxmemory-policy to noeviction: with this one the lease may go, and work is done twice", "%s, maxmemory %s", n.Policy, limitText(n.MaxMemory))
	}
	return good(id, "%s, maxmemory %s", n.Policy, limitText(n.MaxMemory))
}

func limitText(n int64) string {
	switch {
	case n < 0:
		return "unknown"
	case n == 0:
		return "not set"
	}
	return words.Size(n)
}

// The shares of memory from which it is getting tight, in percent.
const (
	memoryWarn = 80
	memoryFail = 95
)

func memory(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.memory"
	limit, what := n.MaxMemory, "maxmemory"
	if limit == 0 {
		limit, what = n.SystemMemory, "the machine, as maxmemory is not set"
	}
	if limit <= 0 || n.UsedMemory < 0 {
		return skip(id, "", "the server does not say how much memory it uses, or may use")
	}
	const do = "raise maxmemory, lower local.retention, or shorten tick-interval"
	percent := int(float64(n.UsedMemory) / float64(limit) * 100)
	seen := words.Size(n.UsedMemory) + " in use, " + strconv.Itoa(percent) + " % of " + what
	switch {
	case percent >= memoryFail:
		return fail(id, do+": when it is full, Redis refuses writes", "%s", seen)
	case percent >= memoryWarn:
		return warn(id, do, "%s", seen)
	}
	return good(id, "%s", seen)
}

func persistence(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.persistence"
	const keep = "set appendonly to yes: a crash of Redis loses what has not been copied yet"
	switch {
	case len(n.Failed) > 0:
		return fail(id, "mend the server's disk: it may refuse writes until a save succeeds", "%s", strings.Join(n.Failed, ", "))
	case n.Loading:
		return warn(id, "try again when it is done", "the server loads its data still")
	case n.AOF && n.Config["appendfsync"] == "no":
		return warn(id, "set appendfsync to everysec", "append-only file on, appendfsync no: when it reaches the disk is left to the system")
	case n.AOF && n.Config["appendfsync"] != "":
		return good(id, "append-only file on, appendfsync %s", n.Config["appendfsync"])
	case n.AOF:
		return good(id, "append-only file on")
	case n.NoConfig != nil:
		return configUnasked(id, n, "append-only file off; whether there are snapshots can't be asked")
	case n.Config["save"] == "":
		return warn(id, keep, "append-only file off, and no snapshots: nothing outlives a restart of Redis")
	}
	return warn(id, keep, "append-only file off; snapshots (save %s)", n.Config["save"])
}

// configUnasked is a setting of the server that could not be asked for.
func configUnasked(id string, n redisstore.Node, seen string) Finding {
	f := unasked(id, "+config|get", n.NoConfig)
	f.Seen = seen
	return f
}

// lagging is how long a replica may say nothing.
const lagging = 10 * time.Second

func replicas(n redisstore.Node, w RedisWant) Finding {
	const id = "redis.replicas"
	online, late := 0, redisstore.Replica{}
	for _, r := range n.Replicas {
		if r.Online {
			online++
		}
		if r.Lag > late.Lag {
			late = r
		}
	}
	seen := words.Count(online, "replica") + " in step, wait-replicas " + strconv.Itoa(w.WaitReplicas)
	switch {
	case online < w.WaitReplicas:
		return fail(id, "connect replicas, or lower wait-replicas: until then no local copy is removed", "%s", seen)
	case late.Lag > lagging:
		return warn(id, "look at the replica's network and disk", "%s; %s was heard of %s ago, and is %s behind", seen, late.Address, late.Lag, words.Size(late.Behind))
	}
	return good(id, "%s", seen)
}

func minReplicas(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.min-replicas"
	text, ok := n.Config["min-replicas-to-write"]
	if !ok {
		return configUnasked(id, n, "min-replicas-to-write can't be asked")
	}
	want, _ := strconv.Atoi(text)
	in := 0
	for _, r := range n.Replicas {
		if r.Online {
			in++
		}
	}
	if in < want {
		return fail(id, "connect replicas, or lower min-replicas-to-write: Redis refuses writes until then", "min-replicas-to-write %d, and %s in step", want, words.Count(in, "replica"))
	}
	return good(id, "min-replicas-to-write %d, and %s in step", want, words.Count(in, "replica"))
}

// pageRoom is the largest reply that the server must be able to hold, in bytes:
// a page is about 1 MiB, and one with large entries 8 MiB at most.
const pageRoom = 8 << 20

func outputBuffer(n redisstore.Node, _ RedisWant) Finding {
	const id = "redis.output-buffer"
	text, ok := n.Config["client-output-buffer-limit"]
	if !ok {
		return configUnasked(id, n, "client-output-buffer-limit can't be asked")
	}
	hard, soft := normalLimits(text)
	if hard > 0 && hard < pageRoom || soft > 0 && soft < pageRoom {
		return warn(id, "set client-output-buffer-limit to normal 0 0 0, or to 8 MiB and more", "normal clients: hard limit %s, soft limit %s, which a page of large entries exceeds", limitText(hard), limitText(soft))
	}
	return good(id, "normal clients: hard limit %s, soft limit %s", limitText(hard), limitText(soft))
}

// normalLimits reads "normal 0 0 0 slave ...".
func normalLimits(text string) (hard, soft int64) {
	words := strings.Fields(text)
	for i := 0; i+2 < len(words); i++ {
		if words[i] == "normal" {
			hard, _ = strconv.ParseInt(words[i+1], 10, 64)
			soft, _ = strconv.ParseInt(words[i+2], 10, 64)
			return hard, soft
		}
	}
	return 0, 0
}

func idleTimeout(n redisstore.Node, w RedisWant) Finding {
	const id = "redis.timeout"
	text, ok := n.Config["timeout"]
	if !ok {
		return configUnasked(id, n, "timeout can't be asked")
	}
	seconds, _ := strconv.ParseInt(text, 10, 32)
	if after := time.Duration(seconds) * time.Second; after > 0 && after < w.Tick {
		return warn(id, "set timeout to 0, or above tick-interval", "idle connections are closed after %s, and the tick is %s", after, w.Tick)
	}
	return good(id, "timeout %d", seconds)
}
