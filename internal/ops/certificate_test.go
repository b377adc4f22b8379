package ops

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// certDir is a folder with a certificate and its key.
type certDir struct {
	t         *testing.T
	cert, key string
	written   int64
}

// write puts another certificate there, with a serial number. Its files are
// younger than those before, whatever the file system's clock can tell.
func (d *certDir) write(serial int64) {
	d.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		d.t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		d.t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		d.t.Fatal(err)
	}
	d.put(d.cert, "CERTIFICATE", cert)
	d.put(d.key, "PRIVATE KEY", raw)
}

func (d *certDir) put(file, kind string, raw []byte) {
	d.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.written++
	at := time.Now().Add(time.Duration(d.written) * time.Minute)
	if err := os.Chtimes(file, at, at); err != nil {
		d.t.Fatal(err)
	}
}

func newCertDir(t *testing.T) *certDir {
	dir := t.TempDir()
	d := &certDir{t: t, cert: filepath.Join(dir, "tls.crt"), key: filepath.Join(dir, "tls.key")}
	d.write(1)
	return d
}

// serial is that of the certificate that a server shows.
func serial(t *testing.T, address string) int64 {
	t.Helper()
	c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
}

func TestTheCertificateIsReadAgain(t *testing.T) {
	d := newCertDir(t)
	listening, ended, bad := make(chan net.Addr, 1), make(chan error, 1), make(chan error, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		ended <- Serve(ctx, Config{Address: "127.0.0.1:0", CertFile: d.cert, KeyFile: d.key}, NewHealth(func() error { return nil }), Mounts{},
			Events{Listening: func(a net.Addr) { listening <- a }, BadCertificate: func(err error) { bad <- err }})
	}()
	address := (<-listening).String()
	if n := serial(t, address); n != 1 {
		t.Errorf("certificate %d", n)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	r, err := client.Get("https://" + address + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	if r.Body.Close(); r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
	d.write(2)
	if n := serial(t, address); n != 2 {
		t.Errorf("certificate %d after another was written", n)
	}
	d.put(d.cert, "CERTIFICATE", []byte("half a file"))
	for range 3 {
		if n := serial(t, address); n != 2 {
			t.Errorf("certificate %d while the file can't be read", n)
		}
	}
	if err := <-bad; !strings.Contains(err.Error(), d.cert) || !strings.Contains(err.Error(), "cert-file") {
		t.Error(err)
	}
	select {
	case err := <-bad:
		t.Errorf("told twice: %v", err)
	default:
	}
	if err := os.Remove(d.cert); err != nil {
		t.Fatal(err)
	}
	if n := serial(t, address); n != 2 {
		t.Errorf("certificate %d while the file is gone", n)
	}
	if err := syscall.Mkfifo(d.cert, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := serial(t, address); n != 2 {
		t.Errorf("certificate %d while the file is a pipe", n)
	}
	if err := os.Remove(d.cert); err != nil {
		t.Fatal(err)
	}
	d.write(3)
	if n := serial(t, address); n != 3 {
		t.Errorf("certificate %d after it was mended", n)
	}
	if c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		c.Close()
		t.Error("TLS 1.1 is spoken")
	}
	cancel()
	mustEnd(t, ended)
}

func TestNoServerWithoutItsCertificate(t *testing.T) {
	d := newCertDir(t)
	other := newCertDir(t)
	for _, c := range []Config{{CertFile: d.cert + "x", KeyFile: d.key}, {CertFile: d.cert, KeyFile: other.key}, {CertFile: d.key, KeyFile: d.cert}} {
		c.Address = "127.0.0.1:0"
		err := Serve(t.Context(), c, NewHealth(nil), Mounts{}, Events{Listening: func(net.Addr) { t.Error("it listens") }})
		if err == nil || !strings.Contains(err.Error(), "http.cert-file") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
