package metrics

import "slices"

func brokerTable() []metric {
	return []metric{
		{name: archiveSeconds, kind: histogram, unit: "s", help: "Duration of bringing one segment to the remote tier: read, encode, upload, verify, change the manifest.",
			labels: []label{closed("result", succeeded, failed), closed("tier", tierRemote)}, steps: slow(), bad: "grows: the store or Redis is slow, or segments have become larger"},
		{name: archiveSegments, kind: counter, help: "Segments that were brought to the remote tier.", bad: "stands still while korvet_storage_archive_lag_segments is above 0"},
		{name: archiveBytes, kind: counter, unit: "bytes", help: "Size of the objects of the segments that were brought to the remote tier."},
		{name: archiveFailures, kind: counter, help: "Attempts to bring a segment to the remote tier that failed, by why (docs/reasons.md).", labels: []label{reasons("error_type")},
			bad: "goes up; stream_changed now and then is a producer's late append that was caught"},
		{name: lagSegments, kind: gauge, scope: withScan, help: "Sealed segments that are not copied yet.", bad: "grows from tick to tick"},
		{name: lagOldest, kind: gauge, scope: withScan, unit: "s", help: "Time since the oldest segment was sealed that is not copied yet; 0 when there is none.", bad: "above korvet_storage_sla_seconds"},
		{name: workerUp, kind: gauge, help: "Whether Redis, the lease and the store work for this instance (as /readyz says it): 1 or 0; 0 too where offload is switched off.", bad: "0 for longer than a restart takes"},
		{name: workerFailures, kind: counter, help: "What failed, by the part of the worker and why (docs/reasons.md).", labels: []label{parts(), reasons("error_type")},
			bad: "goes up; the log says of what"},
		{name: readSeconds, kind: histogram, unit: "s", help: "Duration of reading: local, a page of a stream from Redis; remote, a whole object.",
			labels: []label{closed("tier", tierLocal, tierRemote), closed("result", succeeded, failed)}, steps: quick(), bad: "grows: Redis or the store is slow"},
		{name: writeSeconds, kind: histogram, unit: "s", help: "Duration of storing an object, all attempts together; rejected: something lay at its path.",
			labels: []label{closed("tier", tierRemote), closed("result", succeeded, failed, rejected)}, steps: slow(), bad: "grows, or fails: the store is slow, or can't be used; rejected goes up: see what else writes to the prefix"},
		{name: applicationBuild, kind: gauge, help: "Which build this is; always 1.", labels: []label{
			{name: "version", open: "of the build"}, {name: "revision", open: "of the source"}, {name: "goversion", open: "of Go"}}},
	}
}

func archiveTable() []metric {
	return []metric{
		{name: archiveMessages, kind: counter, help: "Entries of the segments that were brought to the remote tier."},
		{name: sourceBytes, kind: counter, unit: "bytes", help: "Size of the entries of these segments as they came from Redis."},
		{name: savedBytes, kind: counter, unit: "bytes", help: "By how much the objects of copied segments are smaller than what came from Redis.", bad: "hardly goes up: what is copied is compressed already, or segments are tiny"},
		{name: uploadBytes, kind: counter, unit: "bytes", help: "Size of the objects that the store has taken, whatever became of them.", bad: "goes up much faster than korvet_storage_archive_bytes_total: copies are in vain"},
		{name: outcomesTotal, kind: counter, help: "Segments that were worked on, by what became of them.", labels: []label{results()},
			bad: "expired_unuploaded goes up: data is deleted that was never copied, as expire-unuploaded says; reopened: see late appends and damaged objects"},
		{name: lateAppends, kind: counter, help: "Segments that changed after they were sealed, which was found during the copy, before the local copy was dropped, or before it was deleted; none was lost, and all are copied again.",
			labels: []label{closed("found", foundAtCopy, foundAtDrop, foundAtDelete)}, bad: "goes up: a producer writes to sealed segments"},
		{name: damagedObjects, kind: counter, help: "Objects that were gone or not what was put when their local copy was to be dropped; the segment is local again and copied anew.",
			bad: "above 0: something else changes or removes objects below the prefix"},
		{name: guardRejections, kind: counter, help: "Conditional steps that were refused since something was not as expected: manifest, another instance or the broker was faster; object, the path is taken (HTTP 412); remove and trim, the stream is not what was copied; known, the record of a topic; replicas, too few have confirmed.",
			labels: []label{closed("guard", guardManifest, guardObject, guardRemove, guardTrim, guardKnown, guardReplicas)},
			bad:    "goes up steadily: two instances work on the same, or somebody else writes; replicas: they are away or slow"},
	}
}

