package config

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/settings.md")

const referenceFile = "../../docs/settings.md"

func TestReferenceIsCurrent(t *testing.T) {
	want := Reference()
	if *update {
		if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/settings.md is out of date: run go generate ./internal/config")
	}
}

func TestReferenceIsComplete(t *testing.T) {
	ref := Reference()
	for _, r := range table() {
		for _, text := range append(r.names(), r.variable(), r.defaultText()) {
			if !strings.Contains(ref, text) {
				t.Errorf("the reference lacks %s of %s", text, r.name)
			}
		}
		if r.flag != "" && !strings.Contains(ref, "`--"+r.flag+"`") {
			t.Errorf("the reference lacks --%s", r.flag)
		}
	}
	for _, l := range []*list{newTopics(), newStreams()} {
		for _, flat := range l.names()[1:] {
			if v := l.variable(0, flat); !strings.Contains(ref, "| `"+flat+"` | `"+v+"` |") {
				t.Errorf("the reference lacks %s with %s", flat, v)
			}
		}
	}
}

func TestSampleLoads(t *testing.T) {
	l, err := Load(Input{File: "../../docs/sample.yml", NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Warnings) > 0 || l.Store.URL != "s3://my-bucket/korvet" || len(l.Topics) != 1 || l.Topics[0].Settings["segment-bytes"] != "134217728" {
		t.Errorf("warnings %q, store %s, topics %v", l.Warnings, l.Store.URL, l.Topics)
	}
	// What the sample proposes in comments must work, too.
	text, err := os.ReadFile("../../docs/sample.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"endpoint:", "access-key-id:", "secret-access-key:", "streams:", "  - key:", "    segment-time: 15m", "    local-retention-time: 1h"} {
		if !strings.Contains(string(text), "# "+line) {
			t.Errorf("the sample does not propose %s", line)
		}
		text = []byte(strings.Replace(string(text), "# "+line, line, 1))
	}
	l, err = load(Input{File: "sample.yml", Environ: []string{"STORE_KEY=a", "STORE_SECRET=b"}}, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Streams) != 1 || l.Streams[0].Settings["local-retention-time"] != "3600000" || len(l.Warnings) > 0 {
		t.Errorf("streams %v, warnings %q", l.Streams, l.Warnings)
	}
}
