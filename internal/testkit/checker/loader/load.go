package loader

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// Place says where a world is.
type Place struct {
	Redis  *redisserver.Server // or a node of the cluster
	Layout segment.Layout      // with streams of segments at {stream}:{segment}
	Parts  []segment.Partition
	Root   string // folder of the objects; "" = there is no store
}

// Load takes down what there is: the manifests, the streams that they or the
// ledger name, and every file below the root.
func (p Place) Load(ctx context.Context, acks []checker.Ack) (checker.World, error) {
	w := checker.World{Streams: map[string][]checker.Message{}}
	c, err := connect(ctx, p.Redis)
	if err != nil {
		return w, err
	}
	defer c.close()
	if w.Now, err = clock(ctx, c); err != nil {
		return w, err
	}
	if w.Partitions, err = p.manifests(ctx, c); err != nil {
		return w, err
	}
	for key := range named(w.Partitions, acks) {
		messages, there, err := stream(ctx, c, key)
		if err != nil {
			return w, fmt.Errorf("read stream %s: %w", key, err)
		}
		if there {
			w.Streams[key] = messages
		}
	}
	w.Objects, err = objects(ctx, p.Root, w.Now)
	return w, err
}

// Manifests takes down the manifests alone, which History needs.
func (p Place) Manifests(ctx context.Context) (checker.World, error) {
	c, err := connect(ctx, p.Redis)
	if err != nil {
		return checker.World{}, err
	}
	defer c.close()
	parts, err := p.manifests(ctx, c)
	return checker.World{Partitions: parts}, err
}

func (p Place) manifests(ctx context.Context, c *client) ([]checker.Partition, error) {
	var all []checker.Partition
	for _, part := range p.Parts {
		reply, err := c.do(ctx, "HGETALL", p.Layout.ManifestKey(part))
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", part, err)
		}
		pairs, err := texts(reply)
		if err != nil {
			return nil, fmt.Errorf("read the manifest of %s: %w", part, err)
		}
		manifest := map[string]string{}
		for i := 0; i+1 < len(pairs); i += 2 {
			manifest[pairs[i]] = pairs[i+1]
		}
		all = append(all, checker.Partition{Name: part.String(), StreamKey: p.Layout.StreamKey(part), Plain: part.Plain, Manifest: manifest})
	}
	return all, nil
}

// named are the keys of the streams that somebody names.
func named(parts []checker.Partition, acks []checker.Ack) map[string]bool {
	keys := map[string]bool{}
	for _, a := range acks {
		keys[a.Key] = true
	}
	for _, p := range parts {
		for field, raw := range p.Manifest {
			var entry struct{ Key string }
			switch err := json.Unmarshal([]byte(raw), &entry); {
			case err == nil && entry.Key != "":
				keys[entry.Key] = true
			case p.Plain:
				keys[p.StreamKey] = true
			default:
				keys[p.StreamKey+":"+field] = true
			}
		}
	}
	return keys
}

// clock is the server's time in epoch ms.
func clock(ctx context.Context, c *client) (int64, error) {
	reply, err := c.do(ctx, "TIME")
	if err != nil {
		return 0, fmt.Errorf("ask for the time: %w", err)
	}
	parts, err := texts(reply)
	if err != nil || len(parts) != 2 {
		return 0, fmt.Errorf("ask for the time: got %v", reply)
	}
	s, err := strconv.ParseInt(parts[0], 10, 64)
	us, err2 := strconv.ParseInt(parts[1], 10, 64)
	return s*1000 + us/1000, errors.Join(err, err2)
}

// page is how many messages are asked for at once.
const page = "1000"

// stream reads a whole stream; false if there is none.
func stream(ctx context.Context, c *client, key string) (all []checker.Message, there bool, err error) {
	kind, err := c.do(ctx, "TYPE", key)
	if err != nil || kind == "none" {
		return nil, false, err
	}
	for from := "-"; ; {
		reply, err := c.do(ctx, "XRANGE", key, from, "+", "COUNT", page)
		if err != nil {
			return nil, true, err
		}
		list, ok := reply.([]any)
		if !ok {
			return nil, true, fmt.Errorf("got %v", reply)
		}
		for _, e := range list {
			m, err := message(e)
			if err != nil {
				return nil, true, err
			}
			all = append(all, m)
		}
		if len(list) == 0 {
			return all, true, nil
		}
		from = "(" + all[len(all)-1].ID
	}
}

// message makes one of an XRANGE reply's element.
func message(reply any) (checker.Message, error) {
	pair, ok := reply.([]any)
	if !ok || len(pair) != 2 {
		return checker.Message{}, fmt.Errorf("got entry %v", reply)
	}
	id, ok := pair[0].(string)
	fields, err := texts(pair[1])
	if !ok || err != nil {
		return checker.Message{}, fmt.Errorf("got entry %v", reply)
	}
	return checker.Message{ID: id, Sum: sum(broker.SumOf(fields...))}, nil
}

func sum(s broker.Sum) string { return hex.EncodeToString(s[:]) }

// Acks makes the checker's ledger of the producers'. deleted says of which
// messages somebody has noted that he deletes them.
func Acks(l *broker.Ledger) (acks []checker.Ack, deleted map[checker.Ack]bool) {
	acks, deleted = []checker.Ack{}, map[checker.Ack]bool{}
	for _, s := range l.Sources() {
		all := l.Acks(s)
		for _, id := range slices.SortedFunc(maps.Keys(all), segment.ID.Compare) {
			a := all[id]
			ack := Ack(s.Partition, s.Key, id, a.Sum)
			acks = append(acks, ack)
			if a.Deleted {
				deleted[ack] = true
			}
		}
	}
	return acks, deleted
}

// Ack is one message of a ledger of somebody's own.
func Ack(p segment.Partition, key string, id segment.ID, s broker.Sum) checker.Ack {
	return checker.Ack{Partition: p.String(), Key: key, ID: id.String(), Sum: sum(s)}
}
