package ops

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate is that of the server, read again when its files change. Safe for
// concurrent use.
type certificate struct {
	certFile, keyFile string
	bad               func(error)

	mu   sync.Mutex
	now  *tls.Certificate
	seen [2]stamp // of the files that now was read from
	said string   // what was told last
}

// stamp tells two versions of a file apart.
type stamp struct {
	modified time.Time
	size     int64
}

// openCertificate reads the files for the first time.
func openCertificate(certFile, keyFile string, bad func(error)) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, bad: bad}
	seen, err := c.stamps()
	if err == nil {
		err = c.read(seen)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// get is what tls.Config asks at every handshake. Whoever changes the files may
// change one after the other; until both fit, the old one serves.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen, err := c.stamps()
	if err == nil && seen != c.seen {
		err = c.read(seen)
	}
	switch {
	case err == nil:
		c.said = ""
	case err.Error() != c.said:
		c.said = err.Error()
		c.bad(err)
	}
	return c.now, nil
}

func (c *certificate) read(seen [2]stamp) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate %s with its key %s (korvet.storage.offload.http.cert-file, .key-file): %w", c.certFile, c.keyFile, err)
	}
	c.now, c.seen = &pair, seen
	return nil
}

func (c *certificate) stamps() (s [2]stamp, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return s, fmt.Errorf("look at the certificate (korvet.storage.offload.http.cert-file, .key-file): %w", err)
		}
		if !info.Mode().IsRegular() { // reading it might never end
			return s, fmt.Errorf("look at the certificate (korvet.storage.offload.http.cert-file, .key-file): %s is no file", file)
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, nil
}
