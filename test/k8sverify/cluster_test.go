package k8sverify

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const root = "../.."

// tools builds etcd, kube-apiserver and kubectl, once per version.
func tools(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(root, ".tools", "k8sverify"))
	if err != nil {
		t.Fatal(err)
	}
	for name, pkg := range map[string]string{
		"etcd":           "go.etcd.io/etcd/server/v3",
		"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
		"kubectl":        "k8s.io/kubernetes/cmd/kubectl",
	} {
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name), pkg)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", name, err, out)
		}
	}
	return dir
}

// cluster is a running kube-apiserver and its etcd.
type cluster struct {
	t      *testing.T
	bin    string
	config string // kubeconfig of an administrator
}

const adminToken = "administrator"

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, bin: tools(t), config: filepath.Join(t.TempDir(), "kubeconfig")}
	dir, etcd, peer, port := t.TempDir(), freePort(t), freePort(t), freePort(t)
	c.start("etcd", "--data-dir="+filepath.Join(dir, "etcd"), "--log-level=error",
		"--listen-client-urls="+loopback(etcd), "--advertise-client-urls="+loopback(etcd),
		"--listen-peer-urls="+loopback(peer), "--initial-advertise-peer-urls="+loopback(peer), "--initial-cluster=default="+loopback(peer))
	key := signingKey(t, dir)
	tokens := filepath.Join(dir, "tokens.csv")
	write(t, tokens, adminToken+",admin,1,system:masters\n")
	c.start("kube-apiserver", "--etcd-servers="+loopback(etcd), "--secure-port="+port, "--bind-address=127.0.0.1", "--cert-dir="+dir,
		"--service-cluster-ip-range=10.0.0.0/24", "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--allow-privileged=false")
	write(t, c.config, fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c",
"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:%s","insecure-skip-tls-verify":true}}],
"users":[{"name":"c","user":{"token":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"c"}}]}`, port, adminToken))
	await(t, "kube-apiserver", func() bool {
		out, err := c.kubectl("", "get", "--raw", "/readyz")
		return err == nil && out == "ok"
	})
	return c
}

func loopback(port string) string { return "http://127.0.0.1:" + port }

// start runs a server until the test ends.
func (c *cluster) start(name string, args ...string) {
	c.t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if c.t.Failed() {
			lines := strings.Split(strings.TrimSpace(log.String()), "\n")
			c.t.Logf("%s:\n%s", name, strings.Join(lines[max(0, len(lines)-10):], "\n"))
		}
	})
}

// kubectl runs a command as the administrator, with something to read.
func (c *cluster) kubectl(stdin string, args ...string) (string, error) {
	cmd := exec.Command(filepath.Join(c.bin, "kubectl"), append([]string{"--kubeconfig", c.config}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// must is kubectl that has to succeed.
func (c *cluster) must(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := c.kubectl(stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %q: %v\n%s", args, err, out)
	}
	return out
}

func signingKey(t *testing.T, dir string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "service-account.key")
	write(t, file, string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})))
	return file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// await polls until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	const limit = 2 * time.Minute
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !holds(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
	}
}
