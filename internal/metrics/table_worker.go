package metrics

// Upper bounds of buckets, in seconds.
func quick() []float64 {
	return []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 120}
}

func slow() []float64 {
	return []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
}

func long() []float64 {
	return []float64{0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900, 3600}
}

func workerTable() []metric {
	return []metric{
		{name: leader, kind: gauge, help: "Whether this instance leads, that is, holds at least one shard: 1 or 0.",
			bad: "the sum over all instances is 0: nobody works; with shards = 1 it is above 1 for longer than a scrape: look at the clocks and the lease"},
		{name: leaderChanges, kind: counter, help: "How often this instance began to lead, and ceased to against its will.", labels: []label{closed("change", changeGained, changeLost)},
			bad: "lost goes up: Redis answers too late, a pass hangs, or the host stands still at times"},
		{name: shards, kind: gauge, help: "Shards into which the work is divided, by the settings.", bad: "not the same on all instances"},
		{name: shardsHeld, kind: gauge, help: "Shards that this instance holds.", bad: "the sum over all instances is below korvet_storage_shards for longer than a lease: some partitions are not worked on"},
		{name: passSeconds, kind: histogram, unit: "s", help: "Duration of a pass; failure: it was given up, or could not be made.", labels: []label{closed("result", succeeded, failed)}, steps: long(),
			bad: "above tick-interval most of the time: one instance is not enough, or the store is slow; failure goes up: Redis or the store can't be used"},
		{name: passPhaseSeconds, kind: histogram, unit: "s", help: "Duration of a part of a pass.", labels: []label{passPhases()}, steps: long(),
			bad: "scan grows: Redis is slow, or there are very many segments that are not settled; expire grows: a retention was lowered"},
		{name: passLastSuccess, kind: gauge, scope: withSuccess, unit: "unix s", help: "When the last pass ended that was not given up.",
			bad: "older than some tick-intervals: Redis or the store can't be used, or a pass takes very long"},
		{name: paused, kind: gauge, help: "Whether everything is paused: 1 or 0.", bad: "1, and nobody knows why: somebody has forgotten to resume"},
		{name: pausedTopics, kind: gauge, help: "Topics and plain streams that are paused by name.", bad: "above 0 for long: their data stays in Redis"},
	}
}

func redisTable() []metric {
	return []metric{
		{name: usedMemory, kind: gauge, scope: withMemory, unit: "bytes", help: "Memory that Redis uses; of a cluster, that of the node that is fullest.", bad: "near korvet_storage_redis_max_memory_bytes"},
		{name: maxMemory, kind: gauge, scope: withMemory, unit: "bytes", help: "Memory that Redis may use (maxmemory), of the same node; 0 = no limit.", bad: "0: the host's memory is the limit, and the kernel ends what exceeds it"},
		{name: evictionRisk, kind: gauge, scope: withEviction, help: "What Redis may evict when its memory is full: 1 for what holds, else 0.", labels: []label{closed("risk", EvictionRisks()...)},
			bad: `risk="streams" is 1: data that was not copied yet may be removed; set maxmemory-policy to noeviction`},
	}
}

func storeTable() []metric {
	return []metric{
		{name: s3Calls, kind: counter, help: "Requests to S3, each attempt.", labels: []label{operations(), outcomes()},
			bad: "denied, credentials, no-bucket, full, clock-skew, wrong-region: see the log; throttled, unavailable, timeout go up: the store can't keep up. missing of a stat and exists of a put are part of ordinary work"},
		{name: s3Seconds, kind: histogram, unit: "s", help: "Duration of a request to S3, each attempt, without the wait for its turn; of a get until the answer begins.", labels: []label{operations()}, steps: quick(),
			bad: "far above what it was"},
		{name: s3Retries, kind: counter, help: "Attempts at a request to S3 that failed and were repeated.", labels: []label{operations(), classes("error_type")},
			bad: "goes up steadily: the store, or the way there, is not sound"},
		{name: throttleSeconds, kind: counter, unit: "s", help: "Time that requests have waited for their turn, all together: because the store had asked for fewer, or for upload-rate.", labels: []label{closed("cause", causeStore, causeRate)},
			bad: "store goes up: ask for a higher limit, spread over more prefixes, or lower concurrency; upload_rate goes up while the lag grows: the rate is too low"},
		{name: throttleLimit, kind: gauge, help: "Requests at once that the store gets since it has asked for fewer; 0 = no limit.", bad: "above 0 for long"},
		{name: uploadRate, kind: gauge, unit: "bytes per s", help: "upload-rate in effect; 0 = no limit.", bad: "below what the producers write"},
	}
}
