package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Finding is one thing that Check has looked at.
type Finding struct {
	Name   string // one or two words
	OK     bool
	Detail string // what was found
	Advice string // what to do; "" when it is OK
}

// Check looks at everything that this program needs of the server, changes
// nothing, and says of each thing whether it is right. That a Store is open
// already means that address, TLS, user and password are.
func (s *Store) Check(ctx context.Context) []Finding {
	info, err := s.serverInfo(ctx)
	if err != nil {
		return append([]Finding{{Name: "server", Detail: err.Error(), Advice: adviceFor(err)}}, s.checkCommands(ctx)...)
	}
	findings := []Finding{
		checkVersion(info),
		checkMode(info, s.cfg.Cluster),
		checkRole(info),
		s.checkEviction(ctx),
		checkDisk(info),
	}
	findings = append(findings, s.checkDurability(ctx)...)
	return append(findings, s.checkCommands(ctx)...)
}

func adviceFor(err error) string {
	switch ClassOf(err) {
	case Permission:
		return "give the user the rules of the documentation's ACL"
	case Unavailable:
		return "try again when the server is up"
	}
	return "look at the server's log"
}

// serverInfo reads INFO's lines; in a cluster those of any node.
func (s *Store) serverInfo(ctx context.Context) (map[string]string, error) {
	text, err := s.do(ctx, s.client.B().Info().Build()).ToString()
	if err != nil {
		return nil, wrap(ctx, "INFO", "", err)
	}
	return infoLines(text), nil
}

func infoLines(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

func checkVersion(info map[string]string) Finding {
	f := Finding{Name: "version", Detail: product(info)}
	if f.OK = atLeast62(info["redis_version"]); !f.OK {
		f.Advice = "use a server that is compatible with Redis 6.2 or later"
	}
	return f
}

// product is what a server calls itself, with its version.
func product(info map[string]string) string {
	version := info["redis_version"]
	for _, other := range []struct{ field, name string }{
		{"valkey_version", "Valkey"}, {"rlec_version", "Redis Enterprise"}, {"dragonfly_version", "Dragonfly"},
	} {
		if v := info[other.field]; v != "" {
			return other.name + " " + v + " (compatible with Redis " + version + ")"
		}
	}
	return "Redis " + version
}

func atLeast62(version string) bool {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, errA := strconv.Atoi(major)
	b, errB := strconv.Atoi(minor)
	return errA == nil && errB == nil && (a > 6 || a == 6 && b >= 2)
}

func checkMode(info map[string]string, wantCluster bool) Finding {
	f := Finding{Name: "mode", OK: true, Detail: "single server"}
	isCluster := info["cluster_enabled"] == "1" || info["redis_mode"] == "cluster"
	if isCluster {
		f.Detail = "Redis Cluster"
	}
	switch {
	case info["redis_mode"] == "sentinel":
		f = Finding{Name: "mode", Detail: "Redis Sentinel", Advice: "give the address of the primary, not of a sentinel"}
	case isCluster && !wantCluster:
		f.OK, f.Advice = false, "set korvet.redis.cluster to true"
	case !isCluster && wantCluster:
		f.OK, f.Advice = false, "set korvet.redis.cluster to false"
	}
	return f
}

func checkRole(info map[string]string) Finding {
	f := Finding{Name: "role", OK: info["role"] != "slave", Detail: "primary"}
	if !f.OK {
		f.Detail = "replica of " + info["master_host"] + ":" + info["master_port"]
		f.Advice = "give the address of the primary: a replica refuses writes"
	}
	return f
}

// diskStatuses are the fields of INFO that say whether saving went well.
func diskStatuses() []string {
	return []string{"rdb_last_bgsave_status", "aof_last_bgrewrite_status", "aof_last_write_status"}
}

func checkDisk(info map[string]string) Finding {
	f := Finding{Name: "persistence", Detail: "append-only file " + onOff(info["aof_enabled"])}
	for _, name := range diskStatuses() {
		if v := info[name]; v != "" && v != "ok" {
			f.Detail = name + " is " + v
			f.Advice = "mend the server's disk: it may refuse writes until a save succeeds"
			return f
		}
	}
	if info["loading"] == "1" {
		f.Detail, f.Advice = "loading its data", "try again when it is done"
		return f
	}
	f.OK = true
	return f
}

func onOff(v string) string {
	if v == "1" {
		return "on"
	}
	return "off"
}

func (f Finding) String() string {
	state := "ok"
	if !f.OK {
		state = "WRONG"
	}
	text := fmt.Sprintf("%s: %s: %s", f.Name, state, f.Detail)
	if f.Advice != "" {
		text += "; " + f.Advice
	}
	return text
}
