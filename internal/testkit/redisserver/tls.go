package redisserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TLS makes the port a TLS port with a certificate of its own, for 127.0.0.1
// and localhost, which is its own authority: Server.CAFile. Exec still goes
// over the unix socket.
func TLS() Option {
	return func(t testing.TB, s *Server) {
		s.CAFile = filepath.Join(s.Dir, "tls.crt")
		key := filepath.Join(s.Dir, "tls.key")
		WriteCertificate(t, s.CAFile, key)
		s.tls = true
		s.args = append(s.args, "--tls-cert-file", s.CAFile, "--tls-key-file", key,
			"--tls-ca-cert-file", s.CAFile, "--tls-auth-clients", "no")
	}
}

// ClientCertificates makes a TLS port refuse clients that show no certificate of
// the server's own authority; the server's own one will do. It goes behind TLS.
func ClientCertificates() Option {
	return func(_ testing.TB, s *Server) {
		s.CertFile, s.KeyFile = s.CAFile, filepath.Join(s.Dir, "tls.key")
		s.args = append(s.args, "--tls-auth-clients", "yes")
	}
}

// WriteCertificate writes a self-signed certificate for the loopback address
// and its key, in PEM.
func WriteCertificate(t testing.TB, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("make TLS key: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:    []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatalf("make TLS certificate: %v", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("encode TLS key: %v", err)
	}
	writePEM(t, certFile, "CERTIFICATE", cert)
	writePEM(t, keyFile, "EC PRIVATE KEY", der)
}

func writePEM(t testing.TB, file, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatalf("write %s: %v", file, err)
	}
}
