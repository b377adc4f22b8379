package test

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/redisserver"
)

// rotated is a password and what the worker is left with when it changes.
type rotated struct {
	setup func(r *rig) (uri string)
	turn  func(r *rig, password string)
}

// The password is changed while the worker runs. Old connections may go on;
// with new ones the worker says so, alive and not ready, asks seldom, and goes
// on by itself when the password is right again.
func TestAPasswordThatIsRotated(t *testing.T) {
	const right, wrong = "right-pa55word", "other-pa55word"
	for name, c := range map[string]rotated{
		//fault:redis | The password is rotated while the worker runs, old connections end | CONFIG SET requirepass and CLIENT KILL, then the old password again | alive and not ready with WRONGPASS, few attempts, no crash, no secret in the log, and it goes on by itself
		"requirepass": {func(r *rig) string {
			r.redis = redisserver.Start(r.t, redisserver.Password(right))
			return r.redis.URI()
		}, func(r *rig, password string) {
			r.redis.Exec("CONFIG", "SET", "requirepass", password)
			r.redis.Password = password
		}},
		//fault:redis | The password of the worker's ACL user is rotated, which ends its connections | ACL SETUSER resetpass, then the old password again | the same
		"user": {func(r *rig) string {
			r.redis.Exec("ACL", "SETUSER", "worker", "on", ">"+right, "~*", "+@all")
			return r.redis.UserURI("worker", right)
		}, func(r *rig, password string) {
			r.redis.Exec("ACL", "SETUSER", "worker", "resetpass", ">"+password)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFileRig(t)
			r.env = []string{"KORVET_REDIS_URI=" + c.setup(r)}
			r.one(2, 20)
			d := r.ticking()
			d.mustGoOn()
			c.turn(r, wrong)
			r.redis.Exec("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			d.unready("WRONGPASS")
			before := r.refused()
			await(t, "three seconds pass", 20*time.Second, after(3*time.Second))
			if n := r.refused() - before; n > 80 { // some four at each of 15 ticks, and those who look in between
				t.Errorf("%d attempts in three seconds", n)
			} else {
				t.Logf("%d attempts in three seconds", n)
			}
			d.mustLive()
			d.unready("WRONGPASS")
			c.turn(r, right)
			d.mustGoOn()
			if strings.Contains(d.worker.log(), "pa55word") {
				t.Errorf("a secret was logged")
			}
			t.Log(d.worker.log())
		})
	}
}

// refused is how many greetings the server has turned down.
func (r *rig) refused() int {
	r.t.Helper()
	_, failed, _ := strings.Cut(rest(r.redis.Exec("INFO", "commandstats"), "cmdstat_hello:"), "failed_calls=")
	n, err := strconv.Atoi(strings.TrimSpace(failed))
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

//fault:redis | The server's certificate is not of an authority that is trusted | rediss:// with the certificate of another authority, and with none | one line that names ca-file, exit code 1
func TestAnAuthorityThatIsNotTrusted(t *testing.T) {
	r := newFileRig(t)
	r.redis = redisserver.Start(t, redisserver.TLS())
	r.one(1, 20)
	other := filepath.Join(t.TempDir(), "other.crt")
	redisserver.WriteCertificate(t, other, other+".key")
	for name, env := range map[string][]string{"another": {"KORVET_REDIS_CA_FILE=" + other}, "none": nil} {
		r.env = env
		_, stderr, code := r.run("run", "--once")
		if code != 1 {
			t.Errorf("%s: exit %d", name, code)
		}
		oneLine(t, stderr, "certificate", "korvet.redis.ca-file", r.redis.Addr)
		if _, stderr, code = r.run("run"); code != 1 || !strings.Contains(stderr, "korvet.redis.ca-file") {
			t.Errorf("%s: run: exit %d\n%s", name, code, stderr)
		}
	}
	r.env = []string{"KORVET_REDIS_CA_FILE=" + r.redis.CAFile}
	r.pass(0)
	r.mustBeDone()
}

//fault:redis | The user lacks a command that is not needed at once | the documented user without UNLINK, XLEN or PEXPIRE, at the start of run | one warning at the start names the command and the key, and what can be done is done
func TestWhatTheUserLacksIsSaidAtTheStart(t *testing.T) {
	r := newACLRig(t)
	for _, rule := range []string{"+unlink", "+xlen", "+pexpire", "+memory|usage"} {
		t.Run(rule, func(t *testing.T) {
			r := *r
			r.t = t
			r.reload()
			r.grant(strings.Replace(documentedACL(t), rule+" ", "", 1))
			_, stderr, code := r.run("run", "--once")
			if code != 0 || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, rule+" ~korvet:") || !strings.Contains(stderr, "lacks") {
				t.Errorf("exit %d\n%s", code, stderr)
			}
			r.mustBeDone()
			r.redis.Exec("HSET", r.layout.TopicKey("orders"), "local.retention.ms", "-2")
			p := r.start("run")
			await(t, "the daemon says so", 20*time.Second, func() bool { return strings.Contains(p.log(), rule+" ~korvet:") })
			p.kill()
			r.redis.Exec("DEL", r.layout.LeaseKey())
		})
	}
}
