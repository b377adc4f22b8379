package metrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"korvet-offload/offload"
	"korvet-offload/s3sink"
)

const pageFile = "../../docs/metrics.md"

func TestPageIsCurrent(t *testing.T) {
	want := Page()
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(pageFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/metrics.md is out of date: run make docs")
	}
}

// The names that the broker's own worker exports, so that its dashboards go on
// working.
func TestTheBrokersNames(t *testing.T) {
	want := map[string]string{
		"korvet_storage_archive_seconds": "result,tier", "korvet_storage_archive_segments_total": "", "korvet_storage_archive_bytes_total": "",
		"korvet_storage_archive_failures_total": "error_type", "korvet_storage_archive_lag_segments": "", "korvet_storage_archive_lag_oldest_seconds": "",
		"korvet_storage_worker_up": "", "korvet_storage_worker_failures_total": "phase,error_type", "korvet_storage_read_seconds": "tier,result",
		"korvet_storage_write_seconds": "tier,result", "korvet_application_build": "version,revision,goversion",
	}
	for _, m := range brokerTable() {
		if labels, known := want[m.name]; !known || labels != strings.Join(names(m.labels), ",") {
			t.Errorf("%s with %q, want %q", m.name, names(m.labels), labels)
		}
		delete(want, m.name)
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

func TestTableSaysEverything(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range table() {
		if seen[m.name] {
			t.Errorf("%s is there twice", m.name)
		}
		seen[m.name] = true
		if m.help == "" || !strings.HasSuffix(m.help, ".") || m.kind == histogram && len(m.steps) == 0 {
			t.Errorf("%+v", m)
		}
		if m.bad == "" && m.kind != counter && m.name != slaSeconds && m.name != applicationBuild {
			t.Errorf("%s: what is a bad value?", m.name)
		}
		for unit, end := range map[string]string{"s": "_seconds", "bytes": "_bytes"} {
			if name := strings.TrimSuffix(m.name, "_total"); (m.unit == unit) != strings.HasSuffix(name, end) && m.name != uploadRate && m.unit != "unix s" {
				t.Errorf("%s in %q", m.name, m.unit)
			}
		}
		for _, l := range m.labels {
			if (l.values == nil) == (l.open == "") {
				t.Errorf("%s{%s}: neither a closed list nor said to be open", m.name, l.name)
			}
		}
	}
}

// Every series that there can be at once passes Prometheus' own rules.
func TestLint(t *testing.T) {
	b := newBench(t)
	everything(b)
	problems, err := testutil.GatherAndLint(b.prom)
	if err != nil || len(problems) != 0 {
		t.Error(err, problems)
	}
	got := b.scrape()
	for _, m := range table() {
		if len(families(got, m.name)) == 0 {
			t.Errorf("%s has no series", m.name)
		}
	}
}

// No value of a label comes from anywhere but the table.
func TestLabelsAreClosed(t *testing.T) {
	b := newBench(t)
	everything(b)
	b.StoreCall(s3sink.Call{Op: "levitate", Class: "gone-fishing"})
	b.StoreEvent(s3sink.Event{Op: "levitate", Class: "gone-fishing", Attempt: 1})
	b.Observer().Failed(offload.Problem{Topic: "a", Partition: -1, Action: offload.Copy, Reason: "out-of-luck"})
	one := regexp.MustCompile(`([a-z_]+)="((?:[^"\\]|\\.)*)"`)
	seen := map[string]map[string]bool{}
	for series := range b.scrape() {
		name, labels, _ := strings.Cut(series, "{")
		m := rowOf(t, name)
		for _, pair := range one.FindAllStringSubmatch(labels, -1) {
			i := slices.IndexFunc(m.labels, func(l label) bool { return l.name == pair[1] })
			switch {
			case pair[1] == "le" && m.kind == histogram:
			case i < 0:
				t.Errorf("%s: %s is no label of it", series, pair[1])
			case !m.labels[i].admits(pair[2]):
				t.Errorf("%s: %q is not on the list of %s", series, pair[2], pair[1])
			default:
				if seen[m.name+" "+pair[1]] == nil {
					seen[m.name+" "+pair[1]] = map[string]bool{}
				}
				seen[m.name+" "+pair[1]][pair[2]] = true
			}
		}
	}
	for _, m := range table() {
		for _, l := range m.labels {
			if got := len(seen[m.name+" "+l.name]); l.values != nil && got != len(l.values) {
				t.Errorf("%s{%s}: %d values were seen of %q: %v", m.name, l.name, got, l.values, seen[m.name+" "+l.name])
			}
		}
	}
}

// rowOf is the row of a series, whose name a histogram makes longer.
func rowOf(t *testing.T, name string) metric {
	t.Helper()
	for _, m := range table() {
		for _, end := range []string{"", "_bucket", "_sum", "_count"} {
			if m.name+end == name && (end == "" || m.kind == histogram) {
				return m
			}
		}
	}
	t.Fatalf("%s is not in the table", name)
	return metric{}
}
