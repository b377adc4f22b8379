//go:build model

package offload

import "time"

// appendLate appends an entry that is as old as the others are.
func (w *world) appendLate(key string) {
	ids := w.log[key]
	id, _ := ids[len(ids)-1].Next()
	w.xadd(key, id)
}

// failOver makes the replica the server. What was acknowledged since is lost by
// Redis, if it was in Redis alone.
func (w *world) failOver() {
	r := w.replica
	w.replicate()
	w.manifests, w.streams, w.known, w.log = r.manifests, r.streams, r.known, r.log
	w.now = w.now.Add(time.Second)
}

// failOverManifest loses what the node has that keeps the manifests, and
// nothing of the streams: they lie on another node of the cluster.
func (w *world) failOverManifest() {
	r := w.replica
	w.replicate()
	w.manifests, w.known = r.manifests, r.known
	w.now = w.now.Add(time.Second)
}
