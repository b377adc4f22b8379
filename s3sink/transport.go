package s3sink

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// maxIdleConns is how many connections are kept; more than one per segment
// and part in flight.
const maxIdleConns = 64

// expectSize is the size of a body, in bytes, from which on the store is asked
// whether it wants the body: a refusal then costs no transfer, and can't be
// lost when the store closes a connection that is still being written to.
const expectSize = 1 << 20

// newTransport speaks HTTP/1.1 only: uploads gain nothing from streams that
// share a connection, and lose when that one stalls.
func newTransport(caFile string, lim Limits) (*http.Transport, error) {
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pool, err := loadCAs(caFile)
		if err != nil {
			return nil, err
		}
		tlsConfig.RootCAs = pool
	}
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:       tlsConfig,
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: lim.Request,
		ExpectContinueTimeout: time.Second,
		MaxIdleConns:          maxIdleConns,
		MaxIdleConnsPerHost:   maxIdleConns,
		IdleConnTimeout:       time.Minute,
		WriteBufferSize:       64 << 10,
		ReadBufferSize:        64 << 10,
		DisableCompression:    true, // objects are wanted as they are
		TLSNextProto:          map[string]func(string, *tls.Conn) http.RoundTripper{},
	}, nil
}

// loadCAs adds the certificates of a PEM file to those of the system.
func loadCAs(name string) (*x509.CertPool, error) {
	pem, err := readCAFile(name)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("s3.ca-file %s: it holds no PEM certificate", name)
	}
	return pool, nil
}

// exchange is what the S3 library does not pass on of the last answer to an
// attempt.
type exchange struct {
	trial *time.Duration // the offset to sign the attempt with; nil = that of all requests
	clock *deadline      // of the attempt

	mu         sync.Mutex
	status     int
	head       bool // the answer is to a HEAD, and so has no words
	retryAfter time.Duration
	skew       time.Duration // this host's clock minus the one that the answer is dated by
	offset     time.Duration // what was added to this host's clock to sign the request
	region     string        // the bucket's, if the store says so
	dated      bool          // the answer has a Date
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// wait is how long the store has asked to wait.
func (x *exchange) wait() time.Duration {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.retryAfter
}

// observer is a transport that notes every answer in the exchange of the
// request's context.
type observer struct {
	next   http.RoundTripper
	signer *resigner
}

func (o observer) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	x, observed := ctx.Value(exchangeKey{}).(*exchange)
	offset := time.Duration(o.signer.offset.Load())
	if observed && x.trial != nil {
		offset = *x.trial
	}
	req, offset = o.signer.sign(req, offset)
	if req.ContentLength >= expectSize {
		req = req.Clone(ctx)
		req.Header.Set("Expect", "100-continue")
	}
	res, err := o.next.RoundTrip(req)
	if observed && err == nil {
		x.note(res, o.signer.now(), offset)
	}
	return res, err
}

func (x *exchange) note(res *http.Response, now time.Time, offset time.Duration) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.status = res.StatusCode
	x.head = res.Request.Method == http.MethodHead
	x.retryAfter = retryAfter(res.Header.Get("Retry-After"), now)
	x.region = res.Header.Get("X-Amz-Bucket-Region")
	x.skew, x.offset, x.dated = 0, offset, false
	if date, err := http.ParseTime(res.Header.Get("Date")); err == nil {
		x.skew, x.dated = now.Sub(date).Truncate(time.Second), true
	}
}

// otherClock is the offset by which a HEAD that was refused may be signed once
// more: its answer does not say why, and the Date may. ok is false where it does
// not.
func (x *exchange) otherClock() (offset time.Duration, ok bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return -x.skew, x.oddlyDated()
}

// oddlyDated says whether a HEAD was signed by a clock that S3 would refuse, if
// the Date of the answer were its own. The caller holds the lock.
func (x *exchange) oddlyDated() bool {
	return x.head && (x.skew+x.offset).Abs() > maxSkew
}

// retryAfter reads both forms of the header, seconds and date.
func retryAfter(value string, now time.Time) time.Duration {
	var d time.Duration
	if secs, err := strconv.ParseInt(value, 10, 32); err == nil {
		d = time.Duration(secs) * time.Second
	} else if date, err := http.ParseTime(value); err == nil {
		d = date.Sub(now)
	}
	return min(max(d, 0), retryAfterCap)
}

// certificateHint says what to do about an error of the TLS handshake; "" if
// err is none.
func certificateHint(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "set s3.ca-file to the authority that signed the store's certificate"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "s3.endpoint must be a name that the certificate holds; with virtual-host style the bucket's name is a part of it (s3.path-style-access)"
	}
	if _, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		return "renew the store's certificate, or mend this host's clock"
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return "the store does not speak TLS there; s3.endpoint may have to begin with http://"
	}
	return ""
}
