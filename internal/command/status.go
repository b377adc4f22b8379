package command

import (
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// statusView is the state of all partitions as --output json prints it.
type statusView struct {
	At         time.Time      `json:"at"`       // by the Redis server's clock
	Registry   string         `json:"registry"` // set, json or none
	Partitions []partView     `json:"partitions"`
	Problems   []problemView  `json:"problems"`
	Counts     offload.Counts `json:"found"`
	Lag        lagView        `json:"lag"`
	Removed    []removedView  `json:"removed"`
	Members    []memberView   `json:"members"` // the instances that run
	LentTo     string         `json:"lent_to"` // who has borrowed the lease, or waits for it; "" = nobody
	Paused     []pauseView    `json:"paused"`
	Eviction   evictionView   `json:"eviction"`
	Warnings   []string       `json:"warnings"`

	pauses []string // Paused for a person
}

// removedView is a topic that is gone from the registry, and whose segments are
// still there.
type removedView struct {
	Topic string    `json:"topic"`
	Since time.Time `json:"since"`
	Phase string    `json:"phase"` // removed, abandoned or doomed
}

// evictionView is what Redis may evict when its memory is full.
type evictionView struct {
	Risk      redisstore.EvictionRisk `json:"risk"`       // none, lease, streams or unknown
	Policy    string                  `json:"policy"`     // "" = not known
	MaxMemory int64                   `json:"max_memory"` // bytes; 0 = no limit
}

type partView struct {
	Topic     string `json:"topic"` // of a plain stream its key
	Partition int    `json:"partition"`
	Plain     bool   `json:"plain,omitempty"` // a plain stream
	Open      int    `json:"open"`
	Sealed    int    `json:"sealed"` // LOCAL
	Remote    int    `json:"remote"`
	Both      int    `json:"both"` // of these, with a local copy
	Deleting  int    `json:"deleting"`
	Illegal   int    `json:"illegal"`
	Messages  int64  `json:"remote_messages"`
	Bytes     int64  `json:"remote_bytes"`
	// OldestSeconds is how long the oldest sealed LOCAL segment has waited.
	OldestSeconds float64 `json:"oldest_seconds"`
}

func (p Process) statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show every partition's segments by tier, and the lag",
		Description: `Reads the manifests, asks how large streams are, and looks for the streams of
sealed segments (of 10,000, those that have waited longest first). REMOTE ONLY
counts the segments whose local copy is gone, BOTH TIERS those on the store and
still in Redis, WAITING those that are sealed and not copied yet. A partition's
lag is the latter, and how long the oldest of them has waited. Exit code 1 if a
topic, partition or entry can't be read, or the stream of a segment that waits is
not there.`,
		Flags:  append([]cli.Flag{outputFlag()}, settingFlags(slices.Concat(redisSettings(), []string{"tick-interval"})...)...),
		Action: p.status,
	}
}

func (p Process) status(c *cli.Context) error {
	cfg, err := p.settings(c, false)
	if err != nil {
		return err
	}
	s, err := connect(c.Context, cfg.Config, quiet{}, func(s3sink.Event) {})
	if err != nil {
		return err
	}
	defer s.close()
	scan, err := s.worker.Scan(c.Context)
	if err != nil {
		return err
	}
	plan := offload.MakePlan(scan, cfg.Worker)
	view := makeStatus(scan, plan, cfg.Config)
	view.Registry = string(s.redis.RegistryKind())
	view.addEviction(s.redis.Eviction(c.Context))
	if len(scan.Topics) == 0 {
		view.Warnings = append(view.Warnings, nothingKnown(cfg.Redis.Layout))
	}
	view.addMembers(c.Context, s)
	if err := p.printStatus(c.String("output"), view); err != nil {
		return err
	}
	return p.complainAbout(offload.Report{Problems: plan.Problems}, nil)
}

