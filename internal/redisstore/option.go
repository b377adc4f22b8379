package redisstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
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

// clientOption makes the general client's options of the settings. They are
// the one source for both kinds of connections: the direct reader dials with
// them as well.
func clientOption(c Config) (rueidis.ClientOption, error) {
	o, err := address(c)
	if err != nil {
		return o, err
	}
	if o.Sentinel.MasterSet != "" {
		return o, errors.New("korvet.redis.uri: master_set is not supported: give the address of the primary")
	}
	if err := trust(&o, c.CAFile); err != nil {
		return o, err
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
	return o, nil
}

func (c Config) timeout() time.Duration {
	if c.Timeout <= 0 {
		return defaultTimeout
	}
	return c.Timeout
}

func address(c Config) (rueidis.ClientOption, error) {
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
		}, nil
	}
	o, err := rueidis.ParseURL(c.URI)
	if err != nil {
		// The parser's message repeats parts of what it was given, the
		// password among them.
		return o, errors.New("korvet.redis.uri: want redis://, rediss:// or unix://, as in " +
			"redis://user:password@host:6379/0, with %xx for special characters in the password")
	}
	if path := o.InitAddress[0]; strings.HasPrefix(path, "/") {
		o.DialCtxFn = dialUnix
	}
	return o, nil
}

func dialUnix(ctx context.Context, path string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	return d.DialContext(ctx, "unix", path)
}

// trust adds the authorities of a PEM file to the system's.
func trust(o *rueidis.ClientOption, file string) error {
	if file == "" || o.TLSConfig == nil {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("korvet.redis.ca-file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without any
	}
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("korvet.redis.ca-file: no PEM certificate in %s", file)
	}
	o.TLSConfig.RootCAs = pool
	return nil
}
