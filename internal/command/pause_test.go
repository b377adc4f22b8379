package command

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/config"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

const pausedKey = "korvet:storage:offload:paused"

// mustCall runs a command that ends well, or not, as code says.
func mustCall(t *testing.T, environ []string, code int, args ...string) result {
	t.Helper()
	r := call(t, environ, args...)
	if r.code != code {
		t.Fatalf("%q: exit %d\n%s%s", args, r.code, r.stdout, r.stderr)
	}
	return r
}

// mustMatch checks a text line by line.
func mustMatch(t *testing.T, text string, patterns ...string) {
	t.Helper()
	want := "^" + strings.Join(patterns, "\n")
	if len(patterns) > 0 {
		want += "\n"
	}
	if !regexp.MustCompile(want + "$").MatchString(text) {
		t.Errorf("%q\ndoes not match %q", text, want)
	}
}

const since = ` since \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ by \S+@\S+`

func TestPauseAndResume(t *testing.T) {
	rig := newRig(t)
	pause := func(args ...string) result {
		return mustCall(t, rig.environ, exitDone, args...)
	}
	mustMatch(t, pause("resume").stdout, "everything was not paused", "nothing is paused")
	r := pause("pause", "--topic", "orders", "--reason", "moving \x1bthe bucket")
	mustMatch(t, r.stdout, `paused: topic orders`+since+`, because of "moving \\x1bthe bucket"`)
	mustMatch(t, r.stderr)
	again := pause("pause", "--topic", "orders")
	if again.stdout != r.stdout {
		t.Errorf("pausing again: %s", again.stdout)
	}
	mustMatch(t, pause("pause").stdout, `paused: everything`+since, `paused: topic orders`+since+`.*`)
	r = pause("pause", "--stream", "events:1")
	mustMatch(t, r.stderr, `korvet-offload: warning: there is no stream events:1, neither in the registry nor in the settings; is the name right\?`)
	const next = `; instances hear of it within 10s and go on at their next tick; korvet-offload status shows what waits`
	mustMatch(t, pause("resume").stdout, `resumed: everything`+next, `paused: topic orders`+since+`.*`, `paused: stream events:1`+since)
	mustMatch(t, pause("resume", "--stream", "events:1").stdout, `resumed: stream events:1`+next, `paused: topic orders`+since+`.*`)
	pause("pause")
	mustMatch(t, pause("resume", "--topic", "orders").stdout, `resumed: topic orders; nothing of it goes on while everything is paused`, `paused: everything`+since)
	pause("resume")
	mustMatch(t, pause("resume", "--topic", "orders").stdout, "topic orders was not paused", "nothing is paused")
	if got := rig.server.Exec("EXISTS", pausedKey); got != "0" {
		t.Error("something is left in redis")
	}
	r = pause("pause", "--topic", "other")
	mustMatch(t, r.stderr, `korvet-offload: warning: there is no topic other, .*`)
}

func TestPauseAsJSON(t *testing.T) {
	rig := newRig(t)
	mustCall(t, rig.environ, exitDone, "pause", "--topic", "orders", "--reason", "a\nb")
	rig.server.Exec("HSET", pausedKey, "stream:x", "?", "nonsense", "?")
	r := mustCall(t, rig.environ, exitFault, "pause", "-o", "json")
	var v struct{ Paused []pauseView }
	if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.Paused) != 3 {
		t.Fatalf("%v %s", err, r.stdout)
	}
	all, orders, garbled := v.Paused[0], v.Paused[1], v.Paused[2]
	if all.Scope != "all" || all.Name != "" || all.Since == nil || all.By == "" || all.Error != "" {
		t.Errorf("%+v", all)
	}
	if orders.Scope != "topic" || orders.Name != "orders" || orders.Reason != "a\nb" {
		t.Errorf("%+v", orders)
	}
	if garbled.Scope != "stream" || garbled.Name != "x" || garbled.Since != nil || garbled.Error == "" {
		t.Errorf("%+v", garbled)
	}
	mustMatch(t, r.stderr, `korvet-offload: illegal record of a pause: field "nonsense" names neither a topic nor a stream, .*`)
	want := lines("paused[].by string", "paused[].error string", "paused[].name string", "paused[].reason string", "paused[].scope string",
		"paused[].since null", "paused[].since string")
	if got := shape(t, r.stdout); got != want {
		t.Errorf("%s", got)
	}
	mustCall(t, rig.environ, exitFault, "resume", "--stream", "x")
	rig.server.Exec("DEL", pausedKey)
	if r := mustCall(t, rig.environ, exitDone, "resume", "-o", "json"); strings.Join(strings.Fields(r.stdout), "") != `{"paused":[]}` {
		t.Errorf("%q", r.stdout)
	}
}

