package config

import "slices"

// table lists every setting but those below korvet.topics[] and
// korvet.streams[], which segment.TopicSettingTable and StreamSettingTable
// list. It is the only list of settings.
func table() []row {
	return slices.Concat(
		[]row{{name: "korvet.namespace", flag: "namespace", help: "first part of every Redis key: {ns} in the layout",
			field: func(c *Config) any { return &c.Redis.Layout.Namespace }}},
		family("korvet.redis.", "", redisRows()),
		[]row{{name: "korvet.storage.remote-path", aliases: []string{"korvet.storage.remote.path"}, kind: kindURL, flag: "remote-path",
			help:  "where the files go: s3://bucket/prefix or file:///dir; required to run",
			field: func(c *Config) any { return &c.Store.URL }}},
		family("korvet.storage.s3.", "korvet.storage.remote.s3.", s3Rows()),
		family(workerFamily, "korvet.storage.worker.", workerRows()),
		family("korvet.storage.layout.", "", layoutRows()),
	)
}

// workerFamily is what the settings of the worker begin with.
const workerFamily = "korvet.storage.offload."

// family completes rows that are named by their last part. The newer
// generation's name, if there is one, becomes an alias.
func family(older, newer string, rows []row) []row {
	for i, r := range rows {
		rows[i].name = older + r.name
		if newer != "" {
			rows[i].aliases = []string{newer + r.name}
		}
	}
	return rows
}

func redisRows() []row {
	return []row{
		{name: "uri", kind: kindURL, flag: "redis-uri",
			help:  "redis://, rediss:// (TLS), unix://, or redis+sentinel:// and rediss+sentinel:// with the sentinels and the primary's name; takes the place of host, port, username and password",
			field: func(c *Config) any { return &c.Redis.URI }},
		{name: "host", help: "server name or address, when there is no URI", preset: "localhost",
			field: func(c *Config) any { return &c.Redis.Host }},
		{name: "port", kind: kindNumber, help: "port, when there is no URI", preset: "6379",
			field: func(c *Config) any { return &c.Redis.Port }},
		{name: "username", help: "ACL user; empty: the default user",
			field: func(c *Config) any { return &c.Redis.Username }},
		{name: "password", kind: kindSecret, help: "password of the user",
			field: func(c *Config) any { return &c.Redis.Password }},
		{name: "cluster", kind: kindBool, help: "the address is a node of a Redis Cluster",
			field: func(c *Config) any { return &c.Redis.Cluster }},
		{name: "timeout", kind: kindDuration, help: "to connect, and for one command",
			field: func(c *Config) any { return &c.Redis.Timeout }},
		{name: "ca-file", kind: kindPath, help: "PEM file of further certificate authorities, with TLS",
			field: func(c *Config) any { return &c.Redis.CAFile }},
		{name: "cert-file", kind: kindPath, help: "PEM file of the certificate that is shown to a server which asks for one (TLS); read again for each connection",
			field: func(c *Config) any { return &c.Redis.CertFile }},
		{name: "key-file", kind: kindPath, help: "PEM file of the key of cert-file",
			field: func(c *Config) any { return &c.Redis.KeyFile }},
		{name: "sentinel.username", help: "ACL user at the sentinels; the servers' is in the URI",
			field: func(c *Config) any { return &c.Redis.SentinelUsername }},
		{name: "sentinel.password", kind: kindSecret, help: "password at the sentinels; the servers' is in the URI",
			field: func(c *Config) any { return &c.Redis.SentinelPassword }},
	}
}

