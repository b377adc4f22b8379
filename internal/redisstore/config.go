package redisstore

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// Config says how to reach Redis and what lies where. However it is printed,
// its secrets are not.
type Config struct {
	URI      string // redis://, rediss://, unix://, redis+sentinel:// or rediss+sentinel://; takes the place of Host to Password
	Host     string
	Port     int
	Username string
	Password string
	Cluster  bool          // the address is a node of a Redis Cluster
	Timeout  time.Duration // to connect, and for one command; a page has its own of 10 s
	CAFile   string        // PEM file of further certificate authorities, with TLS
	CertFile string        // PEM file of the client's certificate, with TLS; read again for each connection
	KeyFile  string        // PEM file of its key

	SentinelUsername string // of the sentinels themselves; the servers' are in the URI
	SentinelPassword string

	Layout   segment.Layout
	Shards   int    // leases that instances share; only the rights that are needed depend on it
	PageSize int    // most entries of one XRANGE, 1 to MaxPageSize
	Reader   string // ReaderDirect or ReaderClient

	WaitReplicas int  // replicas that must have a durable change before it counts; 0 = none
	WaitAOF      bool // and it must be on disk, here and there (WAITAOF, Redis 7.2)

	StrictEviction bool // a server that may evict streams refuses the start; Open does not look at it
}

// How pages are read.
const (
	ReaderDirect = "direct" // own connections, decoded in place: the fast one
	ReaderClient = "client" // the general client: slower, for what the other can't reach
)

// MaxPageSize bounds Config.PageSize.
const MaxPageSize = 1_000_000

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	return Config{
		URI: "redis://localhost:6379", Host: "localhost", Port: 6379,
		Timeout:  10 * time.Second,
		Layout:   segment.DefaultLayout(),
		PageSize: 10_000,
		Reader:   ReaderDirect,
	}
}

// Validate returns one error per setting that makes no sense; each begins
// with the setting's last part and none holds a password.
func (c Config) Validate() []error {
	errs := c.validateAddress()
	if c.Timeout < time.Millisecond {
		errs = append(errs, fmt.Errorf("timeout %s: want 1ms or more", c.Timeout))
	}
	if c.PageSize < 1 || c.PageSize > MaxPageSize {
		errs = append(errs, fmt.Errorf("page-size %d: want 1 to %d", c.PageSize, MaxPageSize))
	}
	if c.Reader != ReaderDirect && c.Reader != ReaderClient {
		errs = append(errs, fmt.Errorf("page-reader %q: want %s or %s", c.Reader, ReaderDirect, ReaderClient))
	}
	if c.WaitReplicas < 0 {
		errs = append(errs, fmt.Errorf("wait-replicas %d: want 0 or more", c.WaitReplicas))
	}
	return append(errs, c.Layout.Validate()...)
}

func (c Config) validateAddress() []error {
	var errs []error
	add := func(name string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
		}
	}
	if c.URI != "" {
		add("uri", checkURI(c.URI))
	} else {
		add("host", checkHost(c.Host))
		if c.Port < 1 || c.Port > 65535 {
			errs = append(errs, fmt.Errorf("port %d: want 1 to 65535", c.Port))
		}
	}
	errs = append(errs, c.validateTLS()...)
	if c.Cluster && strings.HasPrefix(c.URI, "unix:") {
		errs = append(errs, errors.New("cluster: a unix:// socket is no cluster: want redis:// or rediss://"))
	}
	return append(errs, c.validateSentinels()...)
}

func (c Config) validateSentinels() (errs []error) {
	const needs = ": it has no effect without sentinels: want a uri that begins with redis+sentinel:// or rediss+sentinel://"
	switch sentinels := isSentinelURI(c.URI); {
	case sentinels && c.Cluster:
		errs = append(errs, errors.New("cluster: no sentinels watch a Redis Cluster: want a uri that begins with redis:// or rediss://, with one of its nodes"))
	case sentinels:
		if c.SentinelUsername != "" && c.SentinelPassword == "" {
			errs = append(errs, errors.New("sentinel.password: it belongs to sentinel.username, and is missing"))
		}
	default:
		if c.SentinelUsername != "" {
			errs = append(errs, errors.New("sentinel.username"+needs))
		}
		if c.SentinelPassword != "" {
			errs = append(errs, errors.New("sentinel.password"+needs))
		}
	}
	return errs
}

