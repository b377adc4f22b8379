package board

import (
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

// Role is what the instance is to the others.
type Role string

// The roles.
const (
	Starting  Role = "starting"  // it has not asked for the lead yet, or has just lost it
	Leading   Role = "leading"   // it does the work, or its share
	Following Role = "following" // another instance does
)

// StateParked is the state of a Run of segments that are stuck. The others are
// those of offload.RunState.
const StateParked = "parked"

// Instance is the running program.
type Instance struct {
	Host       string    `json:"host"`
	Version    string    `json:"version"`
	Namespace  string    `json:"namespace"`
	RemotePath string    `json:"remote_path"`
	StartedAt  time.Time `json:"started_at"`
}

// Member is an instance that has told the others of itself.
type Member struct {
	ID        string    `json:"id"`
	Host      string    `json:"host"`
	Version   string    `json:"version"`
	Address   string    `json:"address"` // of its HTTP server; "" = it has none, or does not say
	StartedAt time.Time `json:"started_at"`
	SeenAt    time.Time `json:"seen_at"`
	Shards    []int     `json:"shards"` // that it leads, counted from 0
	Of        int       `json:"of"`     // how many there are
	Self      bool      `json:"self"`
}

// Pause is something that is not worked on because somebody wants peace.
type Pause struct {
	Scope  string     `json:"scope"` // all, topic or stream
	Name   string     `json:"name"`  // of the topic, or the stream's key; "" for all
	Since  *time.Time `json:"since"` // by the Redis clock; null = not known
	By     string     `json:"by"`
	Reason string     `json:"reason"`
	Error  string     `json:"error"` // why the rest is not known; "" = it is
}

// Outage is a part without which no work can be done.
type Outage struct {
	Part  string    `json:"part"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
}

// Eviction is what Redis may evict when its memory is full.
type Eviction struct {
	Risk      string `json:"risk"`       // none, lease, streams or unknown
	Policy    string `json:"policy"`     // "" = not known
	MaxMemory int64  `json:"max_memory"` // bytes; 0 = no limit
	Advice    string `json:"advice"`     // "" = nothing to do
}

// Setting is a setting in effect.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // a secret is shown as xxxxx
	Source string `json:"source"` // default, file, environment or flag
	From   string `json:"from"`   // file:line, variable or flag; "" for a default
}

// Removed is a topic that is gone from the registry, and whose segments are
// still there.
type Removed struct {
	Topic string    `json:"topic"`
	Since time.Time `json:"since"`
	Phase string    `json:"phase"` // removed, abandoned or doomed
}

// Problem is something that is stuck.
type Problem struct {
	Where     string     `json:"where"`
	Topic     string     `json:"topic"` // of a plain stream its key; "" = not that of a topic
	Plain     bool       `json:"plain"`
	Partition *int       `json:"partition"` // null = the whole topic
	Segment   string     `json:"segment"`   // "" = the whole partition
	Reason    string     `json:"reason"`
	Loss      bool       `json:"loss"` // data seems to be lost, or out of every reader's sight
	Text      string     `json:"text"`
	Since     time.Time  `json:"since"`       // when this instance first met it
	Retry     *time.Time `json:"next_try_at"` // null = at the next pass, or not known
}

// Problems is what is stuck, the worst first.
type Problems struct {
	Total    int            `json:"total"`
	Loss     int            `json:"loss"`
	ByReason map[string]int `json:"by_reason"`
	List     []Problem      `json:"list"` // the first 1000 of them
}

// Phase is a part of a pass.
type Phase struct {
	Name    string  `json:"phase"` // scan, roll, expire or transfer
	Seconds float64 `json:"seconds"`
}

// Pass is one that is over.
type Pass struct {
	StartedAt time.Time      `json:"started_at"`
	Seconds   float64        `json:"seconds"`
	Phases    []Phase        `json:"phases"`
	Did       map[string]int `json:"did"`      // segments by result
	BytesIn   int64          `json:"read"`     // from Redis
	BytesOut  int64          `json:"stored"`   // of objects
	Problems  int            `json:"problems"` // parked ones included
	Left      int            `json:"left"`     // due, and not tried
	Error     string         `json:"error"`    // why it was given up; "" = it was not
}

// Current is the pass under way.
type Current struct {
	StartedAt time.Time `json:"started_at"` // when it knew what to do
	Planned   int       `json:"planned"`    // steps, parked ones included
	Done      int       `json:"done"`
	Failed    int       `json:"failed"`
	BytesIn   int64     `json:"read"`   // from Redis so far, those of attempts that failed included
	BytesOut  int64     `json:"stored"` // of objects that are there
	Uploads   []Upload  `json:"uploads"`
}

// Upload is an object on its way to the store.
type Upload struct {
	Object    string    `json:"object"` // its path below the root
	StartedAt time.Time `json:"started_at"`
	Bytes     int64     `json:"bytes"` // of all of it
	Sent      int64     `json:"sent"`  // so far, what is sent again counts again, up to all of it
}

// Lag is how far the remote tier and the deletions are behind.
type Lag struct {
	Segments       int     `json:"segments"`
	Bytes          int64   `json:"bytes"` // that these take in Redis, as far as known
	OldestSeconds  float64 `json:"oldest_seconds"`
	Unknown        int     `json:"unknown"` // of these segments, whose entry does not say when they were sealed
	SLASeconds     float64 `json:"sla_seconds"`
	SLA            string  `json:"sla"` // met, broken or unknown
	Overdue        int     `json:"overdue"`
	OverdueSeconds float64 `json:"overdue_seconds"`
	// LocalHeadroom and TotalHeadroom are how long it takes until a retention
	// reaches a segment that is not copied yet; below 0 = it has. null = there is
	// no such segment, or no limit.
	LocalHeadroom *float64 `json:"local_headroom_seconds"`
	TotalHeadroom *float64 `json:"total_headroom_seconds"`
}

// The values of Lag.SLA.
const (
	SLAMet     = "met"
	SLABroken  = "broken"
	SLAUnknown = "unknown"
)

// Totals sums up segments.
type Totals struct {
	Open          int     `json:"open"`
	Sealed        int     `json:"sealed"`      // in Redis only, waiting
	Both          int     `json:"both"`        // on the store, with a local copy
	RemoteOnly    int     `json:"remote_only"` // on the store, without one
	Deleting      int     `json:"deleting"`
	Illegal       int     `json:"illegal"`
	Problems      int     `json:"problems"`
	Messages      int64   `json:"remote_messages"`
	Bytes         int64   `json:"remote_bytes"`
	OldestSeconds float64 `json:"oldest_seconds"` // how long the oldest sealed one has waited at the scan
}

// Topic is a topic, or a plain stream, with its partitions summed up.
type Topic struct {
	Topic      string `json:"topic"`
	Plain      bool   `json:"plain"`
	Phase      string `json:"phase"`
	Partitions int    `json:"partitions"`
	Paused     bool   `json:"paused"`
	Totals
}

// Partition is one partition.
type Partition struct {
	Topic     string `json:"topic"`
	Partition int    `json:"partition"`
	Plain     bool   `json:"plain"`
	Phase     string `json:"phase"` // live, disabled, removed or doomed
	Paused    bool   `json:"paused"`
	Error     string `json:"error"` // why it could not be read; "" = it was
	Totals
	Runs []Run `json:"runs"`
}

// Run is a row of segments of one partition in the same state, with none of
// another state between them.
type Run struct {
	State    string         `json:"state"`
	First    segment.Number `json:"first"`
	Last     segment.Number `json:"last"`
	Count    int            `json:"count"`
	Messages int64          `json:"messages"`
	Bytes    int64          `json:"bytes"`
	FirstAt  *time.Time     `json:"first_at"` // null = not known
	LastAt   *time.Time     `json:"last_at"`
}

// clock is a time in epoch ms; nil = not known.
func clock(ms int64) *time.Time {
	if ms <= 0 || ms > segment.MaxTime {
		return nil
	}
	t := time.UnixMilli(ms).UTC()
	return &t
}

// Status is all that is shown, with some of the topics and of the partitions.
type Status struct {
	Instance    Instance       `json:"instance"`
	Health      Health         `json:"health"`
	Role        Role           `json:"role"`
	RoleSince   time.Time      `json:"role_since"`
	Lost        string         `json:"lost"` // why the lead was lost last; "" = it was not
	Members     []Member       `json:"members"`
	Paused      []Pause        `json:"paused"` // the first 100 of them
	PausedTotal int            `json:"paused_total"`
	ScannedAt   *time.Time     `json:"scanned_at"` // by the Redis clock; null = no scan, or another instance leads
	Lag         Lag            `json:"lag"`
	Counts      offload.Counts `json:"found"`
	Doubt       string         `json:"doubt"` // why nothing is deleted; "" = it may be
	Problems    Problems       `json:"problems"`
	Outages     []Outage       `json:"outages"`
	Warnings    []string       `json:"warnings"`
	Removed     []Removed      `json:"removed"`
	Eviction    Eviction       `json:"eviction"`
	Current     *Current       `json:"pass_under_way"`
	Passes      []Pass         `json:"passes"` // the newest first
	Settings    []Setting      `json:"settings"`
	Topics      Topics         `json:"topics"`
	Partitions  Partitions     `json:"partitions"`

	pauses []Pause // all of them
}

// Topics is a page of topics.
type Topics struct {
	Total  int     `json:"total"`
	Offset int     `json:"offset"`
	Limit  int     `json:"limit"`
	Items  []Topic `json:"items"`
}

// Partitions is a page of partitions.
type Partitions struct {
	Total  int         `json:"total"`
	Offset int         `json:"offset"`
	Limit  int         `json:"limit"`
	Items  []Partition `json:"items"`
}
