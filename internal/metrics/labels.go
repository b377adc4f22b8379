package metrics

import (
	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

// The values that are not lists of another package.
const (
	tierLocal  = "local"
	tierRemote = "remote"

	succeeded = "success"
	failed    = "failure"
	rejected  = "rejected"

	foundAtCopy   = "copy"
	foundAtDrop   = "drop"
	foundAtDelete = "delete"

	limitLocal  = "local_retention"
	limitTotal  = "total_retention"
	limitMemory = "maxmemory"

	causeStore = "store"
	causeRate  = "upload_rate"

	changeGained = "gained"
	changeLost   = "lost"

	outcomeOK = "ok"
	other     = "other"
)

// The parts of the worker in which something can fail.
const (
	partLease  = "lease"
	partScan   = "scan"
	partRoll   = "roll"
	partUpload = "upload"
	partDrop   = "drop"
	partDelete = "delete"
)

// The guards: steps that are carried out only if all is as it should be.
const (
	guardManifest = "manifest"
	guardObject   = "object"
	guardRemove   = "remove"
	guardTrim     = "trim"
	guardKnown    = "known"
	guardReplicas = "replicas"
)

// The states of segments that are told apart.
const (
	stateOpen     = "open"
	stateSealed   = "sealed"
	stateBoth     = "both"
	stateRemote   = "remote"
	stateDeleting = "deleting"
	stateIllegal  = "illegal"
)

// EvictionRisks lists what Registry.SetEviction takes.
func EvictionRisks() []string { return []string{"none", "lease", "streams", "unknown"} }

// texts are the words of a closed list.
func texts[S ~string](list []S) []string {
	words := make([]string, len(list))
	for i, s := range list {
		words[i] = string(s)
	}
	return words
}

func closed(name string, values ...string) label { return label{name: name, values: values} }

func reasons(name string) label { return closed(name, texts(offload.Reasons())...) }

func classes(name string) label { return closed(name, texts(s3sink.Classes())...) }

func parts() label {
	return closed("phase", partLease, partScan, partRoll, partUpload, partDrop, partDelete)
}

func operations() label { return closed("operation", append(s3sink.Operations(), other)...) }

func outcomes() label {
	return closed("outcome", append([]string{outcomeOK}, texts(s3sink.Classes())...)...)
}

// results are those that somebody is told of.
func results() label {
	var words []string
	for _, r := range offload.Results() {
		if r != offload.Nothing {
			words = append(words, string(r))
		}
	}
	return closed("outcome", words...)
}

func passPhases() label { return closed("phase", texts(offload.PassPhases())...) }

func topicName() label {
	return label{name: "topic", open: "the topic; of a plain stream its key, with `%XX` for unusual bytes; `_other`: all beyond metrics.max-topics"}
}

// partOf is in which part of the worker an action belongs.
func partOf(a offload.Action) string {
	switch a {
	case offload.Create, offload.Roll, offload.Return:
		return partRoll
	case offload.Copy:
		return partUpload
	case offload.Drop:
		return partDrop
	case offload.Hide, offload.Delete:
		return partDelete
	}
	return partScan
}
