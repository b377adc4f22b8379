package deploy

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
)

const systemdDir = "deploy/systemd/"

// units are the services; the hardening of both is the same.
func units() []string { return []string{"korvet-offload.service", "korvet-offload-once.service"} }

// unitsHere puts the units into a folder, with the built program for the
// installed one.
func unitsHere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range append(units(), "korvet-offload-once.timer") {
		text := strings.ReplaceAll(readFile(t, systemdDir+name), "/usr/bin/korvet-offload", program(t))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// systemdAnalyze runs the tool. It exits with 0 even where it knows a key not,
// and says so on stderr.
func systemdAnalyze(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(tool(t, "systemd-analyze"), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil || stderr.Len() > 0 {
		t.Fatalf("systemd-analyze %q: %v\n%s%s", args, err, stderr.String(), stdout.String())
	}
	return stdout.String()
}

func TestSystemdUnitsVerify(t *testing.T) {
	dir := unitsHere(t)
	for _, name := range append(units(), "korvet-offload-once.timer") {
		systemdAnalyze(t, "verify", "--man=no", filepath.Join(dir, name))
	}
}

func TestSystemdUnitsAreHardened(t *testing.T) {
	dir := unitsHere(t)
	for _, name := range units() {
		said := systemdAnalyze(t, "security", "--offline=yes", "--no-pager", "--threshold=20", filepath.Join(dir, name))
		overall := regexp.MustCompile(`Overall exposure level for \S+: [0-9.]+`).FindString(said)
		if overall == "" {
			t.Errorf("%s: no level in\n%s", name, said)
		}
		t.Log(overall)
	}
}

// hardening is what a unit has from its secrets on.
func hardening(t *testing.T, name string) string {
	t.Helper()
	_, text, ok := strings.Cut(readFile(t, systemdDir+name), "# Secrets: ")
	if !ok {
		t.Fatalf("%s: no secrets", name)
	}
	text, _, _ = strings.Cut(text, "\n[Install]")
	return strings.TrimSpace(text)
}

func TestSystemdUnitsHaveOneHardening(t *testing.T) {
	if all := units(); hardening(t, all[0]) != hardening(t, all[1]) {
		t.Error("the services differ from their secrets on")
	}
}

// values are the values of a unit's key, in order.
func values(t *testing.T, unit, key string) (all []string) {
	t.Helper()
	for line := range strings.Lines(readFile(t, systemdDir+unit)) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), key+"="); ok {
			all = append(all, value)
		}
	}
	return all
}

// Every secret that there is has its credential, and every credential is a
// secret.
func TestSystemdCredentialsAreTheSecrets(t *testing.T) {
	var secrets []string
	for line := range strings.Lines(readFile(t, "docs/settings.md")) {
		if name := regexp.MustCompile("^\\| `([^`]+)`.*\\(secret\\) \\|$").FindStringSubmatch(strings.TrimSpace(line)); name != nil && !strings.Contains(name[1], ".serve.") { // that of a server of its own
			secrets = append(secrets, name[1])
		}
	}
	slices.Sort(secrets)
	for _, unit := range units() {
		credentials := values(t, unit, "LoadCredential")
		slices.Sort(credentials)
		if !slices.Equal(credentials, secrets) {
			t.Errorf("%s loads %q, the secrets are %q", unit, credentials, secrets)
		}
	}
}

// Go has to know of the limit, and to stay a little below it.
func TestSystemdMemoryLimits(t *testing.T) {
	for _, unit := range units() {
		if limits := values(t, unit, "MemoryMax"); !slices.Equal(limits, []string{"1G"}) {
			t.Errorf("%s: MemoryMax %q", unit, limits)
		}
		if !slices.Contains(values(t, unit, "Environment"), "GOMEMLIMIT=920MiB") { // nine tenths of it
			t.Errorf("%s: its GOMEMLIMIT is not that of its MemoryMax", unit)
		}
	}
}

// service is the program, run as the unit says, as far as that can be done
// without a service manager.
type service struct {
	cmd   *exec.Cmd
	ended chan struct{}
	log   *bytes.Buffer // to be read once it has ended

	mu    sync.Mutex
	heard []string // messages to the service manager
}

