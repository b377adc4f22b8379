package command

import (
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/config"
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
}

type partView struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Open      int    `json:"open"`
	Sealed    int    `json:"sealed"` // LOCAL
	Remote    int    `json:"remote"`
	Deleting  int    `json:"deleting"`
	Illegal   int    `json:"illegal"`
	Messages  int64  `json:"remote_messages"`
	Bytes     int64  `json:"remote_bytes"`
	// OldestSeconds is how long the oldest sealed LOCAL segment has waited.
	OldestSeconds float64 `json:"oldest_seconds"`
}

type lagView struct {
	Segments      int     `json:"segments"`
	OldestSeconds float64 `json:"oldest_seconds"`
	SLASeconds    float64 `json:"sla_seconds"` // tick-interval + sla
	Unknown       int     `json:"unknown"`     // of these segments, whose entry does not say when they were sealed
	SLAMet        *bool   `json:"sla_met"`     // null = not known: something could not be read, or does not say its age
}

func (p Process) statusCommand() *cli.Command {
	return &cli.Command{
		Name:  "status",
		Usage: "show every partition's segments by tier, and the lag",
		Description: `Reads the manifests, and nothing else. A partition's lag is the number of sealed
segments that are still LOCAL, and how long the oldest of them has waited. Exit
code 1 if a topic, partition or entry can't be read.`,
		Flags:  append([]cli.Flag{outputFlag()}, config.Flags()...),
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
	plan := offload.MakePlan(scan, cfg.Worker.SealGrace)
	view := makeStatus(scan, plan, cfg.Config)
	view.Registry = string(s.redis.RegistryKind())
	if err := p.printStatus(c.String("output"), view); err != nil {
		return err
	}
	return p.complainAbout(offload.Report{Problems: plan.Problems}, nil)
}

func makeStatus(scan offload.Scan, plan offload.Plan, cfg config.Config) statusView {
	sla := cfg.Worker.TickInterval + cfg.Worker.SLA
	v := statusView{At: scan.At, Partitions: []partView{}, Problems: problemViews(plan.Problems), Counts: plan.Counts,
		Lag: lagView{Segments: plan.Lag.Segments, OldestSeconds: plan.Lag.Oldest.Seconds(), Unknown: plan.Lag.Unknown,
			SLASeconds: sla.Seconds(), SLAMet: slaMet(plan, sla)}}
	for _, part := range scan.Partitions {
		v.Partitions = append(v.Partitions, makePart(part, scan.At))
	}
	return v
}

// topicCount counts the topics, and says so if others are not offloaded.
func topicCount(c offload.Counts) string {
	text := count(c.Topics, "topic")
	if c.OtherTopics > 0 {
		text += fmt.Sprintf(" (and %d without remote.storage.enable)", c.OtherTopics)
	}
	return text
}

// slaMet says whether the SLA is met; nil where that can't be known.
func slaMet(plan offload.Plan, sla time.Duration) *bool {
	met := plan.Lag.Oldest <= sla
	if met && (plan.Lag.Unknown > 0 || len(plan.Problems) > 0) {
		return nil
	}
	return &met
}

func makePart(s offload.PartitionScan, at time.Time) partView {
	p := partView{Topic: s.Manifest.Partition.Topic, Partition: s.Manifest.Partition.Number, Illegal: len(s.Manifest.Alien)}
	for _, e := range s.Manifest.Entries {
		switch {
		case e.Err != nil:
			p.Illegal++
		case e.Entry.State == segment.Open:
			p.Open++
		case e.Entry.State == segment.Deleting:
			p.Deleting++
		case e.Entry.Tier == segment.Remote:
			p.Remote++
			p.Messages += max(0, e.Entry.Count)
			if e.Entry.Object != nil {
				p.Bytes += e.Entry.Object.Bytes
			}
		default:
			p.Sealed++
			if e.Entry.SealedAt != 0 {
				p.OldestSeconds = max(p.OldestSeconds, float64(at.UnixMilli()-e.Entry.SealedAt)/1000)
			}
		}
	}
	return p
}

func (p Process) printStatus(format string, v statusView) error {
	if format == outputJSON {
		return writeJSON(p.Stdout, v)
	}
	t := newTable("PARTITION", ">OPEN", ">SEALED", ">REMOTE", ">DELETING", ">ILLEGAL", ">REMOTE MESSAGES", ">REMOTE SIZE", ">OLDEST WAITS")
	for _, part := range v.Partitions {
		t.add(fmt.Sprintf("%s:%d", part.Topic, part.Partition), part.Open, part.Sealed, part.Remote, part.Deleting, part.Illegal,
			part.Messages, size(part.Bytes), ago(seconds(part.OldestSeconds)))
	}
	if len(t.rows) > 0 {
		if err := t.write(p.Stdout); err != nil {
			return err
		}
	}
	sla := "not known"
	if v.Lag.SLAMet != nil {
		sla = map[bool]string{true: "met", false: "BROKEN"}[*v.Lag.SLAMet]
	}
	_, err := fmt.Fprintf(p.Stdout, "registry: %s; %s, %s; lag: %s, the oldest waits %s; SLA of %s %s\n",
		v.Registry, topicCount(v.Counts), count(v.Counts.Partitions, "partition"), count(v.Lag.Segments, "segment"),
		ago(seconds(v.Lag.OldestSeconds)), ago(seconds(v.Lag.SLASeconds)), sla)
	return err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
