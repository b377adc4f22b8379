package doctor

import "strings"

// Check is one row of the table of checks.
type Check struct {
	ID    string
	Asks  string // what it looks at
	Means string // what is wrong where it is not ok, and what to do
	Brief bool   // every start makes it, too
}

// Area is what the check is about.
func (c Check) Area() Area { return areaOf(c.ID) }

func areaOf(id string) Area {
	area, _, _ := strings.Cut(id, ".")
	return Area(area)
}

// Checks lists all checks in the order in which they are printed.
func Checks() []Check {
	return append(append(redisChecks(), storeChecks()...), settingsChecks()...)
}

func redisChecks() []Check {
	return []Check{
		{"redis.reach", "the address answers, and takes user and password", "Fail: nothing else of Redis can be looked at. The line says which of address, TLS, user and password is wrong.", false},
		{"redis.version", "the server is compatible with Redis 6.2 or later", "Fail: commands are missing. Use a newer server.", true},
		{"redis.mode", "a single server, or a cluster, as `korvet.redis.cluster` says", "Fail: set `korvet.redis.cluster` as the line says; for sentinels begin the URI with `redis+sentinel://`.", true},
		{"redis.role", "the server is a primary", "Fail: a replica refuses writes. Give the primary's address, or those of the sentinels.", true},
		{"redis.policy", "`maxmemory-policy` removes no streams and no manifests when memory is full", "Fail with `allkeys-*`: un-copied segments can vanish. Set `noeviction`. Warn with `volatile-*`: the lease can go, which costs work done twice. Every start says so in a line of its own.", false},
		{"redis.memory", "memory in use against `maxmemory`, or against the machine's where there is no limit", "Warn from 80 %, fail from 95 %: soon writes are refused, those of the broker first. Raise it, lower local retention, or copy more often.", true},
		{"redis.persistence", "the last saves went well; there is an append-only file, or at least there are snapshots", "Fail: the disk of Redis has a fault, and writes may be refused. Warn: a crash of Redis loses what has not been copied, or what came since the last snapshot: set `appendonly yes`.", true},
		{"redis.replicas", "as many replicas are in step as `wait-replicas` asks for", "Fail: no local copy is ever removed. Connect replicas, or lower `wait-replicas`. Warn: a replica lags, and each change waits for it.", true},
		{"redis.min-replicas", "`min-replicas-to-write` is met", "Fail: Redis refuses every write. Connect replicas, or lower it.", false},
		{"redis.wait-aof", "the server can do WAITAOF where `wait-aof` wants it", "Fail: the program refuses to start. Use Redis 7.2 with `appendonly yes`, or switch `wait-aof` off.", false},
		{"redis.output-buffer", "`client-output-buffer-limit normal` leaves room for a page", "Warn: Redis cuts connections on which a large page waits. Use `normal 0 0 0`, its default, or 8 MiB and more.", false},
		{"redis.timeout", "`timeout` does not close connections between two ticks", "Warn: every tick begins with new connections. Set it to 0 or above `tick-interval`.", false},
		{"redis.acl", "the user may do all that the worker does, today and when retention falls due", "Fail: what needs the missing rules fails, some of it days later. Grant them; `docs/redis-acl.txt` has the whole user. Every start says so in a line of its own.", false},
		{"redis.clock", "this host's clock against that of Redis", "Warn above 2 s: no decision depends on this host's clock, but logs and signatures do. Run NTP on both.", true},
		{"redis.lease", "the leader's lease is free, or held by somebody and about to lapse", "Fail: a key without an end stands there, and nobody can ever lead. Delete it. Warn: it lasts longer than `lease-duration`: all instances should have the same settings.", true},
		{"redis.topics", "a registry, and topics in it that are to be offloaded", "Warn: there is nothing to do, which is what a wrong `korvet.namespace` looks like; or a topic's settings make no sense.", false},
	}
}