// startUnit starts the daemon with the unit's command line, environment and
// credentials, the settings file of the repository, and variables beside them.
func startUnit(t *testing.T, credentials map[string]string, variables ...string) *service {
	t.Helper()
	const unit = "korvet-offload.service"
	state, secrets := t.TempDir(), t.TempDir()
	for name, text := range credentials {
		if !slices.Contains(values(t, unit, "LoadCredential"), name) {
			t.Fatalf("%s loads no credential %s", unit, name)
		}
		if err := os.WriteFile(filepath.Join(secrets, name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	args := strings.Fields(strings.ReplaceAll(values(t, unit, "ExecStart")[0], "/etc/korvet-offload", filepath.Join(root, systemdDir)))
	s := &service{cmd: exec.Command(program(t), args[1:]...), ended: make(chan struct{}), log: new(bytes.Buffer)}
	s.cmd.Env = append([]string{"NOTIFY_SOCKET=" + s.listen(t), "WATCHDOG_USEC=3000000", "CREDENTIALS_DIRECTORY=" + secrets}, variables...)
	for _, variable := range values(t, unit, "Environment") {
		s.cmd.Env = append(s.cmd.Env, strings.ReplaceAll(variable, "%S/korvet-offload", state))
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() { s.stop(t) })
	return s
}

// listen is the socket of a service manager.
func (s *service) listen(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := conn.Read(buffer)
			if err != nil {
				return
			}
			s.mu.Lock()
			s.heard = append(s.heard, strings.Split(string(buffer[:n]), "\n")...)
			s.mu.Unlock()
		}
	}()
	return name
}

// count is how often the service manager has heard a line.
func (s *service) count(line string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.heard {
		if l == line {
			n++
		}
	}
	return n
}

func (s *service) awaitLine(t *testing.T, line string) {
	t.Helper()
	await(t, line, 30*time.Second, func() bool { return s.count(line) > 0 })
}

// stop ends it with its test, and shows what it wrote if that has failed.
func (s *service) stop(t *testing.T) {
	_ = s.cmd.Process.Kill()
	<-s.ended
	if t.Failed() {
		t.Logf("heard %q\n%s", s.heard, s.log)
	}
}

// end sends a signal and waits for the end.
func (s *service) end(t *testing.T, with os.Signal) syscall.WaitStatus {
	t.Helper()
	if err := s.cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.ended:
		return s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	case <-time.After(30 * time.Second): // the unit's TimeoutStopSec
		t.Fatal("it does not end")
		return 0
	}
}

// startAtServers starts the service beside a Redis and an S3 server which both
// want a secret.
func startAtServers(t *testing.T) *service {
	t.Helper()
	redis := redisserver.Start(t, redisserver.Password("hunter2"))
	s3 := s3server.Start(t, s3server.Options{})
	return startUnit(t, map[string]string{
		"korvet.redis.password":               "hunter2\n",
		"korvet.storage.s3.access-key-id":     s3.Access + "\n",
		"korvet.storage.s3.secret-access-key": s3.Secret + "\n",
	}, "KORVET_REDIS_URI=redis://"+redis.Addr, "KORVET_STORAGE_REMOTE_PATH=s3://"+s3.Bucket+"/korvet", "KORVET_STORAGE_S3_ENDPOINT="+s3.Endpoint,
		"KORVET_STORAGE_S3_REGION="+s3.Region, "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=127.0.0.1:0")
}

func TestSystemdServiceIsReadyFedReloadedAndStopped(t *testing.T) {
	s := startAtServers(t)
	s.awaitLine(t, "READY=1")
	await(t, "watchdog", 30*time.Second, func() bool { return s.count("WATCHDOG=1") > 2 })
	if reload := values(t, "korvet-offload.service", "ExecReload"); !slices.Equal(reload, []string{"kill -HUP $MAINPID"}) {
		t.Errorf("it is reloaded by %q", reload)
	}
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.awaitLine(t, "RELOADING=1")
	await(t, "ready again", 30*time.Second, func() bool { return s.count("READY=1") == 2 })
	if status := s.end(t, syscall.SIGTERM); !status.Exited() || status.ExitStatus() != 0 {
		t.Errorf("it ended with %v\n%s", status, s.log)
	}
	s.awaitLine(t, "STOPPING=1")
	if s.count("RELOADING=1") != 1 || strings.Contains(s.log.String(), "hunter2") {
		t.Errorf("heard %q\n%s", s.heard, s.log)
	}
}

// Settings that are wrong end it with a code that the unit does not restart,
// and what the watchdog kills does not end with that one.
func TestSystemdRestartsWhatHangsAndNotWhatIsWrong(t *testing.T) {
	prevents := values(t, "korvet-offload.service", "RestartPreventExitStatus")
	if !slices.Equal(prevents, []string{"2"}) {
		t.Fatalf("a restart is prevented by %q", prevents)
	}
	wrong := startUnit(t, nil, "KORVET_STORAGE_OFFLOAD_TICK_INTERVAL=soon")
	<-wrong.ended
	if code := wrong.cmd.ProcessState.ExitCode(); code != 2 || wrong.count("READY=1") != 0 {
		t.Errorf("exit %d\n%s", code, wrong.log)
	}
	s := startAtServers(t)
	s.awaitLine(t, "READY=1")
	if status := s.end(t, syscall.SIGABRT); !status.Signaled() || status.Signal() != syscall.SIGABRT {
		t.Errorf("it ended with %v", status)
	}
	if !strings.Contains(s.log.String(), "goroutine ") {
		t.Errorf("it does not say where it hung:\n%s", s.log)
	}
}

// The timer's service makes one pass with the same credentials.
func TestSystemdSettingsAreValid(t *testing.T) {
	secrets := t.TempDir()
	for _, name := range values(t, "korvet-offload-once.service", "LoadCredential") {
		if strings.Contains(name, "sentinel") {
			continue // the settings name none
		}
		if err := os.WriteFile(filepath.Join(secrets, name), []byte("a secret of its own"), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program(t), "config", "check", "--config", filepath.Join(root, systemdDir, "settings.yml"))
	cmd.Env = []string{"CREDENTIALS_DIRECTORY=" + secrets}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "warning") || strings.Count(string(out), "xxxxx") < 5 {
		t.Errorf("%v\n%s", err, out)
	}
}
