package serve

import (
	"errors"
	"fmt"
	"net"
	"strconv"
)

// Config of the server.
type Config struct {
	Address     string // host:port
	Token       string // bearer token that everything but the health probe asks for, 16 characters or more; "" = none
	CertFile    string // PEM file of the server's certificate; "" = no TLS
	KeyFile     string // PEM file of its key
	Connections int    // at once; 1 or more
	Rate        int    // requests per second of one client address at most; 0 = no limit
	ZeroCopy    bool   // files of this machine are sent by the kernel
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	return Config{Address: "127.0.0.1:9478", Connections: 256, Rate: 100, ZeroCopy: true}
}

// leastToken is how many characters a token has at least.
const leastToken = 16

// Validate returns one error per setting that makes no sense; each begins with
// the setting's last parts.
func (c Config) Validate() []error {
	var errs []error
	_, port, err := net.SplitHostPort(c.Address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		errs = append(errs, fmt.Errorf("serve.address %q: want host:port, such as 127.0.0.1:9478 or :9478", c.Address))
	}
	if c.Token != "" && len(c.Token) < leastToken {
		errs = append(errs, fmt.Errorf("serve.token: it is shorter than %d characters, and can be guessed; `openssl rand -hex 24` makes a good one", leastToken))
	}
	switch {
	case c.CertFile != "" && c.KeyFile == "":
		errs = append(errs, errors.New("serve.key-file: it belongs to serve.cert-file, and is missing: want the PEM file of the certificate's key"))
	case c.CertFile == "" && c.KeyFile != "":
		errs = append(errs, errors.New("serve.cert-file: it belongs to serve.key-file, and is missing: want the PEM file of the certificate"))
	}
	if c.Connections < 1 {
		errs = append(errs, fmt.Errorf("serve.connections %d: want 1 or more", c.Connections))
	}
	if c.Rate < 0 {
		errs = append(errs, fmt.Errorf("serve.rate %d: want 1 or more, or 0 for no limit", c.Rate))
	}
	return errs
}
