package config

import "testing"

func TestUnknownVariables(t *testing.T) {
	got := faultsOf(t, Input{Environ: []string{
		"KORVET_STORAGE_REMOTE_PAHT=s3://x", "KORVET_REDIS_URL=redis://x", "KORVET_STORAGE_QUUX_QUUX=1",
		"KORVET_TOPICS_NAME=x", "KORVET_TOPICS_0_NAMES=x", "KORVET_TOPICS_0_RETENTION_MS=1",
		"KORVET_STORAGE_LOCAL_PATH=x", "KORVET_STORAGE_REMOTE_ICEBERG_TYPE=x", "KORVET_STORAGE_REMOTE_METRICS_X=x", "KORVET_REDIS_POOL_MAX_TOTAL=1",
		"KORVET_REDIS_IO_THREADS=1", "KORVET_REDIS_IOTHREADS=1", "KORVET_REDIS_CIRCUIT_BREAKER_ENABLED=1", "KORVET_REDIS_METRICS_ENABLED=1",
		"KORVET_STREAMS_NAME=x", "KORVET_STREAMS_KEY_0=x", "KORVET_STREAMS_0_KEYS=x", "KORVET_STREAMS_0_NAME=x", "KORVET_STREAMS_0_LOCAL_RETENTION_MS=1",
		"KORVET_STREAMS_0_COMPRESSION_TYPE=zstd", "KORVET_STREAMS_2_PARTITIONS=3",
		"KORVET_TOPICS_0_COMPRESSION_TYPE=zstd", "KORVET_SERVER_PORT=1", "HOME=/root", "PATH=",
	}}, "")
	wantFaults(t, got,
		"KORVET_REDIS_URL: there is no setting of this environment variable; did you mean KORVET_REDIS_URI?",
		"KORVET_STORAGE_QUUX_QUUX: there is no setting of this environment variable; docs/settings.md lists those there are",
		"KORVET_STORAGE_REMOTE_PAHT: there is no setting of this environment variable; did you mean KORVET_STORAGE_REMOTE_PATH?",
		"KORVET_STREAMS_0_COMPRESSION_TYPE: there is no setting of this environment variable; docs/settings.md lists those there are",
		"KORVET_STREAMS_0_KEYS: there is no setting of this environment variable; did you mean KORVET_STREAMS_0_KEY?",
		"KORVET_STREAMS_0_LOCAL_RETENTION_MS: there is no setting of this environment variable; did you mean KORVET_STREAMS_0_LOCAL_RETENTION_TIME?",
		"KORVET_STREAMS_0_NAME: there is no setting of this environment variable; did you mean KORVET_STREAMS_0_KEY?",
		"KORVET_STREAMS_2_PARTITIONS: a plain stream has no partitions; leave it out",
		"KORVET_STREAMS_KEY_0: want the number of an element and a setting: KORVET_STREAMS_0_KEY",
		"KORVET_STREAMS_NAME: want the number of an element and a setting: KORVET_STREAMS_0_KEY",
		"KORVET_TOPICS_0_NAMES: there is no setting of this environment variable; did you mean KORVET_TOPICS_0_NAME?",
		"KORVET_TOPICS_0_RETENTION_MS: there is no setting of this environment variable; did you mean KORVET_TOPICS_0_RETENTION_TIME?",
		"KORVET_TOPICS_NAME: want the number of an element and a setting: KORVET_TOPICS_0_NAME",
	)
}

// Kubernetes tells every pod of the Services around it, in variables that look
// like settings.
func TestServiceLinks(t *testing.T) {
	l := loadYAML(t, "",
		"KORVET_REDIS_SERVICE_HOST=10.0.0.1", "KORVET_REDIS_SERVICE_PORT=6379", "KORVET_REDIS_SERVICE_PORT_TCP_REDIS=6379",
		"KORVET_REDIS_PORT=tcp://10.0.0.1:6379", "KORVET_REDIS_PORT_6379_TCP=tcp://10.0.0.1:6379",
		"KORVET_REDIS_PORT_6379_TCP_PROTO=tcp", "KORVET_REDIS_PORT_6379_TCP_PORT=6379", "KORVET_REDIS_PORT_6379_TCP_ADDR=10.0.0.1",
		"KORVET_STORAGE_MINIO_SERVICE_HOST=10.0.0.2", "KORVET_STORAGE_MINIO_PORT=tcp://10.0.0.2:9000",
		"KORVET_STREAMS_SERVICE_HOST=10.0.0.3", "KORVET_REDIS_HOST=redis.local")
	if l.Redis.Host != "redis.local" || l.Redis.Port != 6379 || l.Redis.URI != "" {
		t.Errorf("redis %s, port %d", l.Redis, l.Redis.Port)
	}
	wantWarning(t, l, "(8 in all)", "the Service korvet-redis;", "enableServiceLinks: false")
	wantWarning(t, l, "(2 in all)", "the Service korvet-storage-minio;")
	wantWarning(t, l, "(1 in all)", "the Service korvet-streams;")
	if len(l.Warnings) != 3 {
		t.Errorf("warnings %q", l.Warnings)
	}
}

func TestRealPortIsNoServiceLink(t *testing.T) {
	l := loadYAML(t, "", "KORVET_REDIS_PORT=6380")
	if l.Redis.Port != 6380 || len(l.Warnings) > 0 {
		t.Errorf("port %d, warnings %q", l.Redis.Port, l.Warnings)
	}
	wantFaults(t, faultsOf(t, Input{Environ: []string{"KORVET_REDIS_PORT=http://x"}}, ""),
		`korvet.redis.port = "http://x" (KORVET_REDIS_PORT): want a whole number such as 4`)
}

func TestVariablesOfAnyCase(t *testing.T) {
	l := loadYAML(t, "", "korvet_storage_offload_sla=3m", "Korvet_Topics_0_Name=x")
	if formatDuration(l.Worker.SLA) != "3m" || len(l.Topics) != 1 {
		t.Errorf("sla %v, topics %v", l.Worker.SLA, l.Topics)
	}
}
