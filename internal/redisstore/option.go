package redisstore

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

const (
	defaultTimeout = 5 * time.Second
	pageTimeout    = 10 * time.Second // for one page, or 8 MiB of a larger one
	clientName     = "korvet-offload"
	// connLifetime bounds how long a connection is kept, so that after a
	// failover that moves a name to another address none stays with a server
	// that is not the primary any more.
	connLifetime = time.Minute
	// Replies other than pages are small, and the general client keeps two
	// such buffers on each of its connections.
	clientBuffer = 32 << 10
)

// connections makes of the settings what makes all connections.
func (c Config) connections() (*primary, error) {
	o, known, err := address(c)
	if err != nil {
		return nil, err
	}
	if err := trust(&o, c); err != nil {
		return nil, err
	}
	timeout := c.timeout()
	o.Dialer.Timeout = timeout
	o.ConnWriteTimeout = timeout
	o.ConnLifetime = connLifetime
	o.ClientName = clientName
	o.ClientSetInfo = rueidis.DisableClientSetInfo // the smallest user may not do it, and the refusals fill the server's ACL log
	o.DisableRetry = true                          // Store.do tries again where that makes sense, and fails at once where not
	o.DisableCache = true                          // nothing is cached, and old servers can't
	if o.ForceSingleClient = !c.Cluster; o.ForceSingleClient {
		// One connection: others would be dialled in the middle of some
		// command, and the library does not see its context end then.
		o.PipelineMultiplex = -1
	}
	o.ReadBufferEachConn, o.WriteBufferEachConn = clientBuffer, clientBuffer
	if known != nil {
		known.option = o
		known.option.Username, known.option.Password, known.option.SelectDB = c.SentinelUsername, c.SentinelPassword, 0
	}
	return newPrimary(o, known, c.Cluster), nil
}

func (c Config) timeout() time.Duration {
	if c.Timeout <= 0 {
		return defaultTimeout
	}
	return c.Timeout
}

// address is where the server is, or which sentinels know: nil if none do.
func address(c Config) (rueidis.ClientOption, *sentinels, error) {
	if c.URI == "" {
		host, port := c.Host, c.Port
		if host == "" {
			host = "localhost"
		}
		if port == 0 {
			port = 6379
		}
		return rueidis.ClientOption{
			InitAddress: []string{net.JoinHostPort(host, strconv.Itoa(port))},
			Username:    c.Username, Password: c.Password,
		}, nil, nil
	}
	uri := c.URI
	var known *sentinels
	if isSentinelURI(uri) {
		u, err := parseSentinelURI(uri)
		if err != nil {
			return rueidis.ClientOption{}, nil, fmt.Errorf("korvet.redis.uri: %w", err)
		}
		uri, known = u.plain, &sentinels{addrs: u.sentinels, master: u.master}
	}
	o, err := rueidis.ParseURL(uri)
	if err != nil {
		// The parser's message repeats parts of what it was given, the
		// password among them.
		return o, nil, errors.New("korvet.redis.uri: want redis://, rediss:// or unix://, as in " +
			"redis://user:password@host:6379/0, with %xx for special characters in the password")
	}
	if o.Sentinel.MasterSet != "" {
		return o, nil, errors.New("korvet.redis.uri: master_set is not supported: name the sentinels, as in redis+sentinel://host:26379/master-name")
	}
	o.DialCtxFn = nil // of a socket: dialNet knows
	if known != nil {
		o.InitAddress = []string{"of " + known.master}
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = "" // each has a certificate for its own address
		}
	}
	return o, known, nil
}

// trust adds the authorities of a PEM file to the system's, and the client's
// own certificate.
func trust(o *rueidis.ClientOption, c Config) error {
	if o.TLSConfig == nil {
		return nil
	}
	if c.CertFile != "" {
		give := c.clientCertificate
		if _, err := give(nil); err != nil {
			return err
		}
		o.TLSConfig.GetClientCertificate = give
	}
	if c.CAFile == "" {
		return nil
	}
	pem, err := os.ReadFile(c.CAFile)
	if err != nil {
		return fmt.Errorf("korvet.redis.ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without any
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("korvet.redis.ca-file: no PEM certificate in %s", c.CAFile)
	}
	o.TLSConfig.RootCAs = pool
	return nil
}

// clientCertificate reads the certificate again for each connection: it may
// have been renewed.
func (c Config) clientCertificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read korvet.redis.cert-file %s with key-file %s: %w", c.CertFile, c.KeyFile, err)
	}
	return &pair, nil
}