func storeChecks() []Check {
	return []Check{
		{"store.reach", "the bucket or folder is there and takes the credentials", "Fail: nothing can be copied. The line says what is wrong: bucket, key, network, region, mount; or that `remote-path` is not set. A folder that is not there fails where Redis knows of objects: it is not mounted. Where it only knows of topics that were worked on, that is a warning.", true},
		{"store.region", "requests are signed for the bucket's region", "Fail: set `s3.region` to the region that the line names.", true},
		{"store.tls", "the connection is encrypted", "Warn: messages cross the network in the clear. Use `https://` in `s3.endpoint`.", true},
		{"store.clock", "this host's clock against the store's", "Warn above 5 s, fail above 15 minutes, where S3 refuses signatures. Run NTP.", true},
		{"store.owner", "the owner marker names this namespace and this Redis, or is not there yet", "Fail: the prefix belongs to another namespace or to another Redis, and the program refuses to start. Choose a prefix of its own. Where this Redis was emptied or goes on for one that is gone, see [gc.md](gc.md#whose-root-it-is). Or a folder has no marker while entries are REMOTE: another folder is mounted there.", false},
		{"store.versioning", "with versioning, a rule removes versions that are not current", "Warn: deleted objects stay as versions, and are paid for. Add a rule with `NoncurrentVersionExpiration`.", true},
		{"store.expiry", "no lifecycle rule removes objects before total retention is over", "Fail: the store deletes what manifests still name, and readers lose it. Change or narrow the rule that the line names.", true},
		{"store.unfinished", "a lifecycle rule clears away unfinished uploads", "Warn: what a killed process leaves of an upload stays, unseen, and is paid for. Add a rule with `AbortIncompleteMultipartUpload` after 7 days.", true},
		{"store.archive", "no lifecycle rule moves objects to a class from which they can't be read at once", "Warn: readers get errors until somebody restores the object. Use `STANDARD_IA` or `GLACIER_IR` in the rule.", true},
		{"store.lock", "object lock does not outlast total retention", "Warn: what is past retention can't be removed, and is paid for, until the lock ends. Shorten the bucket's default retention, or lengthen the topic's.", true},
		{"store.encryption", "the bucket's default encryption", "With a KMS key the user needs `kms:GenerateDataKey` and, for uploads in parts, `kms:Decrypt` on it: store.parts tries that.", true},
		{"store.uploads", "unfinished uploads below the prefix", "Warn: some are older than a day, which no running upload is. A lifecycle rule clears them away.", true},
		{"store.disk", "the file system of a folder", "Warn for one in memory, gone at a restart, or of a container's own, gone with it: mount a volume. Fail when it is mounted read-only.", true},
		{"store.space", "room for more, in bytes and in files", "Warn below 5 % or 1 GiB, or 1 % or 1000 files: make room, or lower total retention.", true},
		{"store.put", "an object can be put", "Fail: grant `s3:PutObject` on the prefix; the line has the store's words.", false},
		{"store.head", "it can be looked at", "Fail: grant `s3:GetObject`: nothing is verified without it.", false},
		{"store.get", "it can be read, and is what was put", "Fail: grant `s3:GetObject`; where the content differs, find what stands in between.", false},
		{"store.list", "it shows in a listing", "Warn: without `s3:ListBucket` the store says `forbidden` of what is missing, and a missing object can't be told from one that may not be seen.", false},
		{"store.create-only", "a put to a key that is taken is refused", "Warn: the store ignores `If-None-Match`. Every attempt gets a path of its own instead, and leftovers are possible.", false},
		{"store.checksum", "a body that is not what its checksum says is refused", "Warn: damage on the way is found when the object is verified, and not sooner.", false},
		{"store.parts", "an upload in parts goes through", "Fail: segments above `s3.multipart-threshold` can't be copied. With KMS grant `kms:Decrypt` too.", false},
		{"store.parts-create-only", "an upload in parts to a key that is taken is refused", "Warn: large objects go by single puts, 5 GiB at most.", false},
		{"store.abort", "an unfinished upload can be given up", "Warn: parts of uploads that failed stay. Grant `s3:AbortMultipartUpload`.", false},
		{"store.link", "the file system has hard links, which fail if the name is taken", "Fail: files can't get their names without replacing others. Use another file system.", false},
		{"store.unnamed", "the file system has files without a name", "Where it has none they have a temporary name first; nothing to do.", false},
		{"store.sync-folder", "a folder can be made durable", "Fail: a file that was put may be gone after a power cut. Use another file system.", false},
		{"store.delete", "an object can be removed, and is gone then", "Fail: nothing leaves the store when total retention is over. Grant `s3:DeleteObject` on the prefix.", false},
		{"store.cleanup", "nothing is left of these attempts", "Fail: remove the objects that the line names by hand.", false},
	}
}

func settingsChecks() []Check {
	return []Check{
		{"settings.retention", "retention against `segment.ms` and the tick, of every topic that is offloaded", "Warn: local retention below `segment.ms` is exceeded, since a segment is removed whole and after it was sealed; total retention below the tick is over before a segment was looked at.", false},
		{"settings.lease", "`lease-duration` is neither very short nor very long", "Warn: below 10 s a short pause of the host changes the leader; above 15 minutes nobody works for that long after a crash.", false},
		{"settings.spool", "`spool-dir` can be written and has room for the largest segments at once", "Fail: it can't be written. Warn: `segment.bytes` times `concurrency` may not fit there, or it lies in memory.", true},
		{"settings.memory", "`GOMEMLIMIT` leaves room for `spool-memory` and for what a copy needs", "Warn: the collector runs all the time and takes several times the CPU. Raise it, or lower `spool-memory` or `concurrency`.", true},
		{"settings.storage-class", "objects can be read at once", "Fail: with `GLACIER` or `DEEP_ARCHIVE` no object can be verified or read. Use another `s3.storage-class`.", true},
	}
}
