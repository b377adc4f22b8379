package ops

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// Certificate is that of a server, read again when its files change. Safe for
// concurrent use.
type Certificate struct {
	certFile, keyFile string
	settings          string // that name the files
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

// OpenCertificate reads the files for the first time. Settings are the names of
// the settings that name them, for errors. Bad is told when the files have changed
// and can't be used, once for each cause; the certificate before goes on.
func OpenCertificate(certFile, keyFile, settings string, bad func(error)) (*Certificate, error) {
	c := &Certificate{certFile: certFile, keyFile: keyFile, settings: settings, bad: bad}
	seen, err := c.stamps()
	if err == nil {
		err = c.read(seen)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Get is what tls.Config asks at every handshake. Whoever changes the files may
// change one after the other; until both fit, the old one serves.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
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

func (c *Certificate) read(seen [2]stamp) error {
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return fmt.Errorf("read the certificate %s with its key %s (%s): %w", c.certFile, c.keyFile, c.settings, err)
	}
	c.now, c.seen = &pair, seen
	return nil
}

func (c *Certificate) stamps() (s [2]stamp, err error) {
	for i, file := range []string{c.certFile, c.keyFile} {
		info, err := os.Stat(file)
		if err != nil {
			return s, fmt.Errorf("look at the certificate (%s): %w", c.settings, err)
		}
		if !info.Mode().IsRegular() { // reading it might never end
			return s, fmt.Errorf("look at the certificate (%s): %s is no file", c.settings, file)
		}
		s[i] = stamp{info.ModTime(), info.Size()}
	}
	return s, nil
}
