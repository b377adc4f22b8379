package command

import (
	"context"
	"runtime/debug"
	"sync"
	"time"

	"korvet-offload/internal/config"
	"korvet-offload/internal/doctor"
	"korvet-offload/internal/redisstore"
	"korvet-offload/lease"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// depth is how much is looked at.
type depth struct {
	redis *redisstore.Store // one that is open; nil = open one
	brief bool              // what is cheap, and leaves no trace in Redis' ACL log or on the store
}

// How long Redis may take to answer everything, and the store.
const (
	redisTime = 20 * time.Second
	storeTime = 20 * time.Second
)

// examine looks at everything at once, and judges it. It returns when ctx ends,
// or a little later when it has something to remove.
func examine(ctx context.Context, cfg config.Config, d depth) []doctor.Finding {
	var (
		wg    sync.WaitGroup
		redis redisFacts
		place placeFacts
	)
	wg.Go(func() { redis = lookAtRedis(ctx, cfg, d) })
	wg.Go(func() { place = lookAtPlace(ctx, cfg, d) })
	wg.Wait()
	topics := offloaded(redis.facts)
	if !d.brief && doctor.Unclaimed(place.facts) && redis.err == nil { // at a start the first upload may be under way
		place.past = lookForObjects(ctx, cfg, d, topics)
	}
	all := append(redis.judge(cfg, d), place.judge(cfg, topics, redis.cluster)...)
	all = append(all, doctor.OfSettings(settingsFacts(cfg, topics))...)
	return doctor.Sorted(all)
}

// redisFacts is what was found at Redis.
type redisFacts struct {
	err     error // it can't be reached
	facts   redisstore.Facts
	holders map[string]string // of the leases
	cluster doctor.Cluster
}

func lookAtRedis(ctx context.Context, cfg config.Config, d depth) redisFacts {
	ctx, cancel := context.WithTimeout(ctx, redisTime)
	defer cancel()
	s := d.redis
	if s == nil {
		var err error
		if s, err = openAnyMode(ctx, cfg); err != nil {
			return redisFacts{err: err}
		}
		defer s.Close()
	}
	found := redisFacts{facts: s.Facts(ctx, redisstore.Look{
		Leases: leaseKeys(cfg.Lease), Config: !d.brief, Rights: !d.brief, WaitAOF: cfg.Redis.WaitAOF && !d.brief,
	})}
	if !d.brief {
		found.holders = holders(ctx, s, cfg.Lease)
		found.cluster = whichCluster(ctx, s)
	}
	return found
}

// whichCluster is nothing where Redis does not say: that is the business of
// other checks.
func whichCluster(ctx context.Context, s *redisstore.Store) doctor.Cluster {
	id, err := s.ClusterID(ctx)
	if err != nil {
		return doctor.Cluster{}
	}
	known, err := s.Known(ctx)
	if err != nil {
		return doctor.Cluster{}
	}
	return doctor.Cluster{Told: true, ID: id, Topics: len(known)}
}

func (r redisFacts) judge(cfg config.Config, d depth) []doctor.Finding {
	if r.err != nil {
		return doctor.NoRedis(r.err)
	}
	return doctor.OfRedis(r.facts, doctor.RedisWant{Cluster: cfg.Redis.Cluster, WaitReplicas: cfg.Redis.WaitReplicas, WaitAOF: cfg.Redis.WaitAOF,
		Tick: cfg.Worker.TickInterval, Lease: cfg.Lease.Duration, Rights: !d.brief, Holders: r.holders})
}

// openAnyMode opens a Redis that the settings may describe wrongly: WAITAOF is
// tried later, and where it is a cluster or not against what the settings say,
// the rest can be looked at all the same.
func openAnyMode(ctx context.Context, cfg config.Config) (*redisstore.Store, error) {
	c := cfg.Redis
	c.WaitAOF = false
	s, err := redisstore.Open(ctx, c, cfg.Topics, cfg.Streams)
	if redisstore.ClassOf(err) != redisstore.WrongMode {
		return s, err
	}
	c.Cluster = !c.Cluster
	if other, oerr := redisstore.Open(ctx, c, cfg.Topics, cfg.Streams); oerr == nil {
		return other, nil
	}
	return nil, err
}

// leaseKeys are the keys of all shards' leases.
func leaseKeys(c lease.Config) []string {
	keys := make([]string, max(1, c.Shards))
	for i := range keys {
		keys[i] = c.ShardKey(i)
	}
	return keys
}

// holders says who holds the leases, as far as the list of instances tells; it
// is not worth an error.
func holders(ctx context.Context, s *redisstore.Store, c lease.Config) map[string]string {
	of := map[string]string{}
	members, err := lease.Members(ctx, s.Client(), c)
	if err != nil {
		return of
	}
	for _, m := range members {
		for _, i := range m.Shards {
			if m.Of == max(1, c.Shards) {
				of[c.ShardKey(i)] = "instance " + m.ID
			}
		}
	}
	return of
}

// placeFacts is what was found at the store.
type placeFacts struct {
	unset  bool  // the settings name none
	err    error // they describe none
	facts  s3sink.Facts
	trials *s3sink.Trials // nil = nothing was tried
	past   doctor.Past
}

// lookAtPlace has a store of its own, whose patience is shorter than a worker's.
func lookAtPlace(ctx context.Context, cfg config.Config, d depth) placeFacts {
	if cfg.Store.URL == "" {
		return placeFacts{unset: true}
	}
	in, err := s3sink.OpenInspector(cfg.Store, s3sink.Options{
		Owner:     s3sink.Owner{Namespace: cfg.Redis.Layout.Namespace},
		UserAgent: "korvet-offload/" + version().Version,
	})
	if err != nil {
		return placeFacts{err: err}
	}
	defer in.Close()
	limited, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	p := placeFacts{facts: in.Inspect(limited)}
	if !d.brief && doctor.CanTry(p.facts) {
		trials := in.Try(ctx)
		p.trials = &trials
	}
	return p
}

func (p placeFacts) judge(cfg config.Config, topics []segment.Topic, of doctor.Cluster) []doctor.Finding {
	if p.unset {
		return doctor.UnsetStore()
	}
	if p.err != nil {
		return doctor.NoStore(p.err)
	}
	all := doctor.OfStore(p.facts, doctor.StoreWant{
		Namespace: cfg.Redis.Layout.Namespace, Retentions: retentions(cfg, p.facts, topics), Now: time.Now(), Past: p.past, Cluster: of,
	})
	if p.trials != nil {
		kms := p.facts.Bucket != nil && p.facts.Bucket.Encryption.Value.KMS()
		all = append(all, doctor.OfTrials(*p.trials, kms)...)
	}
	return all
}

// offloaded are the topics, and plain streams, that are worked on; nil where
// they are not known.
func offloaded(f redisstore.Facts) []segment.Topic {
	if f.NoTopics != nil || f.Registry == redisstore.RegistryUnread {
		return nil
	}
	all := []segment.Topic{}
	for _, t := range f.Topics {
		if t.Err == nil && t.Settings.RemoteStorage {
			all = append(all, t)
		}
	}
	return all
}

// retentions are the topics' total retention, with the beginning of the keys
// of their objects.
func retentions(cfg config.Config, f s3sink.Facts, topics []segment.Topic) []doctor.Retention {
	if topics == nil || f.Bucket == nil {
		return nil
	}
	all := make([]doctor.Retention, 0, len(topics))
	for _, t := range topics {
		ms := min(max(0, t.Settings.RetentionMs), maxRetention.Milliseconds())
		all = append(all, doctor.Retention{Topic: t.Name, Total: time.Duration(ms) * time.Millisecond,
			Prefix: f.Bucket.Prefix + folderOf(cfg.Redis.Layout, t)})
	}
	return all
}

// maxRetention is as long as can be told from for ever.
const maxRetention = 200 * 365 * 24 * time.Hour

// folderOf is what the folders of all partitions of a topic begin with.
func folderOf(l segment.Layout, t segment.Topic) string {
	first, second := l.Folder(t.Partition(0)), l.Folder(t.Partition(1))
	n := 0
	for n < min(len(first), len(second)) && first[n] == second[n] {
		n++
	}
	return first[:n]
}

func settingsFacts(cfg config.Config, topics []segment.Topic) doctor.SettingsFacts {
	w := cfg.Worker
	f := doctor.SettingsFacts{Tick: w.TickInterval, Lease: cfg.Lease.Duration, Concurrency: w.Concurrency,
		SpoolDir: w.SpoolDir, SpoolMemory: w.SpoolMemory, MemoryLimit: debug.SetMemoryLimit(-1),
		StorageClass: cfg.Store.StorageClass, Topics: topics}
	if f.NoSpool = w.CheckSpool(); f.NoSpool == nil {
		f.Spool = s3sink.LookAtFolder(w.SpoolDir)
	}
	return f
}