func makeStatus(scan offload.Scan, plan offload.Plan, cfg config.Config) statusView {
	sla := cfg.Worker.TickInterval + cfg.Worker.SLA
	v := statusView{At: scan.At, Partitions: []partView{}, Problems: problemViews(plan.Problems), Counts: plan.Counts,
		Lag:     makeLag(plan, sla),
		Removed: []removedView{}, Paused: pauseViews(plan.Paused), Warnings: append([]string{}, plan.Warnings...)}
	v.pauses = pauseLines(plan.Paused)
	for i := range scan.Partitions {
		v.Partitions = append(v.Partitions, makePart(&scan.Partitions[i], scan.At))
	}
	for _, t := range plan.Removed {
		v.Removed = append(v.Removed, removedView{t.Topic.Name, time.UnixMilli(t.Since).UTC(), string(t.Phase)})
	}
	return v
}

// addEviction adds what Redis has said of itself. That it may not be asked is
// no fault of what status is about.
func (v *statusView) addEviction(e redisstore.Eviction, err error) {
	if err != nil {
		e = redisstore.Eviction{}
	}
	v.Eviction = evictionView{Risk: e.Risk(), Policy: e.Policy, MaxMemory: e.MaxMemory}
	if advice := e.Advice(); advice != "" {
		v.Warnings = append(v.Warnings, e.String()+": "+advice)
	}
}

// topicCount counts the topics, and says so if others are not offloaded.
func topicCount(c offload.Counts) string {
	text := words.Count(c.Topics-c.Streams, "topic")
	if c.Streams > 0 {
		text += " and " + words.Count(c.Streams, "plain stream")
	}
	if c.Faulty > 0 {
		text += fmt.Sprintf(", %d that can't be worked on", c.Faulty)
	}
	if c.OtherTopics > 0 {
		text += fmt.Sprintf(" (and %d without remote.storage.enable)", c.OtherTopics)
	}
	return text
}

func makePart(s *offload.PartitionScan, at time.Time) partView {
	t := s.Totals()
	p := partView{Topic: s.Partition.Topic, Partition: s.Partition.Number, Plain: s.Partition.Plain, Open: t.Open, Sealed: t.Sealed,
		Remote: t.Remote, Both: t.Both, Deleting: t.Deleting, Illegal: t.Illegal, Messages: t.Messages, Bytes: t.Bytes}
	if t.Oldest != 0 {
		p.OldestSeconds = max(0, float64(at.UnixMilli()-t.Oldest)/1000)
	}
	return p
}

func (p Process) printStatus(format string, v statusView) error {
	if format == outputJSON {
		return cmdline.WriteJSON(p.Stdout, v)
	}
	t := newTable("PARTITION", ">REMOTE ONLY", ">BOTH TIERS", ">WAITING", ">OPEN", ">DELETING", ">ILLEGAL", ">REMOTE MESSAGES", ">ON THE STORE", ">OLDEST WAITS")
	for _, part := range v.Partitions {
		name := segment.Partition{Topic: part.Topic, Number: part.Partition, Plain: part.Plain}
		t.add(name, part.Remote-part.Both, part.Both, part.Sealed, part.Open, part.Deleting, part.Illegal,
			part.Messages, words.Size(part.Bytes), ago(seconds(part.OldestSeconds)))
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	if err := p.writeLines(slices.Concat(memberLines(v.Members, v.At), v.lentLines(), v.pauses)); err != nil {
		return err
	}
	if err := p.printRemoved(v.Removed); err != nil {
		return err
	}
	for _, w := range v.Warnings {
		p.complain("warning: " + w)
	}
	if err := p.writeLines(v.Lag.headroom()); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, "registry: %s; %s, %s; %s\n", v.Registry, topicCount(v.Counts), words.Count(v.Counts.Partitions, "partition"), v.Lag)
	return err
}

// whatBecomes says it of a topic that is gone from the registry.
func whatBecomes(p offload.Phase) string {
	switch p {
	case offload.Abandoned:
		return "left alone; korvet.storage.offload.delete-removed-topics would delete it"
	case offload.Doomed:
		return "being deleted"
	}
	return "kept as it was, until korvet.storage.offload.topic-delete-grace is over"
}

// printRemoved says what becomes of topics that are gone from the registry.
func (p Process) printRemoved(topics []removedView) error {
	for _, t := range topics {
		if _, err := fmt.Fprintf(p.Stdout, "topic %s left the registry at %s: %s\n", t.Topic, t.Since.Format(time.RFC3339), whatBecomes(offload.Phase(t.Phase))); err != nil {
			return err
		}
	}
	return nil
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
