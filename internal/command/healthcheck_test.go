package command

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/ops"
)

// healthServer answers as a running instance does.
func healthServer(t *testing.T, alive error, ready bool) *httptest.Server {
	t.Helper()
	h := ops.NewHealth(func() error { return alive })
	if ready {
		h.Ready()
	}
	s := httptest.NewUnstartedServer(ops.Handler(ops.Config{}, h, ops.Mounts{}))
	t.Cleanup(s.Close)
	return s
}

func port(t *testing.T, s *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

const addressVariable = "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS="

func TestHealthcheckSaysWhatTheServerSays(t *testing.T) {
	for _, tt := range []struct {
		name       string
		alive      error
		ready      bool
		args, want string // want: a part of the one line
		code       int
	}{
		{"alive", nil, false, "", "alive", exitDone},
		{"ready", nil, true, "--ready", "ready", exitDone},
		{"not ready", nil, false, "--ready", "/readyz at 127.0.0.1:PORT: 503: not ready: starting", exitFault},
		{"hangs", errors.New("no progress for 6m"), true, "", "/livez at 127.0.0.1:PORT: 503: no progress for 6m", exitFault},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := healthServer(t, tt.alive, tt.ready)
			s.Start()
			want := strings.ReplaceAll(tt.want, "PORT", port(t, s))
			for _, host := range []string{"127.0.0.1", "", "0.0.0.0"} {
				r := call(t, []string{addressVariable + net.JoinHostPort(host, port(t, s))}, strings.Fields("healthcheck "+tt.args)...)
				said := r.stdout + r.stderr
				if r.code != tt.code || !strings.Contains(said, want) || strings.Count(said, "\n") != 1 || (r.code == exitDone) != (r.stderr == "") {
					t.Errorf("host %q: exit %d, stdout %q, stderr %q, want %q", host, r.code, r.stdout, r.stderr, want)
				}
			}
		})
	}
}

func TestHealthcheckFailsWhereItCanNotAsk(t *testing.T) {
	gone := healthServer(t, nil, true)
	gone.Start()
	gone.Close()
	for address, want := range map[string]string{
		"":                            "http.address is empty",
		"127.0.0.1:0":                 "name a port",
		"127.0.0.1":                   "the settings are wrong",
		gone.Listener.Addr().String(): "connection refused",
	} {
		r := call(t, []string{addressVariable + address}, "healthcheck")
		if r.code != exitFault || r.stdout != "" || !strings.Contains(r.stderr, want) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%q: exit %d, stdout %q, stderr %q, want %q", address, r.code, r.stdout, r.stderr, want)
		}
	}
}

func TestHealthcheckDoesNotWaitForEver(t *testing.T) {
	hold := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hold }))
	defer s.Close()
	defer close(hold)
	begun := time.Now()
	r := call(t, []string{addressVariable + s.Listener.Addr().String()}, "healthcheck")
	if took := time.Since(begun); r.code != exitFault || !strings.Contains(r.stderr, "no answer within 3s") || took > 2*healthTime {
		t.Errorf("exit %d after %s, stderr %q", r.code, took, r.stderr)
	}
}

func TestAddressToAsk(t *testing.T) {
	for listen, want := range map[string]string{
		":9477": "127.0.0.1:9477", "0.0.0.0:9477": "127.0.0.1:9477", "[::]:9477": "[::1]:9477",
		"10.1.2.3:9477": "10.1.2.3:9477", "localhost:80": "localhost:80", "[::1]:9477": "[::1]:9477",
	} {
		if got, err := ownAddress(listen); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", listen, got, err, want)
		}
	}
}

// selfSigned makes a certificate for a name, with a key of its own.
func selfSigned(t *testing.T, name string) (file string, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "tls.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func TestHealthcheckKnowsItsServerByTheKey(t *testing.T) {
	file, pair := selfSigned(t, "korvet-offload.example")
	other, _ := selfSigned(t, "korvet-offload.example")
	s := healthServer(t, nil, true)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of the handshake that the test wants to fail
	s.StartTLS()
	ask := func(certFile string) result {
		return call(t, []string{addressVariable + s.Listener.Addr().String(), "KORVET_STORAGE_OFFLOAD_HTTP_CERT_FILE=" + certFile,
			"KORVET_STORAGE_OFFLOAD_HTTP_KEY_FILE=" + certFile}, "healthcheck")
	}
	if r := ask(file); r.code != exitDone || r.stdout != "alive\n" {
		t.Errorf("its own certificate: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	if r := ask(other); r.code != exitFault || !strings.Contains(r.stderr, "x509") {
		t.Errorf("another certificate of that name: exit %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
	}
	if r := ask(filepath.Join(t.TempDir(), "none")); r.code != exitFault || !strings.Contains(r.stderr, "http.cert-file") {
		t.Errorf("no certificate: exit %d, stderr %q", r.code, r.stderr)
	}
}

func TestAwayFromLoopbackTheNameMustBeRight(t *testing.T) {
	file, pair := selfSigned(t, "korvet-offload.example")
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	for host, fits := range map[string]bool{"korvet-offload.example": true, "10.1.2.3": false, "127.0.0.1": true} {
		c, err := ownTLS(file, host)
		if err != nil {
			t.Fatal(err)
		}
		err = c.VerifyConnection(tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}})
		if (err == nil) != fits {
			t.Errorf("%s: %v", host, err)
		}
	}
}
