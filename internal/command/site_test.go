package command

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"korvet-offload/internal/board"
	"korvet-offload/internal/config"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

const siteToken = "the token of a test"

// ask sends a request to a daemon, with the token.
func (r *running) ask(method, path, body string) (status int, answer string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.address()+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+siteToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(raw)
}

// status waits until the status is as it should be.
func (r *running) status(what string, holds func(board.Status) bool) board.Status {
	r.t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); ; <-tick.C {
		code, answer := r.ask(http.MethodGet, "/api/v1/status", "")
		var s board.Status
		if err := json.Unmarshal([]byte(answer), &s); err != nil || code != http.StatusOK {
			r.t.Fatalf("%d %v in %s", code, err, answer)
		}
		if holds(s) {
			return s
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("never: %s\n%s", what, answer)
		}
	}
}

// What a daemon shows comes from all its parts.
func TestSiteOfADaemon(t *testing.T) {
	rig := newRig(t)
	r := start(t, append(rig.environ, "KORVET_STORAGE_OFFLOAD_HTTP_TOKEN="+siteToken))
	s := r.status("both segments are on the store, and a member leads", func(s board.Status) bool {
		return len(s.Partitions.Items) == 1 && s.Partitions.Items[0].Both == 2 && len(s.Members) == 1 && len(s.Members[0].Shards) == 1 && len(s.Passes) > 0
	})
	if s.Role != board.Leading || !s.Members[0].Self || s.Health.Level != board.LevelGood || len(s.Outages) != 0 || s.Eviction.Risk != "none" || s.Instance.Namespace != "korvet" {
		t.Errorf("%+v", s)
	}
	for _, set := range s.Settings {
		if strings.Contains(set.Value, siteToken) {
			t.Errorf("%s shows the token", set.Name)
		}
	}
	if code, page := r.ask(http.MethodGet, "/", ""); code != http.StatusOK || !strings.Contains(page, "orders:0") || !strings.Contains(page, "Log out") || strings.Contains(page, siteToken) {
		t.Errorf("%d %s", code, page)
	}
	if got := r.probe("/metrics"); !strings.HasPrefix(got, "show the token") {
		t.Errorf("metrics without token: %s", got)
	}
	if code, answer := r.ask(http.MethodPost, "/api/v1/pause", `{"topic":"orders","reason":"why not"}`); code != http.StatusOK || !strings.Contains(answer, `"why not"`) {
		t.Errorf("%d %s", code, answer)
	}
	if got := rig.server.Exec("HGET", "korvet:storage:offload:paused", "topic:orders"); !strings.Contains(got, "why not") {
		t.Errorf("redis has %q", got)
	}
	if code, answer := r.ask(http.MethodPost, "/api/v1/resume", `{"topic":"orders"}`); code != http.StatusOK || !strings.Contains(answer, `"paused":[]`) {
		t.Errorf("%d %s", code, answer)
	}
	rig.server.Stop()
	s = r.status("redis is down", func(s board.Status) bool { return len(s.Outages) > 0 })
	if s.Outages[0].Part != string(partRedis) && s.Outages[0].Part != string(partLease) || s.Outages[0].Since.Before(s.Instance.StartedAt) || s.Health.Level != board.LevelBad {
		t.Errorf("%+v %+v", s.Outages, s.Health)
	}
	r.stop()
	if code := r.end(); code != exitDone {
		t.Errorf("exit %d\n%s", code, r.log())
	}
}

func TestAnOpenServerIsSaid(t *testing.T) {
	for address, want := range map[string]int{"127.0.0.1:9477": 0, "[::1]:9477": 0, "[::ffff:127.0.0.1]:1": 0, "0.0.0.0:9477": 1, "[::]:9477": 1, "10.0.0.1:9477": 1} {
		a, err := net.ResolveTCPAddr("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{"", siteToken} {
			core, logs := observer.New(zapcore.WarnLevel)
			warnIfOpen(zap.New(core), a, secret)
			if n := logs.Len(); secret == "" && n != want || secret != "" && n != 0 {
				t.Errorf("%s, with token %t: %d warnings", address, secret != "", n)
			}
		}
	}
}

// Times that others have written, and of which JSON has no form, spoil nothing
// that is shown.
func TestTimesBeyondAllCalendars(t *testing.T) {
	rig := newRig(t)
	layout, ms, seen := segment.DefaultLayout(), "9000000000000000", strconv.FormatInt(time.Now().UnixMilli(), 10)
	rig.server.Exec("HSET", layout.PausedKey(), "topic:other", `{"v":1,"since":`+ms+`}`)
	rig.server.Exec("HSET", layout.MembersKey(), "other", `{"v":1,"host":"h","startedAt":`+ms+`,"seenAt":`+seen+`,"shards":[],"of":1}`)
	rig.server.Exec("HSET", layout.KnownKey(), "gone", `{"v":1,"settings":{"partitions":1},"removedAt":`+ms+`}`)
	for _, args := range []string{"status -o json", "run --once -o json"} {
		r := mustCall(t, rig.environ, exitFault, strings.Fields(args)...)
		mustMatch(t, r.stderr, `(?s).*pause.*`)
		if !json.Valid([]byte(r.stdout)) {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
	r := start(t, append(rig.environ, "KORVET_STORAGE_OFFLOAD_HTTP_TOKEN="+siteToken))
	r.status("all of it is shown", func(s board.Status) bool {
		return len(s.Members) == 2 && len(s.Paused) == 1 && s.Problems.Total == 2
	})
}

// storeOf is a store that is looked at while it is put to.
type storeOf struct {
	offload.Store
	during func()
}

func (s storeOf) Put(context.Context, offload.Upload) (offload.ObjectInfo, error) {
	s.during()
	return offload.ObjectInfo{}, nil
}

func TestUploadsOfADaemonAreSeen(t *testing.T) {
	b, cfg := newBook(t), config.DefaultConfig()
	d := &daemon{cfg: cfg, log: b.log, journal: b.journal, eviction: newEvictionWatch(b.log)}
	d.metrics, d.board = newMetrics(cfg, d.up), newBoard(cfg, nil, d)
	d.board.Planned(offload.Plan{})
	seen := 0
	store := d.ports(offload.Ports{Store: storeOf{during: func() { seen = len(d.board.Overview().Current.Uploads) }}}).Store
	if _, err := store.Put(t.Context(), offload.Upload{Path: "a/0.parquet", Body: strings.NewReader("x"), Size: 1}); err != nil || seen != 1 {
		t.Errorf("%v, %d uploads", err, seen)
	}
}
