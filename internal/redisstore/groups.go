package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Groups describes the consumer groups of a stream; a key that is not there
// has none. The oldest pending id of a group is asked for after its last
// delivered id, so an entry that is delivered in between counts as not
// delivered yet, and what a group needs is never understated.
func (s *Store) Groups(ctx context.Context, key string) ([]segment.Group, error) {
	groups, err := s.groups(ctx, key)
	if err != nil {
		return nil, wrap(ctx, "XINFO GROUPS", key, err)
	}
	var cmds []rueidis.Completed
	var at []int
	for i, g := range groups {
		if g.Pending > 0 {
			cmds = append(cmds, s.client.B().Xpending().Key(key).Group(g.Name).Build())
			at = append(at, i)
		}
	}
	if len(cmds) == 0 {
		return groups, nil
	}
	for i, reply := range s.doMulti(ctx, cmds...) {
		if err := readPending(reply, &groups[at[i]]); err != nil {
			return nil, wrap(ctx, "XPENDING", key, err)
		}
	}
	return groups, nil
}

func (s *Store) groups(ctx context.Context, key string) ([]segment.Group, error) {
	groups := []segment.Group{}
	replies, err := s.do(ctx, s.client.B().XinfoGroups().Key(key).Build()).ToArray()
	if reply, _ := replyText(err); strings.HasSuffix(reply, "no such key") {
		return groups, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range replies {
		g, err := readGroup(&replies[i])
		if err != nil {
			return nil, fmt.Errorf("%w: group %d: %w", errProtocol, i, err)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func readGroup(reply *rueidis.RedisMessage) (g segment.Group, err error) {
	fields, err := reply.AsMap()
	if err != nil {
		return g, err
	}
	name, pending := fields["name"], fields["pending"]
	if g.Name, err = name.ToString(); err != nil {
		return g, fmt.Errorf("name: %w", err)
	}
	if g.Pending, err = pending.AsInt64(); err != nil {
		return g, fmt.Errorf("pending: %w", err)
	}
	g.LastDelivered, err = readID(fields, "last-delivered-id")
	return g, err
}

// readPending takes the summary: how many, the smallest id, the largest, and
// who has them. A group that went away, or whose entries were acknowledged, a
// moment ago has none.
func readPending(reply rueidis.RedisResult, g *segment.Group) error {
	parts, err := reply.ToArray()
	if text, _ := replyText(err); strings.HasPrefix(text, "NOGROUP") {
		g.Pending = 0
		return nil
	}
	if err != nil {
		return err
	}
	if len(parts) < 2 {
		return fmt.Errorf("%w: want a summary", errProtocol)
	}
	if g.Pending, err = parts[0].AsInt64(); err != nil {
		return err
	}
	if g.Pending == 0 {
		return nil
	}
	text, err := parts[1].ToString()
	if err == nil {
		g.OldestPending, err = segment.ParseID(text)
	}
	if err != nil {
		return fmt.Errorf("%w: oldest pending id of group %s: %w", errProtocol, g.Name, err)
	}
	return nil
}
