package config

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"korvet-offload/segment"
)

// loadedText is what a settings file gives.
func loadedText(t *testing.T, text string) *Loaded {
	t.Helper()
	l, err := load(Input{File: "settings.yml"}, []byte("korvet.storage.remote-path: file:///tmp/x\n"+text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// another is a text of another value than the default.
func another(r row) string {
	c := DefaultConfig()
	switch p := r.field(&c).(type) {
	case *bool:
		return map[bool]string{true: "false", false: "true"}[*p]
	case **bool:
		return "true"
	case *int, *int64:
		return "7"
	case *time.Duration:
		return "77s"
	}
	return "another"
}

// TestUpdateOfEverySetting changes each setting, alone: a live one holds, and of
// any other the name is given and the old value stays.
func TestUpdateOfEverySetting(t *testing.T) {
	for _, r := range table() {
		old, fresh := loadedText(t, ""), loadedText(t, "")
		if err := r.set(&fresh.Config, another(r)); err != nil {
			t.Fatalf("%s: %v", r.name, err)
		}
		want, changed, restart := old.Config, []string(nil), []string{r.name}
		if r.live {
			want, changed, restart = fresh.Config, restart, nil
		}
		u := old.Update(fresh)
		if !reflect.DeepEqual(u.Settings.Config, want) || !slices.Equal(u.Changed, changed) || !slices.Equal(u.Restart, restart) {
			t.Errorf("%s: changed %q, restart %q, config as it should be: %t", r.name, u.Changed, u.Restart, reflect.DeepEqual(u.Settings.Config, want))
		}
		if again := u.Settings.Update(fresh); len(again.Changed) > 0 || !slices.Equal(again.Restart, restart) {
			t.Errorf("%s, the same once more: %+v", r.name, again)
		}
	}
}

func TestUpdateOfNothing(t *testing.T) {
	text := "korvet.topics[0].name: a\nkorvet.streams[0].key: b\nkorvet.redis.uri: redis://:secret@h:1\n"
	old := loadedText(t, text)
	u := old.Update(loadedText(t, text))
	if len(u.Changed)+len(u.Restart) > 0 || !reflect.DeepEqual(u.Settings, old) {
		t.Errorf("%+v", u)
	}
}

// The report says what is in effect, and where that was taken from.
func TestReportOfAnUpdate(t *testing.T) {
	old := loadedText(t, "korvet.storage.offload.sla: 5m\nkorvet.storage.offload.shards: 2\nkorvet.topics[0].name: a\nkorvet.streams[0].key: b\n")
	fresh, err := load(Input{File: "settings.yml", Environ: []string{"KORVET_STORAGE_OFFLOAD_SLA=7m", "KORVET_STORAGE_OFFLOAD_SHARDS=3"}},
		[]byte("korvet.storage.remote-path: file:///tmp/x\nkorvet.topics[0].name: c\nkorvet.topics[0].retention-time: 1h\nkorvet.namespace: other\nkorvet.streams[0].key: d\n"))
	if err != nil {
		t.Fatal(err)
	}
	u := old.Update(fresh)
	if got, want := strings.Join(u.Changed, " "), "korvet.storage.offload.sla korvet.topics"; got != want {
		t.Errorf("changed: %s, want %s", got, want)
	}
	if got, want := strings.Join(u.Restart, " "), "korvet.namespace korvet.storage.offload.shards korvet.streams"; got != want {
		t.Errorf("restart: %s, want %s", got, want)
	}
	var shown []string
	for _, s := range u.Settings.Report() {
		if s.Source != "default" {
			shown = append(shown, s.Name+"="+s.Value+" "+s.Source)
		}
	}
	want := []string{"korvet.storage.remote-path=file:///tmp/x file", "korvet.storage.offload.shards=2 file", "korvet.storage.offload.sla=7m environment",
		"korvet.topics[0].name=c file", "korvet.topics[0].retention-time=3600000 file", "korvet.streams[0].key=b file"}
	if !slices.Equal(shown, want) {
		t.Errorf("%q\nwant %q", shown, want)
	}
	if len(u.Settings.Report()) != len(old.Report())+1 {
		t.Errorf("%d settings, there were %d", len(u.Settings.Report()), len(old.Report()))
	}
}

// A tick that is not below the lease of the running program would make the lead
// change hands at every pass.
func TestUpdateOfTheTick(t *testing.T) {
	old := loadedText(t, "")
	fresh := loadedText(t, "korvet.storage.offload.tick-interval: 5m\nkorvet.storage.offload.lease-duration: 6m\n")
	u := old.Update(fresh)
	if len(u.Changed) > 0 || strings.Join(u.Restart, " ") != tickInterval+" "+leaseDuration || u.Settings.Worker.TickInterval != time.Minute {
		t.Errorf("%+v", u)
	}
	u = old.Update(loadedText(t, "korvet.storage.offload.tick-interval: 119s\n"))
	if strings.Join(u.Changed, " ") != tickInterval || u.Settings.Worker.TickInterval != 119*time.Second {
		t.Errorf("%+v", u)
	}
}

func TestUpdateOfStreams(t *testing.T) {
	u := loadedText(t, "").Update(loadedText(t, "korvet.streams[0].key: events\n"))
	if strings.Join(u.Changed, " ") != streamList || len(u.Restart) > 0 || !reflect.DeepEqual(u.Settings.Streams, []segment.StreamPattern{{Key: "events", Settings: map[string]string{}}}) {
		t.Errorf("%+v %#v", u, u.Settings.Streams)
	}
}

func TestTheReferenceSaysWhatIsLive(t *testing.T) {
	ref := Reference()
	for _, r := range table() {
		for line := range strings.Lines(ref) {
			if strings.HasPrefix(line, "| `"+r.name+"`") && strings.Contains(line, "live) |") != r.live {
				t.Errorf("%s: %s", r.name, line)
			}
		}
	}
}