func lagTable() []metric {
	return []metric{
		{name: lagBytes, kind: gauge, scope: withScan, unit: "bytes", help: "Memory that the sealed segments take in Redis that are not copied yet, as far as known.", bad: "grows from tick to tick"},
		{name: lagUnknown, kind: gauge, scope: withScan, help: "Sealed segments that are not copied yet, and whose entry does not say when they were sealed.", bad: "above 0: the age of the oldest says little"},
		{name: slaSeconds, kind: gauge, unit: "s", help: "How long a sealed segment may wait: tick-interval and sla together."},
		{name: slaMet, kind: gauge, scope: withScan, help: "Whether no sealed segment has waited for longer than it may: 1 or 0; not there when it can't be told.", bad: "0"},
		{name: headroomSeconds, kind: gauge, scope: withScan, unit: "s", help: "Time until a retention, or Redis' memory as fast as it fills, reaches data that is not copied yet; below 0 since when it has; not there without such data, or such a limit. maxmemory is there on every instance.",
			labels: []label{closed("limit", limitLocal, limitTotal, limitMemory)}, bad: "below the time that the backlog takes to copy; at 0 of maxmemory Redis refuses writes, or evicts"},
		{name: overdueSegments, kind: gauge, scope: withScan, help: "Segments past a retention that are still there, at the last scan.", bad: "grows from tick to tick: deletions don't keep up, or are refused"},
		{name: overdueLongest, kind: gauge, scope: withScan, unit: "s", help: "By how much the segment is past a retention of time that is so for longest.", bad: "above some tick-intervals"},
	}
}

func stateTable() []metric {
	return []metric{
		{name: unuploaded, kind: gauge, scope: withScan, help: "Segments past total retention that were never copied, and are kept for that.", bad: "above 0: look at why they can't be copied"},
		{name: held, kind: gauge, scope: withScan, help: "Local copies past retention that are kept for consumer groups, at the last pass.", bad: "grows: a group that nobody reads keeps them for ever"},
		{name: parked, kind: gauge, scope: withScan, help: "Segments, partitions and topics that can't be worked on, by why (docs/reasons.md).", labels: []label{reasons("reason")},
			bad: "above 0 for longer than some ticks; source_missing, short_stream, object_damaged, stray_stream at once: data seems to be lost, or out of sight"},
		{name: segments, kind: gauge, scope: withScan, help: "Segments at the last scan: sealed, only in Redis; both, in Redis and on the store; remote, only on the store.",
			labels: []label{closed("state", stateOpen, stateSealed, stateBoth, stateRemote, stateDeleting, stateIllegal)}, bad: "illegal above 0"},
		{name: topicCount, kind: gauge, scope: withScan, help: "Topics and plain streams that are offloaded; with several shards, all of them on each instance that leads.", bad: "0, or fewer than there should be"},
		{name: partitionCount, kind: gauge, scope: withScan, help: "Partitions of the topics that are offloaded, plain streams among them.", bad: "0, or fewer than there should be"},
	}
}

func topicTable() []metric {
	rows := []metric{
		{name: topicLagSegments, kind: gauge, help: "Of the topic: sealed segments that are not copied yet.", bad: "grows from tick to tick"},
		{name: topicLagBytes, kind: gauge, unit: "bytes", help: "Of the topic: memory that the sealed segments take in Redis that are not copied yet.", bad: "grows from tick to tick"},
		{name: topicLagOldest, kind: gauge, unit: "s", help: "Of the topic: time since the oldest segment was sealed that is not copied yet.", bad: "above korvet_storage_sla_seconds"},
		{name: topicHeadroom, kind: gauge, unit: "s", help: "Of the topic: time until a retention reaches data that is not copied yet; below 0 since when it has; of topics that have such data and such a limit.", labels: []label{closed("limit", limitLocal, limitTotal)},
			bad: "below the time that the backlog takes to copy"},
		{name: topicParked, kind: gauge, help: "Of the topic: segments and partitions that can't be worked on, by why; only those above 0.", labels: []label{reasons("reason")}, bad: "there for longer than some ticks"},
		{name: topicSegments, kind: counter, help: "Of the topic: segments that this instance has brought to the remote tier.", bad: "stands still while there is a lag"},
		{name: topicBytes, kind: counter, unit: "bytes", help: "Of the topic: size of the objects of these segments."},
	}
	for i := range rows {
		rows[i].scope, rows[i].labels = perTopic, slices.Insert(rows[i].labels, 0, topicName())
	}
	return rows
}