func s3Rows() []row {
	return []row{
		{name: "region", flag: "s3-region", help: "region of the bucket; empty: asked of the bucket",
			field: func(c *Config) any { return &c.Store.Region }},
		{name: "endpoint", kind: kindURL, flag: "s3-endpoint", help: "https://host[:port] of a store that is not AWS; empty: AWS",
			field: func(c *Config) any { return &c.Store.Endpoint }},
		{name: "path-style-access", kind: kindBool, flag: "s3-path-style", preset: "as the endpoint needs",
			help:  "bucket in the path instead of the host name",
			field: func(c *Config) any { return &c.Store.PathStyle }},
		{name: "access-key-id", kind: kindSecret, help: "static key; empty: the AWS default chain (environment, profile, IRSA, container, instance role)",
			field: func(c *Config) any { return &c.Store.AccessKeyID }},
		{name: "secret-access-key", kind: kindSecret, help: "belongs to access-key-id: both or none",
			field: func(c *Config) any { return &c.Store.SecretAccessKey }},
		{name: "session-token", kind: kindSecret, help: "of temporary static keys",
			field: func(c *Config) any { return &c.Store.SessionToken }},
		{name: "ca-file", kind: kindPath, help: "PEM file of further certificate authorities",
			field: func(c *Config) any { return &c.Store.CAFile }},
		{name: "sse", help: "server-side encryption: AES256 or aws:kms; empty: the bucket's default",
			field: func(c *Config) any { return &c.Store.SSE }},
		{name: "sse-kms-key-id", help: "key for aws:kms; empty: the bucket's key",
			field: func(c *Config) any { return &c.Store.SSEKMSKeyID }},
		{name: "storage-class", help: "storage class of the objects; empty: the bucket's default",
			field: func(c *Config) any { return &c.Store.StorageClass }},
		{name: "multipart-threshold", kind: kindSize, help: "larger objects go up in parts",
			field: func(c *Config) any { return &c.Store.MultipartThreshold }},
		{name: "part-size", kind: kindSize, help: "size of a part",
			field: func(c *Config) any { return &c.Store.PartSize }},
	}
}

