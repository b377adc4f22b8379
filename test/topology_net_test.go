package test

import (
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

// secured is a rig whose server speaks TLS and wants a client certificate.
func secured(t *testing.T) *rig {
	t.Helper()
	server := redisserver.Start(t, redisserver.TLS(), redisserver.ClientCertificates(), redisserver.Users(aclDefault, documentedACL(t)))
	return &rig{t: t, redis: server, layout: segment.DefaultLayout(), ledger: map[string]written{}, files: t.TempDir(), env: []string{
		"KORVET_REDIS_URI=" + server.UserURI(aclUser, aclPassword), "KORVET_REDIS_CA_FILE=" + server.CAFile,
		"KORVET_REDIS_CERT_FILE=" + server.CertFile, "KORVET_REDIS_KEY_FILE=" + server.KeyFile,
	}}
}

func TestTLSWithAClientCertificate(t *testing.T) {
	t.Parallel()
	r := secured(t)
	r.orders(50)
	if stdout, stderr, code := r.run("config", "check", "--connect"); code != 0 {
		t.Errorf("config check: exit %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}

// Each fault of TLS is one line that names the setting.
func TestTLSFaultsAreNamed(t *testing.T) {
	t.Parallel()
	r := secured(t)
	other := filepath.Join(t.TempDir(), "other.crt")
	redisserver.WriteCertificate(t, other, other+".key")
	for name, c := range map[string]struct {
		env  []string
		says string
	}{
		//fault:redis | The authority of a TLS server is not the one of the settings | another certificate in ca-file | one line that names ca-file
		"wrong authority": {[]string{"KORVET_REDIS_CA_FILE=" + other}, "name the authority's certificate in korvet.redis.ca-file"},
		//fault:redis | A TLS server wants a client certificate and gets none | tls-auth-clients yes, without cert-file | one line that names cert-file and key-file
		"no certificate":    {[]string{"KORVET_REDIS_CERT_FILE=", "KORVET_REDIS_KEY_FILE="}, "set korvet.redis.cert-file and korvet.redis.key-file"},
		"wrong certificate": {[]string{"KORVET_REDIS_CERT_FILE=" + other, "KORVET_REDIS_KEY_FILE=" + other + ".key"}, "does not take the client certificate of korvet.redis.cert-file"},
		"no key":            {[]string{"KORVET_REDIS_KEY_FILE="}, "it belongs to cert-file, and is missing"},
		"another's key":     {[]string{"KORVET_REDIS_KEY_FILE=" + other + ".key"}, "read korvet.redis.cert-file"},
		"not over TLS":      {[]string{"KORVET_REDIS_URI=" + strings.Replace(r.redis.UserURI(aclUser, aclPassword), "rediss:", "redis:", 1)}, "it has no effect without TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t, r.env = t, append(r.env, c.env...)
			_, stderr, code := r.run("run", "--once")
			if code == 0 || !strings.Contains(stderr, c.says) || name != "not over TLS" && strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, aclPassword) {
				t.Errorf("exit %d\n%s", code, stderr)
			}
		})
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	r := newFileRig(t)
	r.env = []string{"KORVET_REDIS_URI=unix://" + r.redis.Socket}
	r.orders(50)
	if stdout, stderr, code := r.run("config", "check", "--connect"); code != 0 {
		t.Errorf("config check: exit %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := r.run("run", "--once"); code != 0 {
		t.Fatalf("exit %d\n%s", code, stderr)
	}
	r.mustBeDone()
}
