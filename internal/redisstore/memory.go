package redisstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
)

// Memory is what a server uses of its memory.
type Memory struct {
	Node string // which server, host:port
	Used int64  // bytes (used_memory)
	Max  int64  // bytes (maxmemory); 0 = no limit
}

// share is how full it is; a server without a limit never is.
func (m Memory) share() float64 {
	if m.Max <= 0 {
		return 0
	}
	return float64(m.Used) / float64(m.Max)
}

// fuller says whether it is m that should be looked at, and not o.
func (m Memory) fuller(o Memory) bool {
	return m.share() > o.share() || m.share() == o.share() && m.Used > o.Used
}

// Memory asks the servers how much of their memory they use: in a cluster every
// node that answers, and the fullest is returned, or, if none has a limit, the
// one that uses most. It needs INFO; an error of class Permission means that
// the user may not ask.
func (s *Store) Memory(ctx context.Context) (Memory, error) {
	nodes := s.client.Nodes()
	var most Memory
	var failed error
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		limited, done := limit(ctx, s.cfg.timeout())
		text, err := nodes[addr].Do(limited, nodes[addr].B().Info().Section("memory").Build()).ToString()
		done()
		if err != nil {
			failed = wrap(ctx, "INFO", "", err)
			continue
		}
		m, err := readMemory(infoLines(text))
		if err != nil {
			failed = wrap(ctx, "INFO", "", err)
			continue
		}
		m.Node = addr
		if most.Node == "" || m.fuller(most) {
			most = m
		}
	}
	if most.Node == "" {
		return most, failed
	}
	return most, nil
}

// readMemory takes a limit that can't be read for none: only the time until it
// is reached is lost.
func readMemory(info map[string]string) (Memory, error) {
	used, err := strconv.ParseInt(info["used_memory"], 10, 64)
	if err != nil || used < 0 {
		return Memory{}, errProtocol
	}
	most, err := strconv.ParseInt(info["maxmemory"], 10, 64)
	if err != nil || most < 0 {
		most = 0
	}
	return Memory{Used: used, Max: most}, nil
}