func (c Config) validateTLS() (errs []error) {
	for _, f := range []struct{ name, file string }{{"ca-file", c.CAFile}, {"cert-file", c.CertFile}, {"key-file", c.KeyFile}} {
		if f.file != "" && !overTLS(c.URI) {
			errs = append(errs, fmt.Errorf("%s: it has no effect without TLS: want a uri that begins with rediss:// or rediss+sentinel://", f.name))
		}
	}
	switch {
	case c.CertFile != "" && c.KeyFile == "":
		errs = append(errs, errors.New("key-file: it belongs to cert-file, and is missing: want the PEM file of the certificate's key"))
	case c.CertFile == "" && c.KeyFile != "":
		errs = append(errs, errors.New("cert-file: it belongs to key-file, and is missing: want the PEM file of the client's certificate"))
	}
	return errs
}

var errURI = errors.New("want redis://[user:password@]host[:port][/database], rediss:// for TLS, unix:///path, " +
	"or redis+sentinel://host[:port][,host[:port]...]/master-name for sentinels; in user and password write %xx for @ : / ? # and %")

// checkURI refuses what the client could not use. The parsers' own errors
// repeat the URI and are not passed on.
func checkURI(uri string) error {
	if isSentinelURI(uri) {
		_, err := parseSentinelURI(uri)
		return err
	}
	u, err := url.Parse(uri)
	if err != nil || u.Fragment != "" || u.Opaque != "" {
		return errURI
	}
	switch u.Scheme {
	case "redis", "rediss":
		if checkHost(u.Hostname()) != nil {
			return errURI
		}
	case "unix":
		if u.Host != "" || !strings.HasPrefix(u.Path, "/") {
			return errURI
		}
	default:
		return errURI
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errURI
	}
	if !knownParameters(query) {
		return errors.New("it has a parameter behind the ? that is not one of " + strings.Join(parameters(), ", "))
	}
	if _, err := rueidis.ParseURL(uri); err != nil {
		return errURI
	}
	return nil
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,253}$`)

// checkHost takes a name or an address without its port.
func checkHost(host string) error {
	if hostName.MatchString(host) || net.ParseIP(strings.Trim(host, "[]")) != nil {
		return nil
	}
	return errors.New("want a server's name or address, without redis:// and without the port")
}

// parameters are what a URI may have behind the ?; none holds a secret.
func parameters() []string {
	return []string{"db", "addr", "protocol", "skip_verify", "dial_timeout", "write_timeout"}
}

func knownParameters(q url.Values) bool {
	for _, p := range parameters() {
		q.Del(p)
	}
	return len(q) == 0
}

// RedactURI is a URI as it may be shown: with xxxxx for the password, and not
// at all where it can't be told what in it is the password.
func RedactURI(uri string) string {
	if isSentinelURI(uri) {
		return redactSentinelURI(uri)
	}
	if plainURI.MatchString(uri) {
		return uri
	}
	u, err := url.Parse(uri)
	if err != nil || checkURI(uri) != nil || u.Scheme != "unix" && !databasePath.MatchString(u.Path) {
		return notShown
	}
	if u.User == nil {
		return uri
	}
	if _, ok := u.User.Password(); !ok {
		u.User = url.User("xxxxx") // a password without its colon, perhaps
	}
	return u.Redacted()
}

// notShown stands for a URI of which it can't be told what in it is a password.
const notShown = "(not shown: it may hold a password)"

// plainURI is what has no place for a password, whole URI or not.
var plainURI = regexp.MustCompile(`^(?:[a-z]+://)?[A-Za-z0-9._-]*(?::\d{1,5})?(?:/\d*)?$|^unix:///[^@?#:]*$`)

var databasePath = regexp.MustCompile(`^(/\d+)?$`)

// String names the server and nothing secret.
func (c Config) String() string {
	if c.URI != "" {
		return RedactURI(c.URI)
	}
	return "redis://" + net.JoinHostPort(c.Host, strconv.Itoa(c.Port))
}

// Format prints what String says, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// LogValue logs what String says.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }
