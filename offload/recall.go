package offload

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"korvet-offload/segment"
)

// recall is the topics that Redis remembered as live when this process looked
// last. It outlives a change of leadership: a Redis that has lost its data has
// lost the lease with it. A topic leaves it in the ways that leave a trace: its
// record says that it is gone or switched off, or the registry still has it.
// Followers look at every tick, so that they see the trace of what others do.
type recall map[string]bool

// live are the topics that records say are offloaded now.
func live(known map[string]string) recall {
	names := recall{}
	for name, raw := range known {
		if r, err := parseRecord(name, raw); err == nil && r.RemovedAt == 0 && r.Settings.RemoteStorage {
			names[name] = true
		}
	}
	return names
}

// lacks says whether Redis remembers none of the topics, of which there are some.
func (r recall) lacks(known map[string]string) bool {
	for name := range r {
		if _, there := known[name]; there {
			return false
		}
	}
	return len(r) > 0
}

// absent says whether the registry has none of the topics, of which there are
// some. One that only the settings name is no sign of what Redis holds.
func (r recall) absent(topics []segment.Topic) bool {
	for _, t := range topics {
		if r[t.Name] && !t.Plain && (!t.Declared || !t.Settings.RemoteStorage) {
			return false
		}
	}
	return len(r) > 0
}

// look says whether Redis has lost its data. If not, what it remembers now is what
// is recalled from now on.
func (r *recall) look(topics []segment.Topic, known map[string]string) error {
	if !r.lacks(known) || !r.absent(topics) {
		*r = live(known)
		return nil
	}
	return fmt.Errorf("%w: %w: neither the registry nor the record of the topics that were offloaded has topic %s any more, nor any other of the %d that this process has seen there; nothing of a topic is deleted until one of them is there again; restore redis, or rebuild its manifests with `korvet-offload restore --manifests`; if it was emptied on purpose, restart this program",
		errRegistry, ErrDataLost, slices.Min(slices.Collect(maps.Keys(*r))), len(*r))
}

// note takes in a record that this process has written.
func (r recall) note(topic, raw string) {
	delete(r, topic)
	maps.Copy(r, live(map[string]string{topic: raw}))
}

// withoutRecalled leaves out of records to be written those of topics that
// only the settings name: they would make a Redis that has lost its data look as
// if it had not.
func (r recall) withoutRecalled(notes []note, topics []segment.Topic) []note {
	declared := map[string]bool{}
	for _, t := range topics {
		declared[t.Name] = declared[t.Name] || t.Declared
	}
	return slices.DeleteFunc(notes, func(n note) bool { return r[n.topic] && declared[n.topic] })
}

// lookAround is what an instance does while another one leads: it keeps up with
// the clocks, and with the topics that Redis remembers, by which it would know
// that one was set, or that these are lost, when that makes it the leader.
func (w *Worker) lookAround(ctx context.Context) {
	w.lookAtClock(ctx)
	known, err := w.ports.Known.Known(ctx)
	if err != nil { // it is for the passes to come
		return
	}
	var topics []segment.Topic
	if w.memory.recalled.lacks(known) {
		if topics, err = w.ports.Registry.Topics(ctx); err != nil {
			return
		}
	}
	_ = w.memory.recalled.look(topics, known)
}
