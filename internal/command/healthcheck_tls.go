package command

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
)

// ownTLS trusts the server that has the certificate of a file. A certificate
// is seldom made out to 127.0.0.1, but only this host can answer there: over
// loopback the key suffices. Elsewhere the name must be right, too.
func ownTLS(certFile, host string) (*tls.Config, error) {
	own, err := certificates(certFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		ServerName:         host,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection does it
		VerifyConnection: func(s tls.ConnectionState) error {
			if isLoopback(host) && bytes.Equal(s.PeerCertificates[0].RawSubjectPublicKeyInfo, own[0].RawSubjectPublicKeyInfo) {
				return nil
			}
			return verifyChain(s.PeerCertificates, own, host)
		},
	}, nil
}

// verifyChain does what the TLS library does by itself, with the certificates
// of the server's file as further authorities.
func verifyChain(chain, own []*x509.Certificate, host string) error {
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	for _, c := range own {
		roots.AddCert(c)
	}
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	_, err = chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host})
	return err
}

// certificates are those of a PEM file, one at least.
func certificates(file string) ([]*x509.Certificate, error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read korvet.storage.offload.http.cert-file: %w", err)
	}
	var all []*x509.Certificate
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("read certificate of korvet.storage.offload.http.cert-file %s: %w", file, err)
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("korvet.storage.offload.http.cert-file %s: no certificate in it", file)
	}
	return all, nil
}

func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
