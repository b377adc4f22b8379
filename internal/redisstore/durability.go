package redisstore

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// checkAOF says whether the server can do WAITAOF and has something to wait
// for: every primary of a cluster that answers. A replica can't say.
func (s *Store) checkAOF(ctx context.Context) error {
	nodes := s.client.Nodes()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		err := wrap(ctx, "WAITAOF", "", explainAOF(s.tryWaitAOF(ctx, nodes[addr])))
		if s.cfg.Cluster && ClassOf(err) == Unavailable {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) tryWaitAOF(ctx context.Context, node rueidis.Client) error {
	limited, done := limit(ctx, s.cfg.timeout())
	defer done()
	return node.Do(limited, node.B().Arbitrary("WAITAOF", "1", "0", "1").Build()).Error()
}

// explainAOF adds what to do about what WAITAOF has answered.
func explainAOF(err error) error {
	reply, _ := replyText(err)
	switch {
	case strings.Contains(reply, "with replica instances"):
		return nil
	case strings.Contains(reply, "unknown command"):
		return fmt.Errorf("the server does not know it: korvet.storage.offload.wait-aof needs Redis 7.2 or later; "+
			"set it to false, or use korvet.storage.offload.wait-replicas: %w", err)
	case strings.Contains(reply, "appendonly is disabled"):
		return fmt.Errorf("korvet.storage.offload.wait-aof needs the server's append-only file: set appendonly to yes there, or it to false here: %w", err)
	}
	return err
}

// checkDurability looks at what durable changes are to wait for.
func (s *Store) checkDurability(ctx context.Context) []Finding {
	var findings []Finding
	if s.cfg.WaitReplicas > 0 {
		findings = append(findings, s.checkReplicas(ctx))
	}
	if s.cfg.WaitAOF {
		f := Finding{Name: "wait-aof", OK: true, Detail: "the server knows WAITAOF and has an append-only file"}
		if err := s.checkAOF(ctx); err != nil {
			f = Finding{Name: "wait-aof", Detail: err.Error(), Advice: "until then no local copy is removed"}
		}
		findings = append(findings, f)
	}
	return findings
}

// checkReplicas counts those that are in step with their primary; in a
// cluster the primary with the fewest counts.
func (s *Store) checkReplicas(ctx context.Context) Finding {
	f := Finding{Name: "wait-replicas"}
	fewest, err := s.fewestReplicas(ctx)
	if err != nil {
		f.Detail, f.Advice = err.Error(), adviceFor(err)
		return f
	}
	f.Detail = fmt.Sprintf("%d of %d replicas connected", fewest, s.cfg.WaitReplicas)
	if f.OK = fewest >= s.cfg.WaitReplicas; !f.OK {
		f.Advice = "connect more replicas, or lower korvet.storage.offload.wait-replicas: until then no local copy is removed"
	}
	return f
}

func (s *Store) fewestReplicas(ctx context.Context) (int, error) {
	fewest := -1
	nodes := s.client.Nodes()
	for _, addr := range slices.Sorted(maps.Keys(nodes)) {
		text, err := askInfo(ctx, s.cfg, nodes[addr])
		if err != nil {
			return 0, wrap(ctx, "INFO", "", err)
		}
		info := infoLines(text)
		if n := strings.Count(text, ",state=online,"); info["role"] == "master" && (fewest < 0 || n < fewest) {
			fewest = n
		}
	}
	return max(0, fewest), nil
}

func askInfo(ctx context.Context, c Config, node rueidis.Client) (string, error) {
	limited, done := limit(ctx, c.timeout())
	defer done()
	return node.Do(limited, node.B().Info().Section("replication").Build()).ToString()
}
