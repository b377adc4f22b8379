package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
)

const composeDir = "deploy/compose/"

// background runs a command until the test ends; what it wrote is shown if that
// has failed.
func background(t *testing.T, environ []string, name string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), environ...), &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		if text := out.String(); t.Failed() {
			t.Logf("%s: ...%s", filepath.Base(name), text[max(0, len(text)-3000):])
		}
	})
}

// stack is what compose.yml starts, without containers: the same settings, the
// same producer, the same Prometheus settings and rules.
type stack struct {
	t          *testing.T
	redis      *redisserver.Server
	program    string // host:port
	prometheus string
}

func startStack(t *testing.T) *stack {
	t.Helper()
	redis := redisserver.Start(t, redisserver.Args("--maxmemory", "512mb", "--maxmemory-policy", "noeviction"))
	s3 := s3server.Start(t, s3server.Options{})
	s3.AddBucket(t, "korvet")
	s := &stack{t: t, redis: redis, program: freeAddress(t), prometheus: freeAddress(t)}
	background(t, []string{
		"KORVET_REDIS_URI=redis://" + redis.Addr, "KORVET_STORAGE_S3_ENDPOINT=" + s3.Endpoint,
		"KORVET_STORAGE_S3_ACCESS_KEY_ID=" + s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + s3.Secret,
		"KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=" + s.program, "KORVET_STORAGE_OFFLOAD_LOW_PRIORITY=false",
	}, program(t), "run", "--config", filepath.Join(root, composeDir, "settings.yml"))
	background(t, []string{"REDIS_HOST=127.0.0.1", fmt.Sprint("REDIS_PORT=", redis.Port)}, "sh", filepath.Join(root, composeDir, "producer/produce.sh"))
	s.startPrometheus()
	return s
}

// startPrometheus scrapes the program by the settings of the repository; only the
// names of containers are others here.
func (s *stack) startPrometheus() {
	s.t.Helper()
	rules, err := filepath.Abs(filepath.Join(root, monitoringDir, "rules.yml"))
	if err != nil {
		s.t.Fatal(err)
	}
	text := readFile(s.t, composeDir+"prometheus.yml")
	for there, here := range map[string]string{"/etc/prometheus/rules.yml": rules, "korvet-offload:9477": s.program} {
		if !strings.Contains(text, there) {
			s.t.Fatalf("prometheus.yml does not name %s", there)
		}
		text = strings.Replace(text, there, here, 1)
	}
	file := filepath.Join(s.t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	background(s.t, nil, tool(s.t, "prometheus"), "--config.file="+file, "--storage.tsdb.path="+s.t.TempDir(), "--web.listen-address="+s.prometheus)
}

func freeAddress(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + freePort(t)
}

// get asks one of the servers; what is wrong is an error, since it may only just
// be starting.
func (s *stack) get(address, path string) (string, error) {
	client := &http.Client{Timeout: 10 * time.Second}
	resp, err := client.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return string(body), err
}

// sample is one series of an answer.
type sample struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// query asks Prometheus.
func (s *stack) query(expr string) (all []sample, err error) {
	text, err := s.get(s.prometheus, "/api/v1/query?query="+url.QueryEscape(expr))
	if err != nil {
		return nil, err
	}
	var answer struct {
		Data struct{ Result []sample }
	}
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		return nil, fmt.Errorf("%w in %s", err, text)
	}
	return answer.Data.Result, nil
}

// awaitSeries waits until a query has an answer with something in it.
func (s *stack) awaitSeries(limit time.Duration, expr string) {
	s.t.Helper()
	await(s.t, expr, limit, func() bool {
		all, err := s.query(expr)
		return err == nil && len(all) > 0
	})
}

// lose takes the stream of a segment away that is sealed and not copied yet.
func (s *stack) lose() {
	s.t.Helper()
	const find = `for _, p in ipairs({'orders:0', 'orders:1', 'orders:2', 'payments:0'}) do
 local all = redis.call('HGETALL', 'korvet:storage:manifest:' .. p)
 for i = 1, #all, 2 do
  local e = cjson.decode(all[i+1])
  if e.state == 'SEALED' and e.tier == 'LOCAL' then return redis.call('DEL', 'korvet:storage:local:' .. p .. ':' .. all[i]) end
 end
end
return 0`
	tick := time.NewTicker(5 * time.Millisecond) // it is copied within seconds
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); s.redis.Exec("EVAL", find, "0") != "1"; <-tick.C {
		if time.Now().After(deadline) {
			s.t.Fatal("no segment is sealed")
		}
	}
}

// quietPanels have nothing to show in a stack in which the store works.
func quietPanels() []string { return []string{"What the store refused"} }

// All that compose.yml puts together works together: segments move, Prometheus
// scrapes and has loaded the rules, each panel of the dashboard has something to
// show, and an alert comes when something is lost.
func TestComposeStackShowsWhatItDoes(t *testing.T) {
	s := startStack(t)
	s.awaitSeries(time.Minute, `up{job="korvet-offload"} == 1`)
	s.awaitSeries(time.Minute, `sum(korvet_storage_archive_segments_total) > 4`)
	s.lose()
	s.awaitSeries(time.Minute, `ALERTS{alertname="KorvetOffloadDataLost"}`)
	s.awaitSeries(2*time.Minute, `sum(korvet_storage_outcomes_total{outcome="dropped"}) > 0`)
	s.rulesAreLoaded()
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			expr := strings.NewReplacer("$job", ".*", "$topic", ".*", "$__rate_interval", "1m").Replace(q.Expr)
			if slices.Contains(quietPanels(), p.Title) {
				if _, err := s.query(expr); err != nil {
					t.Errorf("%s: %v", p.Title, err)
				}
				continue
			}
			s.awaitSeries(30*time.Second, expr)
		}
	}
	s.metricsAreSound()
	for _, topic := range []string{"orders", "payments", "clicks"} {
		s.awaitSeries(30*time.Second, `korvet_storage_topic_archive_segments_total{topic="`+topic+`"} > 0`)
	}
}

// rulesAreLoaded checks that Prometheus has all of them, and that none fails.
func (s *stack) rulesAreLoaded() {
	s.t.Helper()
	text, err := s.get(s.prometheus, "/api/v1/rules")
	if err != nil {
		s.t.Fatal(err)
	}
	if got, want := strings.Count(text, `"health":"ok"`), len(alerts(s.t)); got != want {
		s.t.Errorf("%d rules are well, want %d: %s", got, want, text)
	}
}

// metricsAreSound has a real scrape checked.
func (s *stack) metricsAreSound() {
	s.t.Helper()
	text, err := s.get(s.program, "/metrics")
	if err != nil {
		s.t.Fatal(err)
	}
	promtool(s.t, text, "check", "metrics")
}
