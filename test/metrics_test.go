package test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"korvet-offload/segment"
)

// address is where a program's HTTP server listens, as it has logged.
func (p *process) address(t *testing.T) string {
	t.Helper()
	var found string
	await(t, "the server listens", 20*time.Second, func() bool {
		for line := range strings.Lines(p.log()) {
			var entry struct{ Message, Address string }
			if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "listening" {
				found = entry.Address
			}
		}
		return found != ""
	})
	return found
}

// metrics are a program's own series and their values.
type metrics map[string]float64

func scrape(t *testing.T, address string) metrics {
	t.Helper()
	status, body := get(address, "/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d %s", status, body)
	}
	m := metrics{}
	for line := range strings.Lines(body) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasPrefix(series, "korvet_") {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		m[strings.TrimPrefix(series, "korvet_storage_")] = n
	}
	return m
}

// with lists the series that have a text in them.
func (m metrics) with(text string) (found []string) {
	for series := range m {
		if strings.Contains(series, text) {
			found = append(found, series)
		}
	}
	return found
}

// awaitMetrics polls until a scrape is as it should be, and returns it.
func awaitMetrics(t *testing.T, address, what string, right func(metrics) bool) (m metrics) {
	t.Helper()
	await(t, what, 60*time.Second, func() bool {
		m = scrape(t, address)
		return right(m)
	})
	return m
}

func TestMetricsOfARun(t *testing.T) {
	r := newRig(t)
	r.orders(50)
	r.topic("stuck", 1)
	stuck := segment.Partition{Topic: "stuck"}
	r.sealed(stuck, 0, 5)
	r.redis.Exec("DEL", r.layout.SegmentKey(stuck, 0))
	f := newFront(t, r)
	var slowed atomic.Bool
	f.set(func(w http.ResponseWriter, req *http.Request) bool {
		if kind(req) != "PUT file" || slowed.Swap(true) {
			return false
		}
		refuse(w, req, http.StatusServiceUnavailable, "SlowDown")
		return true
	})
	r.env = append(r.env, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=200ms", "KORVET_STORAGE_OFFLOAD_LEASE_DURATION=3s",
		"KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=0s")
	p := r.start("run", "--http-address", "127.0.0.1:0")
	address := p.address(t)
	m := awaitMetrics(t, address, "all is copied", func(m metrics) bool {
		return m["archive_segments_total"] == 12 && m[`parked{reason="source_missing"}`] == 1 && m["worker_up"] == 1
	})
	for series, want := range map[string]float64{
		"leader": 1, "shards_held": 1, "archive_lag_segments": 1, "archive_lag_bytes": 0, "sla_met": 0, "archive_messages_total": 600,
		`topic_archive_segments_total{topic="orders"}`: 12, `topic_lag_segments{topic="orders"}`: 0, `topic_lag_segments{topic="stuck"}`: 1,
		`topic_parked{reason="source_missing",topic="stuck"}`: 1, "topics": 2, `segments{state="open"}`: 4, "damaged_objects_total": 0,
		`archive_seconds_count{result="success",tier="remote"}`: 12, `write_seconds_count{result="success",tier="remote"}`: 12,
		`outcomes_total{outcome="copied"}`: 12, `s3_calls_total{operation="put",outcome="throttled"}`: 1,
		`s3_retries_total{error_type="throttled",operation="put"}`: 1, `redis_eviction_risk{risk="none"}`: 1,
		`leader_changes_total{change="gained"}`: 1, "upload_bytes_total": m["archive_bytes_total"],
	} {
		if got, there := m[series]; got != want || !there {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	for _, series := range []string{"archive_bytes_total", "archive_saved_bytes_total", "archive_lag_oldest_seconds", `read_seconds_count{result="success",tier="local"}`,
		`s3_calls_total{operation="put",outcome="ok"}`, `s3_seconds_count{operation="stat"}`, `pass_seconds_count{result="success"}`, `pass_phase_seconds_count{phase="scan"}`,
		"pass_last_success_timestamp_seconds", "redis_used_memory_bytes", `archive_failures_total{error_type="source_missing"}`,
		`worker_failures_total{error_type="source_missing",phase="upload"}`, "throttle_limit"} {
		if m[series] <= 0 {
			t.Errorf("%s is %v", series, m[series])
		}
	}

	r.redis.Exec("SREM", r.layout.TopicsKey(), "stuck")
	r.redis.Exec("DEL", r.layout.TopicKey("stuck"))
	awaitMetrics(t, address, "the topic's series go with the topic", func(m metrics) bool {
		return len(m.with(`topic="stuck"`)) == 0 && m[`topic_archive_segments_total{topic="orders"}`] == 12 && m[`parked{reason="source_missing"}`] == 0
	})
	r.redis.Exec("SET", r.layout.LeaseKey(), "somebody else", "PX", "600000")
	m = awaitMetrics(t, address, "the lead is lost", func(m metrics) bool { return m["leader"] == 0 })
	for _, text := range []string{`topic="`, "lag_", "parked", "segments{", "last_success"} {
		if left := m.with(text); len(left) != 0 {
			t.Errorf("without the lead there is still %q", left)
		}
	}
	if m[`leader_changes_total{change="lost"}`] != 1 || m["archive_segments_total"] != 12 || m["worker_up"] != 1 {
		t.Errorf("lost %v, copied %v, up %v", m[`leader_changes_total{change="lost"}`], m["archive_segments_total"], m["worker_up"])
	}
}
