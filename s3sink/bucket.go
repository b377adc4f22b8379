package s3sink

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// defaultRegion is assumed where neither the settings nor the bucket tell.
const defaultRegion = "us-east-1"

// bucket is a Store in an S3 bucket.
type bucket struct {
	cfg    Config
	opt    Options
	name   string
	prefix string
	source string // where the credentials come from, in words
	creds  *credentials.Credentials
	sse    encrypt.ServerSide // nil = the bucket's default
	signer *resigner
	http   http.RoundTripper
	idle   []interface{ CloseIdleConnections() }

	throttle *throttle
	promised promised

	asking  turn // held while the region is asked for
	conn    atomic.Pointer[connection]
	claim   claim
	probe   probe
	noBatch atomic.Bool // the store takes one key per delete request
}

// connection is a client for the bucket's region.
type connection struct {
	client *minio.Core
	region string
}

func newBucket(cfg Config, t target, opt Options) (*bucket, error) {
	transport, err := newTransport(cfg.CAFile, opt.Limits)
	if err != nil {
		return nil, err
	}
	region := firstOf(cfg.Region, os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	asker := newCredentialsClient(transport)
	src := chooseSource(cfg, region, asker)
	b := &bucket{
		cfg: cfg, opt: opt, name: t.bucket, prefix: t.prefix, source: src.name,
		creds:    credentials.New(&refreshing{source: src, now: opt.Now}),
		idle:     []interface{ CloseIdleConnections() }{transport, asker},
		throttle: newThrottle(opt), asking: newTurn(), claim: newClaim(), probe: probe{turn: newTurn()},
	}
	b.signer = &resigner{now: opt.Now, creds: b.creds}
	b.http = observer{next: transport, signer: b.signer}
	b.noBatch.Store(isGoogle(cfg.Endpoint))
	if cfg.SSE != "" {
		if b.sse, err = encryptionOf(cfg); err != nil {
			return nil, err
		}
	}
	if region == "" {
		return b, nil
	}
	_, err = b.use(region)
	return b, err
}

// isGoogle recognizes the store that the library sends no batches to.
func isGoogle(endpoint string) bool {
	u, err := url.Parse(endpoint)
	return err == nil && s3utils.IsGoogleEndpoint(*u)
}

func encryptionOf(cfg Config) (encrypt.ServerSide, error) {
	if cfg.SSE == SSEKMS {
		return encrypt.NewSSEKMS(cfg.SSEKMSKeyID, nil)
	}
	return encrypt.NewSSE(), nil
}

// use makes the client for a region.
func (b *bucket) use(region string) (*minio.Core, error) {
	client, err := b.newClient(region)
	if err != nil {
		return nil, err
	}
	b.conn.Store(&connection{client: client, region: region})
	return client, nil
}

func (b *bucket) newClient(region string) (*minio.Core, error) {
	host, secure := "s3.amazonaws.com", true
	if b.cfg.Endpoint != "" {
		u, err := url.Parse(b.cfg.Endpoint)
		if err != nil {
			return nil, err
		}
		host, secure = u.Host, u.Scheme == "https"
	}
	lookup := minio.BucketLookupDNS
	if b.cfg.pathStyle(b.name) {
		lookup = minio.BucketLookupPath
	}
	core, err := minio.NewCore(host, &minio.Options{
		Creds: b.creds, Secure: secure, Transport: b.http, Region: region, BucketLookup: lookup, MaxRetries: 1,
	})
	if err != nil {
		return nil, err
	}
	core.SetS3EnableDualstack(false) // gateways and private endpoints serve the plain names
	if name, version, ok := strings.Cut(b.opt.UserAgent, "/"); ok {
		core.SetAppInfo(name, version)
	}
	return core, nil
}

// connect gives the client, and asks where the bucket is if nobody has said
// so yet. It runs inside an attempt, so that it is repeated like one.
func (b *bucket) connect(ctx context.Context) (*minio.Core, error) {
	if conn := b.conn.Load(); conn != nil {
		return conn.client, nil
	}
	if err := b.asking.take(ctx); err != nil {
		return nil, err
	}
	defer b.asking.give()
	if conn := b.conn.Load(); conn != nil {
		return conn.client, nil
	}
	asker, err := b.newClient("")
	if err != nil {
		return nil, err
	}
	region, err := asker.GetBucketLocation(ctx, b.name)
	if err != nil && !b.hasNoLocation(err) {
		return nil, err
	}
	return b.use(firstOf(region, defaultRegion))
}

// hasNoLocation says whether a store other than AWS just does not know the
// question.
func (b *bucket) hasNoLocation(err error) bool {
	status := minio.ToErrorResponse(err).StatusCode
	return b.cfg.Endpoint != "" &&
		(status == http.StatusNotImplemented || status == http.StatusMethodNotAllowed || status == http.StatusBadRequest)
}

func (b *bucket) regionInUse() string {
	if conn := b.conn.Load(); conn != nil {
		return conn.region
	}
	return ""
}

// Close closes idle connections; see Store.
func (b *bucket) Close() {
	for _, c := range b.idle {
		c.CloseIdleConnections()
	}
}

// path is the key as S3 knows it.
func (b *bucket) path(key string) string {
	if b.prefix == "" {
		return key
	}
	return b.prefix + "/" + key
}

// hide blots the configured secrets out of a text.
func (b *bucket) hide(text string) string {
	for _, secret := range []string{b.cfg.SecretAccessKey, b.cfg.SessionToken} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// invalid refuses a request that was never made.
func (b *bucket) invalid(op string, err error) error {
	return b.fault(request{op: op}, ClassInvalid, "", err)
}
