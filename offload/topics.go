package offload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"korvet-offload/segment"
)

// Phase is what may be done with a topic's segments.
type Phase string

// The phases of a topic, or plain stream.
const (
	Live      Phase = "live"      // everything
	Disabled  Phase = "disabled"  // offloading was switched off: what is REMOTE lives out its retention
	Removed   Phase = "removed"   // gone from the registry; everything, by the settings it had last, until the grace is over
	Abandoned Phase = "abandoned" // gone, the grace is over: nothing; status reports it
	Doomed    Phase = "doomed"    // gone, the grace is over, and removed topics are to be deleted
)

// TopicState is a topic with what may be done.
type TopicState struct {
	Topic segment.Topic // Settings are those in effect
	Phase Phase
	Since int64 // epoch ms, of the removal
	// Keep: nothing of it is deleted, because what is known of it is in doubt.
	Keep error
	// Elsewhere: another instance speaks for the topic; this one may work on
	// partitions of it.
	Elsewhere bool
}

// Works says whether segments are rolled and copied.
func (t TopicState) Works() bool {
	return (t.Phase == Live || t.Phase == Removed) && t.Topic.Settings.RemoteStorage
}

// record is what is remembered of a topic that is, or was, offloaded. It lies
// in Redis, since a restart must not make a removed topic's settings forgotten.
type record struct {
	V         int                   `json:"v"`
	Settings  segment.TopicSettings `json:"settings"`
	Bare      bool                  `json:"bare,omitempty"`      // the registry had no setting of it
	RemovedAt int64                 `json:"removedAt,omitempty"` // epoch ms, when it was first missed
}

const recordVersion = 1

func (r record) encode() string {
	r.V = recordVersion
	raw, _ := json.Marshal(r) // plain values always have a JSON form
	return string(raw)
}

func parseRecord(topic, raw string) (record, error) {
	r := record{Settings: segment.DefaultTopicSettings()}
	if err := segment.ValidateTopic(topic); err != nil {
		return r, err
	}
	if err := json.Unmarshal([]byte(raw), &r); err != nil || r.V != recordVersion || r.RemovedAt < 0 || r.RemovedAt > segment.MaxTime {
		return r, fmt.Errorf("%w: the record of topic %s is not one of version %d", segment.ErrTopicSetting, topic, recordVersion)
	}
	if r.Settings.Partitions < 1 || r.Settings.Partitions > segment.MaxPartitions {
		return r, fmt.Errorf("%w: the record of topic %s has %d partitions", segment.ErrTopicSetting, topic, r.Settings.Partitions)
	}
	if err := r.Settings.Check(); err != nil {
		return r, fmt.Errorf("%w: the record of topic %s: %s", segment.ErrTopicSetting, topic, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return r, nil
}

// note is a record to be written.
type note struct{ topic, old, new string }

// roster sorts the topics of the registry and those remembered into phases.
type roster struct {
	now    int64
	cfg    Config
	known  map[string]string // records as they are in Redis
	frozen bool              // the registry is in doubt: no topic counts as removed

	states []TopicState
	notes  []note
}

// newRoster is pure.
func newRoster(topics []segment.Topic, known map[string]string, frozen bool, cfg Config, now time.Time) *roster {
	r := &roster{now: now.UnixMilli(), cfg: cfg, known: known, frozen: frozen}
	there := map[string]bool{}
	for _, t := range topics {
		if t.Plain {
			r.plain(t)
			continue
		}
		there[t.Name] = true
		r.registered(t)
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if !there[name] {
			r.missing(name)
		}
	}
	return r
}

func (r *roster) plain(t segment.Topic) {
	phase := Live
	if t.Err == nil && !t.Settings.RemoteStorage {
		phase = Disabled
	}
	r.states = append(r.states, TopicState{Topic: t, Phase: phase})
}

// registered sorts in a topic that the registry has.
func (r *roster) registered(t segment.Topic) {
	raw, isKnown := r.known[t.Name]
	was, err := record{}, error(nil)
	if isKnown {
		was, err = parseRecord(t.Name, raw)
	}
	s := TopicState{Topic: t, Phase: Live}
	switch {
	case t.Err != nil:
		r.states = append(r.states, s)
		return
	case isKnown && err == nil && t.Bare && !was.Bare:
		s.Keep = fmt.Errorf("%w: topic %s: the registry holds no setting of it any more; going on with those it had last, and deleting nothing; restore its settings, or remove the topic",
			segment.ErrTopicSetting, t.Name)
		if s.Topic.Settings = was.Settings; !was.Settings.RemoteStorage {
			s.Phase = Disabled
		}
		r.states = append(r.states, s)
		return
	case !t.Settings.RemoteStorage && !isKnown:
		s.Phase = ""
		r.states = append(r.states, s)
		return
	case !t.Settings.RemoteStorage:
		s.Phase = Disabled
	}
	if err == nil { // partitions that were there once may hold segments
		s.Topic.Settings.Partitions = max(t.Settings.Partitions, was.Settings.Partitions)
	}
	r.states = append(r.states, s)
	r.write(t.Name, raw, record{Settings: s.Topic.Settings, Bare: t.Bare})
}

// missing sorts in a topic that only is remembered.
func (r *roster) missing(name string) {
	raw := r.known[name]
	was, err := parseRecord(name, raw)
	s := TopicState{Topic: segment.Topic{Name: name, Settings: was.Settings, Err: err}, Phase: Removed, Since: was.RemovedAt}
	switch {
	case err != nil:
	case was.RemovedAt == 0 && r.frozen:
		s.Since = r.now
	case was.RemovedAt == 0:
		s.Since = r.now
		was.RemovedAt = r.now
		r.write(name, raw, was)
	case r.now-was.RemovedAt < r.cfg.TopicDeleteGrace.Milliseconds():
	case r.cfg.DeleteRemovedTopics:
		s.Phase = Doomed
	default:
		s.Phase = Abandoned
	}
	r.states = append(r.states, s)
}

func (r *roster) write(topic, old string, now record) {
	if raw := now.encode(); raw != old {
		r.notes = append(r.notes, note{topic, old, raw})
	}
}

// inRegistry counts the topics that the registry itself has.
func inRegistry(topics []segment.Topic) int {
	n := 0
	for _, t := range topics {
		if !t.Plain && !t.Declared {
			n++
		}
	}
	return n
}

// back makes the manifests of a topic that has come back be read whole: it may be
// another one of the same name, without an id that would tell.
func (m *memory) back(s TopicState) {
	gone := s.Phase == Removed || s.Phase == Doomed
	if m.gone[s.Topic.Name] && !gone {
		for p, x := range m.indexes {
			if p.Topic == s.Topic.Name {
				x.stale()
			}
		}
	}
	m.gone[s.Topic.Name] = gone
}