func workerRows() []row {
	return []row{
		{name: "enabled", kind: kindBool, help: "false: run does nothing but say so",
			field: func(c *Config) any { return &c.Worker.Enabled }},
		{name: "tick-interval", live: true, kind: kindDuration, flag: "tick-interval", help: "from the start of one pass to the next",
			field: func(c *Config) any { return &c.Worker.TickInterval }},
		{name: "lease-duration", kind: kindDuration, flag: "lease-duration", help: "length of the leader's lease; must be longer than the tick",
			field: func(c *Config) any { return &c.Lease.Duration }},
		{name: "shards", kind: kindNumber, help: "leases that instances share; with more than 1, several instances work at once, each on its share of the partitions; the same for all instances",
			field: func(c *Config) any { return &c.Lease.Shards }},
		{name: "upload-rate", live: true, kind: kindSize, help: "bytes per second that go to the store at most, all uploads together; 0: no limit",
			field: func(c *Config) any { return &c.Worker.UploadRate }},
		{name: "page-size", live: true, kind: kindNumber, flag: "page-size", help: "most entries of one XRANGE; the worker takes fewer where they are large or slow",
			field: func(c *Config) any { return &c.Redis.PageSize }},
		{name: "page-reader", help: "direct: own connections, the fast one; client: the general client",
			field: func(c *Config) any { return &c.Redis.Reader }},
		{name: "concurrency", live: true, kind: kindNumber, flag: "concurrency", preset: "one per CPU", help: "segments copied at once",
			field: func(c *Config) any { return &c.Worker.Concurrency }},
		{name: "seal-grace", live: true, kind: kindDuration, flag: "seal-grace", help: "a segment is copied no sooner after it was sealed",
			field: func(c *Config) any { return &c.Worker.SealGrace }},
		{name: "spool-dir", kind: kindPath, flag: "spool-dir", preset: "the system's temporary folder", help: "where files grow that are too large for memory",
			field: func(c *Config) any { return &c.Worker.SpoolDir }},
		{name: "spool-memory", kind: kindSize, flag: "spool-memory", help: "unfinished files kept in memory, all together",
			field: func(c *Config) any { return &c.Worker.SpoolMemory }},
		{name: "roll.enabled", live: true, kind: kindBool, help: "seal full segments and open the next; false: leave that to the broker",
			field: func(c *Config) any { return &c.Worker.Roll }},
		{name: "delete-grace", live: true, kind: kindDuration, help: "from hiding a segment past total retention to deleting its object, so that readers of it can finish",
			field: func(c *Config) any { return &c.Worker.DeleteGrace }},
		{name: "expire-unuploaded", live: true, help: "a segment past total retention that was never copied: hold keeps it in Redis and reports it, expire deletes it",
			field: func(c *Config) any { return (*string)(&c.Worker.ExpireUnuploaded) }},
		{name: "hold-pending", live: true, kind: kindBool, help: "keep in Redis what a consumer group has not read, or not acknowledged",
			field: func(c *Config) any { return &c.Worker.HoldPending }},
		{name: "topic-delete-grace", live: true, kind: kindDuration, help: "a topic that left the registry is kept, with the settings that it had last, for so long",
			field: func(c *Config) any { return &c.Worker.TopicDeleteGrace }},
		{name: "delete-removed-topics", live: true, kind: kindBool, help: "after that delete its streams, objects and manifests; false: only report it",
			field: func(c *Config) any { return &c.Worker.DeleteRemovedTopics }},
		{name: "wait-replicas", kind: kindNumber, help: "before data is removed from Redis so many replicas must have the manifest's change (WAIT); fewer keep the data; 0: do not ask",
			field: func(c *Config) any { return &c.Redis.WaitReplicas }},
		{name: "wait-aof", kind: kindBool, help: "and the change must be on disk, here and on those replicas (WAITAOF, Redis 7.2)",
			field: func(c *Config) any { return &c.Redis.WaitAOF }},
		{name: "strict-redis", kind: kindBool, help: "refuse to start at a server that may evict streams when its memory is full (maxmemory-policy allkeys-*); false: warn",
			field: func(c *Config) any { return &c.Redis.StrictEviction }},
		{name: "stall-timeout", kind: kindDuration, help: "a pass in which nothing moves for so long hangs: its lease is not renewed any more, and the liveness probe fails until it goes on",
			field: func(c *Config) any { return &c.Ops.StallTimeout }},
		{name: "sla", live: true, kind: kindDuration, help: "over the tick: a sealed segment that waits longer breaks the SLA",
			field: func(c *Config) any { return &c.Worker.SLA }},
		{name: "http.address", flag: "http-address", help: "host:port of the page, metrics and health probes; empty: off",
			field: func(c *Config) any { return &c.Ops.Address }},
		{name: "http.token", kind: kindSecret, help: "bearer token that everything but the health probes asks for, 16 characters or more (openssl rand -hex 24 makes one); without one nothing can be changed over HTTP",
			field: func(c *Config) any { return &c.Ops.Token }},
		{name: "http.cert-file", kind: kindPath, help: "PEM file of the certificate, for TLS; read again when it changes",
			field: func(c *Config) any { return &c.Ops.CertFile }},
		{name: "http.key-file", kind: kindPath, help: "PEM file of the key of cert-file",
			field: func(c *Config) any { return &c.Ops.KeyFile }},
		{name: "metrics.topics", kind: kindBool, help: "give metrics a topic label; false: sums only",
			field: func(c *Config) any { return &c.Ops.TopicMetrics }},
		{name: "metrics.max-topics", kind: kindNumber, help: "topics with a label of their own; all others share one",
			field: func(c *Config) any { return &c.Ops.MaxTopics }},
		{name: "http.pprof", kind: kindBool, help: "serve /debug/pprof there too",
			field: func(c *Config) any { return &c.Ops.Pprof }},
		{name: "low-priority", kind: kindBool, help: "let everything else on the same CPUs go first, Redis above all; false: an equal share (Linux)",
			field: func(c *Config) any { return &c.Ops.Yield }},
		{name: "verify.interval", kind: kindDuration, help: "the leader compares manifests, store and Redis in the background, and begins again so long after it has ended; 0: never",
			field: func(c *Config) any { return &c.Scrub.Interval }},
		{name: "verify.rate", kind: kindSize, help: "bytes per second that verify reads from the store at most; 0: no limit",
			field: func(c *Config) any { return &c.Scrub.Rate }},
		{name: "verify.deep", kind: kindBool, help: "the background verify reads every object whole, and does not only ask what the store says of it",
			field: func(c *Config) any { return &c.Scrub.Deep }},
		{name: "serve.address", flag: "serve-address", help: "host:port at which serve listens",
			field: func(c *Config) any { return &c.Serve.Address }},
		{name: "serve.token", kind: kindSecret, help: "bearer token that serve asks for, 16 characters or more; empty: none",
			field: func(c *Config) any { return &c.Serve.Token }},
		{name: "serve.cert-file", kind: kindPath, help: "PEM file of serve's certificate; empty: no TLS",
			field: func(c *Config) any { return &c.Serve.CertFile }},
		{name: "serve.key-file", kind: kindPath, help: "PEM file of the key of serve.cert-file",
			field: func(c *Config) any { return &c.Serve.KeyFile }},
		{name: "serve.connections", kind: kindNumber, help: "connections that serve has at once",
			field: func(c *Config) any { return &c.Serve.Connections }},
		{name: "serve.rate", kind: kindNumber, help: "requests per second that serve takes from one address; 0: no limit",
			field: func(c *Config) any { return &c.Serve.Rate }},
		{name: "serve.zero-copy", kind: kindBool, flag: "zero-copy", help: "files that lie on this machine are sent by the kernel (sendfile); false: through the process",
			field: func(c *Config) any { return &c.Serve.ZeroCopy }},
		{name: "cache.dir", kind: kindPath, flag: "cache-dir", help: "folder in which serve keeps whole segment files that it has read from a bucket, to send them again; empty: none are kept. Messages are read without it",
			field: func(c *Config) any { return &c.Cache.Dir }},
		{name: "cache.size", kind: kindSize, help: "bytes that the files there take at most",
			field: func(c *Config) any { return &c.Cache.Size }},
		{name: "log.level", live: true, flag: "log-level", help: "debug, info, warn or error",
			field: func(c *Config) any { return &c.Ops.LogLevel }},
		{name: "log.format", flag: "log-format", help: "auto (console on a terminal, else JSON), console or json",
			field: func(c *Config) any { return &c.Ops.LogFormat }},
	}
}

