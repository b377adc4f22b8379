package redisserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// ReplicaOf makes the server a replica of another one, which it copies at once.
func ReplicaOf(primary *Server) Option {
	return func(_ testing.TB, s *Server) {
		s.args = append(s.args, "--replicaof", "127.0.0.1", strconv.Itoa(primary.Port), "--repl-diskless-sync-delay", "0")
		if primary.Password != "" {
			s.args = append(s.args, "--masterauth", primary.Password)
		}
	}
}

// AwaitReplica waits until a replica has what its primary has now, in its
// append-only file too if it has one: that is begun anew after a full copy.
func (s *Server) AwaitReplica(replica *Server) {
	s.t.Helper()
	want := s.offset()
	s.await("replica in step", func() bool {
		return infoOf(replica, "master_link_status") == "up" && replica.offset() >= want && replica.onDisk()
	})
}

// onDisk says whether the append-only file, if there is to be one, has all.
func (s *Server) onDisk() bool {
	if !strings.Contains(s.Exec("CONFIG", "GET", "appendonly"), "yes") {
		return true
	}
	text := s.Exec("INFO", "persistence")
	for _, want := range []string{"aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0", "aof_last_bgrewrite_status:ok"} {
		if !strings.Contains(text, want) {
			return false
		}
	}
	return true
}

// offset is how far a server is in the stream of replication.
func (s *Server) offset() int64 {
	n, err := strconv.ParseInt(infoOf(s, "master_repl_offset"), 10, 64)
	if err != nil {
		s.t.Fatalf("redis-server at %s does not tell its offset: %v", s.Addr, err)
	}
	return n
}

func infoOf(s *Server, name string) string {
	for line := range strings.Lines(s.Exec("INFO", "replication")) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}

// IsPrimary says whether a server is one, as far as it knows.
func (s *Server) IsPrimary() bool { return infoOf(s, "role") == "master" }

// Sentinels are three that watch one primary, under the name Name. They take it
// for dead after half a second.
type Sentinels struct {
	Nodes []*Server
	Name  string
}

// StartSentinels starts them, and waits until they know one another and the
// primary's replicas. Options, such as Users, are those of each sentinel.
func StartSentinels(t testing.TB, name string, primary *Server, replicas int, options ...Option) *Sentinels {
	t.Helper()
	g := &Sentinels{Name: name}
	for range 3 {
		g.Nodes = append(g.Nodes, Start(t, append([]Option{sentinel(name, primary)}, options...)...))
	}
	// They learn of one another ten times as quickly as they would, and don't
	// distrust their clocks on a machine that is busy.
	g.pace("publish-period", "200", "info-period", "500", "tilt-trigger", "60000")
	defer g.pace("publish-period", "500")
	for _, n := range g.Nodes {
		n.await("quorum", func() bool {
			text := n.Exec("SENTINEL", "MASTER", name)
			return strings.Contains(text, "num-other-sentinels\n2\n") && strings.Contains(text, fmt.Sprintf("num-slaves\n%d\n", replicas))
		})
	}
	return g
}

// pace sets how often the sentinels do what.
func (g *Sentinels) pace(settings ...string) {
	for _, n := range g.Nodes {
		n.Exec(append([]string{"SENTINEL", "DEBUG"}, settings...)...)
	}
}

// sentinel makes the server a sentinel. It is told by a file, which it rewrites.
func sentinel(name string, primary *Server) Option {
	return func(t testing.TB, s *Server) {
		lines := []string{
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", name, primary.Port),
			fmt.Sprintf("sentinel down-after-milliseconds %s 500", name),
			fmt.Sprintf("sentinel failover-timeout %s 4000", name),
		}
		if primary.Password != "" {
			lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", name, primary.Password))
		}
		s.file = filepath.Join(s.Dir, "sentinel.conf")
		if err := os.WriteFile(s.file, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatalf("write %s: %v", s.file, err)
		}
	}
}

// URI is the address of the primary as korvet.redis.uri has it, for a user of
// the servers; "" = without one.
func (g *Sentinels) URI(user string) string {
	var addrs []string
	for _, n := range g.Nodes {
		addrs = append(addrs, n.Addr)
	}
	if user != "" {
		user += "@"
	}
	return "redis+sentinel://" + user + strings.Join(addrs, ",") + "/" + g.Name
}

// Primary is the address of the primary, as the first sentinel has it.
func (g *Sentinels) Primary() string {
	parts := strings.Fields(g.Nodes[0].Exec("SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name))
	return strings.Join(parts, ":")
}

// AwaitPrimary waits until every sentinel names a server as the primary, and it
// is one.
func (g *Sentinels) AwaitPrimary(s *Server) {
	s.t.Helper()
	s.await("failover", func() bool {
		for _, n := range g.Nodes {
			if parts := strings.Fields(n.Exec("SENTINEL", "GET-MASTER-ADDR-BY-NAME", g.Name)); strings.Join(parts, ":") != s.Addr {
				return false
			}
		}
		return s.IsPrimary()
	})
}