func TestPauseRefuses(t *testing.T) {
	for args, want := range map[string]string{
		"pause --topic a/b":             `--topic: illegal topic name: .*`,
		"pause --topic=":                `--topic: illegal topic name: .*`,
		"resume --topic ..":             `--topic: illegal topic name: .*`,
		"pause --stream=":               `--stream: illegal stream key: it is empty`,
		"resume --topic a --stream b":   `--topic and --stream: want one of them`,
		"pause orders:0":                `"orders:0" names a partition: want one of TOPIC, --stream KEY`,
		"pause a b":                     `"b" is one too many: want one of TOPIC, --stream KEY`,
		"resume --stream a 7":           `--stream and "7": want one of TOPIC, --stream KEY`,
		"resume --reason enough":        `flag provided but not defined: -reason; see .*`,
		"pause --output xml":            `--output xml: want table or json`,
		"pause --set korvet.nonsense=1": `.*`,
	} {
		r := mustCall(t, nil, exitUsage, strings.Fields(args)...)
		mustMatch(t, r.stderr, "korvet-offload: "+want)
		if r.stdout != "" {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
	r := mustCall(t, []string{"KORVET_REDIS_URI=redis://127.0.0.1:1"}, exitFault, "pause")
	mustMatch(t, r.stderr, `korvet-offload: redis CONNECT 127.0.0.1:1: .*`)
}

// What looks, shows what is paused; what works, does nothing and says so.
func TestPausedIsShownEverywhere(t *testing.T) {
	rig := newRig(t)
	mustCall(t, rig.environ, exitDone, "pause", "--topic", "orders", "--reason", "peace")
	line := `paused: topic orders` + since + `, because of "peace"`
	for _, args := range []string{"run --once", "run --once --dry-run", "status"} {
		r := mustCall(t, rig.environ, exitDone, strings.Fields(args)...)
		if !regexp.MustCompile("(?m)^" + line + "$").MatchString(r.stdout) {
			t.Errorf("%s does not say so:\n%s", args, r.stdout)
		}
		r = mustCall(t, rig.environ, exitDone, append(strings.Fields(args), "-o", "json")...)
		var v struct {
			Paused   []pauseView
			Segments []segmentView
			Actions  []actionView
			Found    struct{ Sealed int }
			Lag      *lagView
		}
		if err := json.Unmarshal([]byte(r.stdout), &v); err != nil || len(v.Paused) != 1 || v.Paused[0].Reason != "peace" || v.Found.Sealed != 2 {
			t.Errorf("%s: %v %s", args, err, r.stdout)
		}
		if len(v.Segments)+len(v.Actions) > 0 || v.Lag != nil && v.Lag.Segments != 2 {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
	mustCall(t, rig.environ, exitDone, "resume", "--topic", "orders")
	if r := mustCall(t, rig.environ, exitDone, "run", "--once"); strings.Contains(r.stdout, "paused") || !strings.Contains(r.stdout, "2 of 2 sealed segments moved") {
		t.Errorf("%s", r.stdout)
	}
}

// The daemon says when a pause begins and ends, who wants it, and why.
func TestDaemonObeysAPause(t *testing.T) {
	rig := newRig(t)
	mustCall(t, rig.environ, exitDone, "pause", "--reason", "peace")
	r := start(t, rig.environ, "--log-level", "debug")
	r.await(`"message":"paused: it is looked at, and nothing of it is changed until it is resumed","what":"everything"`)
	r.await(`"reason":"peace"`)
	for range 3 {
		seen := strings.Count(r.log(), `"pass done"`)
		eventually(t, "another pass", func() bool { return strings.Count(r.log(), `"pass done"`) > seen })
	}
	if strings.Contains(r.log(), "segment is remote") {
		t.Errorf("it works all the same:\n%s", r.log())
	}
	mustCall(t, rig.environ, exitDone, "resume")
	r.await(`"message":"resumed: it goes on with the next tick","what":"everything"`)
	r.await(`"message":"segment is remote","segment":"orders:0/1"`)
	if n := strings.Count(r.log(), "paused: it is looked at"); n != 1 {
		t.Errorf("said %d times:\n%s", n, r.log())
	}
}

// TestPauseLog: each thing once, and again when the reason is another one.
func TestPauseLog(t *testing.T) {
	core, logs := observer.New(zap.DebugLevel)
	l := &pauseLog{log: zap.New(core)}
	orders := segment.Pause{Scope: segment.Scope{Topic: "orders"}, By: "ada", Reason: "a"}
	other := orders
	other.Reason = "b"
	for _, tt := range []struct {
		now  []segment.Pause
		want string
	}{
		{nil, ""},
		{[]segment.Pause{orders}, "paused topic orders a"},
		{[]segment.Pause{orders}, ""},
		{[]segment.Pause{other}, "paused topic orders b"},
		{[]segment.Pause{{}, other}, "paused everything "},
		{[]segment.Pause{{}}, "resumed topic orders"},
		{nil, "resumed everything"},
	} {
		l.paused(segment.Pauses{List: tt.now})
		got := ""
		for _, e := range logs.TakeAll() {
			word, _, _ := strings.Cut(e.Message, ":")
			got = word + " " + e.ContextMap()["what"].(string)
			if word == "paused" {
				got += " " + e.ContextMap()["reason"].(string)
			}
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.now, got, tt.want)
		}
	}
}

// pausing pauses when a pass has been planned.
type pausing struct {
	quiet
	t *testing.T
	s **session
}

func (p pausing) Planned(offload.Plan) {
	s := *p.s
	if _, err := s.redis.Pause(p.t.Context(), segment.Scope{Topic: "orders"}, "me", ""); err != nil {
		p.t.Error(err)
	}
	if _, err := s.pauses.Paused(p.t.Context()); err != nil { // as it does every ten seconds
		p.t.Error(err)
	}
}

// A pass that is under way begins nothing that has been paused since.
func TestAPauseDuringAPass(t *testing.T) {
	rig := newRig(t)
	l, err := config.Load(config.Input{Environ: rig.environ, NeedStore: true})
	if err != nil {
		t.Fatal(err)
	}
	var s *session
	s, err = connect(t.Context(), l.Config, pausing{quiet{}, t, &s}, func(s3sink.Event) {})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r, led, err := s.runLed(t.Context(), zap.NewNop())
	if err != nil || !led || len(r.Outcomes) > 0 || r.Left != 2 || len(r.Plan.Jobs) != 1 {
		t.Errorf("led %t, %v, done %+v, left %d", led, err, r.Outcomes, r.Left)
	}
	if err := s.redis.Resume(t.Context(), segment.Scope{Topic: "orders"}); err != nil {
		t.Fatal(err)
	}
}
