package ops

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
)

// logged is what a logger of a configuration writes of one error.
func logged(t *testing.T, c Config, terminal bool) string {
	t.Helper()
	var out bytes.Buffer
	log, _, err := NewLogger(c, &out, terminal)
	if err != nil {
		t.Fatal(err)
	}
	log.Error("went wrong", zap.String("what", "segment t:0/1"), zap.Duration("took", 1500*time.Millisecond), zap.Error(errors.New("cause")))
	return out.String()
}

func TestLogIsJSONForMachines(t *testing.T) {
	c := DefaultConfig()
	text := logged(t, c, false)
	var line map[string]string
	if err := json.Unmarshal([]byte(text), &line); err != nil || strings.Count(text, "\n") != 1 {
		t.Fatalf("%v in %q", err, text)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z0700", line["time"]); err != nil {
		t.Error(err)
	}
	delete(line, "time")
	want := map[string]string{"level": "error", "message": "went wrong", "what": "segment t:0/1", "took": "1.5s", "error": "cause"}
	if len(line) != len(want) {
		t.Errorf("%q", line)
	}
	for name, value := range want {
		if line[name] != value {
			t.Errorf("%s is %q, want %q", name, line[name], value)
		}
	}
}

func TestLogIsLinesForPeople(t *testing.T) {
	want := regexp.MustCompile(`^\d\d:\d\d:\d\d  ERROR  went wrong  \{"what": "segment t:0/1", "took": "1\.5s", "error": "cause"\}\n$`)
	if got := logged(t, DefaultConfig(), true); !want.MatchString(got) {
		t.Errorf("%q", got)
	}
}

func TestLogFormatCanBeChosen(t *testing.T) {
	for _, tt := range []struct {
		format   string
		terminal bool
		json     bool
	}{
		{"auto", true, false}, {"auto", false, true}, {"json", true, true}, {"json", false, true}, {"console", true, false}, {"console", false, false},
	} {
		c := DefaultConfig()
		c.LogFormat = tt.format
		if got := logged(t, c, tt.terminal); strings.HasPrefix(got, "{") != tt.json {
			t.Errorf("%+v: %q", tt, got)
		}
	}
}

func TestLogLevels(t *testing.T) {
	for i, level := range Levels() {
		var out bytes.Buffer
		c := DefaultConfig()
		c.LogLevel = level
		log, _, err := NewLogger(c, &out, false)
		if err != nil {
			t.Fatal(err)
		}
		log.Debug("1")
		log.Info("2")
		log.Warn("3")
		log.Error("4")
		if got, want := strings.Count(out.String(), "\n"), len(Levels())-i; got != want {
			t.Errorf("%s: %d lines, want %d", level, got, want)
		}
	}
	c := DefaultConfig()
	c.LogLevel = "loud"
	if _, _, err := NewLogger(c, new(bytes.Buffer), false); err == nil || !strings.HasPrefix(err.Error(), "log.level: ") {
		t.Error(err)
	}
}

func TestLogLevelChanges(t *testing.T) {
	var out bytes.Buffer
	c := DefaultConfig()
	log, level, err := NewLogger(c, &out, false)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("unheard")
	c.LogLevel = "debug"
	at, err := c.Level()
	if err != nil {
		t.Fatal(err)
	}
	level.SetLevel(at)
	log.With(zap.String("a", "b")).Debug("heard")
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, `"message":"heard"`) {
		t.Errorf("%q", got)
	}
}
