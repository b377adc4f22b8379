package doctor

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/words"
	"korvet-offload/segment"
)

// clockLimit is how far two clocks may be apart.
const clockLimit = 2 * time.Second

func clock(c redisstore.Clock) Finding {
	const id = "redis.clock"
	switch {
	case c.Err != nil:
		return unasked(id, "+time", c.Err)
	case c.Skew.Abs() > clockLimit:
		return warn(id, "run NTP on both hosts", "this host's clock is %s", apart(c.Skew))
	}
	return good(id, "this host's clock is %s", apart(c.Skew))
}

// apart is a difference of clocks in words.
func apart(d time.Duration) string {
	d = d.Round(time.Millisecond)
	switch {
	case d > 0:
		return d.String() + " ahead"
	case d < 0:
		return (-d).String() + " behind"
	}
	return "the same to a millisecond"
}

// lease judges the leases' keys together: the worst counts.
func lease(leases []redisstore.LeaseKey, w RedisWant) Finding {
	const id = "redis.lease"
	if len(leases) == 0 {
		return skip(id, "", "not looked at")
	}
	held := 0
	all := make([]Finding, 0, len(leases))
	for _, l := range leases {
		all = append(all, leaseKey(l, w))
		if l.Held {
			held++
		}
	}
	f := worst(all)
	if f.Verdict == OK && len(leases) > 1 {
		return good(id, "%d of %d shards are held", held, len(leases))
	}
	return f
}

func leaseKey(l redisstore.LeaseKey, w RedisWant) Finding {
	const id = "redis.lease"
	by := cmp.Or(w.Holders[l.Key], "somebody")
	switch {
	case l.Err != nil:
		return unasked(id, "+get +pttl ~"+l.Key, l.Err)
	case !l.Held:
		return good(id, "%s is free", l.Key)
	case l.TTL < 0:
		return fail(id, "delete the key "+l.Key+", once it is sure that no instance runs", "%s is held by %s and never lapses: nobody else can ever lead", l.Key, by)
	case l.TTL > w.Lease:
		return warn(id, "give all instances the same lease-duration", "%s is held by %s for another %s, and lease-duration is %s", l.Key, by, l.TTL.Round(time.Second), w.Lease)
	}
	return good(id, "%s is held by %s for another %s", l.Key, by, l.TTL.Round(time.Second))
}

func topics(f redisstore.Facts) Finding {
	const id = "redis.topics"
	if f.NoTopics != nil {
		return unasked(id, "+type +smembers +hgetall on the registry", f.NoTopics)
	}
	work, streams, other, broken := 0, 0, 0, []segment.Topic{}
	for _, t := range f.Topics {
		switch {
		case t.Err != nil:
			broken = append(broken, t)
		case t.Plain && t.Settings.RemoteStorage:
			streams++
		case t.Settings.RemoteStorage:
			work++
		default:
			other++
		}
	}
	seen := "registry: " + string(f.Registry) + "; " + words.Count(work, "topic")
	if streams > 0 {
		seen += ", " + words.Count(streams, "plain stream")
	}
	seen += " to be offloaded, " + strconv.Itoa(other) + " not"
	switch {
	case len(broken) > 0:
		return warn(id, "mend the settings of "+andMore(broken[0].Name, len(broken)-1)+": they are not worked on", "%s; %s", seen, broken[0].Err)
	case work+streams == 0:
		return warn(id, "check korvet.namespace, the registry, remote.storage.enable of the topics, and korvet.streams", "%s", seen)
	}
	return good(id, "%s", seen)
}

func rights(lacks []string, unknown error) Finding {
	const id = "redis.acl"
	switch {
	case len(lacks) == 0 && unknown != nil && redisstore.ClassOf(unknown) != redisstore.Permission:
		return unasked(id, "", unknown)
	case len(lacks) == 0:
		return good(id, "every command is allowed")
	}
	return fail(id, "grant them; docs/redis-acl.txt has the whole user", "the user's ACL lacks %s", strings.Join(lacks, ", "))
}

func waitAOF(err error, wanted bool) Finding {
	const id = "redis.wait-aof"
	switch {
	case !wanted:
		return skip(id, "", "wait-aof is off")
	case redisstore.ClassOf(err) == redisstore.Permission:
		return unasked(id, "+waitaof", err)
	case err != nil:
		return fail(id, "set wait-aof to false, or mend what the line names", "%s", err)
	}
	return good(id, "the server knows WAITAOF and has an append-only file")
}