func layoutRows() []row {
	return []row{
		{name: "topics", help: "topic registry: Set of names, or a JSON document",
			field: func(c *Config) any { return &c.Redis.Layout.Topics }},
		{name: "topic", help: "topic registry: Hash of one topic",
			field: func(c *Config) any { return &c.Redis.Layout.Topic }},
		{name: "stream", help: "stream key of a partition; object paths begin with it",
			field: func(c *Config) any { return &c.Redis.Layout.Stream }},
		{name: "segment-stream", help: "stream of one segment",
			field: func(c *Config) any { return &c.Redis.Layout.SegmentStream }},
		{name: "manifest", help: "manifest of a partition",
			field: func(c *Config) any { return &c.Redis.Layout.Manifest }},
		{name: "lease", help: "leader lease",
			field: func(c *Config) any { return &c.Redis.Layout.Lease }},
		{name: "streams", help: "Set of the keys of plain streams",
			field: func(c *Config) any { return &c.Redis.Layout.Streams }},
		{name: "stream-manifest", help: "manifest of a plain stream",
			field: func(c *Config) any { return &c.Redis.Layout.StreamManifest }},
		{name: "known", help: "Hash of the topics that were ever offloaded, with their last settings",
			field: func(c *Config) any { return &c.Redis.Layout.Known }},
		{name: "members", help: "Hash of the instances that run, with what each of them works on",
			field: func(c *Config) any { return &c.Redis.Layout.Members }},
		{name: "paused", help: "Hash of the topics and plain streams that are paused",
			field: func(c *Config) any { return &c.Redis.Layout.Paused }},
		{name: "cluster", help: "id of this Redis, which the owner marker on the store names as well",
			field: func(c *Config) any { return &c.Redis.Layout.Cluster }},
	}
}
