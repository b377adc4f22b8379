package metrics

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a Registry with a clock that stands still.
type bench struct {
	*Registry
	t   *testing.T
	now time.Time
}

// scanned is the time of scans by Redis, whose clock is not this host's.
func scanned() time.Time { return time.UnixMilli(1_700_000_000_000) }

func newBench(t *testing.T, change ...func(*Options)) *bench {
	t.Helper()
	b := &bench{t: t, now: time.Unix(1_000_000, 0)}
	o := Options{Version: "v1", Revision: "abc", Go: "go1", Topics: true, MaxTopics: 10, SLA: 2 * time.Minute, Shards: 1,
		Now: func() time.Time { return b.now }}
	for _, c := range change {
		c(&o)
	}
	b.Registry = New(o)
	return b
}

// scrape returns all lines but comments and what is Go's or the process's.
func (b *bench) scrape() map[string]string {
	b.t.Helper()
	w := httptest.NewRecorder()
	b.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != http.StatusOK {
		b.t.Fatalf("%d %v\n%s", w.Code, err, body)
	}
	found := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if i := strings.LastIndex(line, " "); strings.HasPrefix(line, "korvet_") {
			found[line[:i]] = strings.TrimSpace(line[i:])
		}
	}
	return found
}

// must checks single series; "" stands for one that is not there.
func (b *bench) must(want map[string]string) {
	b.t.Helper()
	got := b.scrape()
	for series, value := range want {
		series = "korvet_storage_" + series
		if v, there := got[series]; v != value || there != (value != "") {
			b.t.Errorf("%s is %q, want %q", series, v, value)
		}
	}
}

// families are the names that begin so.
func families(series map[string]string, prefix string) (names []string) {
	for s := range series {
		if strings.HasPrefix(s, prefix) {
			names = append(names, s)
		}
	}
	return names
}

// plan is a scan of topics, each with segments that wait.
func plan(topics ...offload.TopicLag) offload.Plan {
	p := offload.Plan{At: scanned()}
	for _, t := range topics {
		if t.Settings.Partitions == 0 {
			t.Settings = segment.DefaultTopicSettings()
		}
		p.Topics = append(p.Topics, t)
		p.Counts.Topics++
		p.Counts.Partitions++
	}
	return p
}

func named(topic string) offload.TopicLag { return offload.TopicLag{Topic: topic} }

// waits adds a segment to a plan that was sealed so long ago.
func waits(p *offload.Plan, topic string, n segment.Number, ago time.Duration, bytes int64) {
	at := p.At.Add(-ago).UnixMilli()
	p.Waiting = append(p.Waiting, offload.Waiting{Partition: segment.Partition{Topic: topic}, Number: n, SealedAt: at, Newest: at, Bytes: bytes})
}

func copied(topic string, n segment.Number) offload.Outcome {
	return offload.Outcome{Action: offload.Copy, Result: offload.Copied, Partition: segment.Partition{Topic: topic}, Segment: n,
		Contents: segment.Contents{Count: 10}, BytesIn: 1000, BytesOut: 300, Duration: 2 * time.Second}
}
