package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	_ "github.com/apache/iceberg-go/catalog/rest" // kind "rest" of catalog.Load
	sqlcatalog "github.com/apache/iceberg-go/catalog/sql"
	icebergio "github.com/apache/iceberg-go/io"
	_ "github.com/apache/iceberg-go/io/gocloud/s3" // files of tables on S3
	"github.com/apache/iceberg-go/utils"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	_ "github.com/jackc/pgx/v5/stdlib" // database driver "pgx"
	_ "modernc.org/sqlite"             // database driver "sqlite"

	"korvet-offload/internal/cmdline"
	"korvet-offload/s3sink"
)

// openCatalog opens the catalog that the options name. The second result closes it.
func openCatalog(ctx context.Context, o options, store s3sink.Config) (catalog.Catalog, func(), error) {
	props := fileProperties(store, o.warehouse)
	for name, value := range o.properties {
		props[name] = value
	}
	if o.warehouse != "" {
		props["warehouse"] = o.warehouse
	}
	if o.sql() {
		return openSQL(ctx, o, props)
	}
	props["type"], props["uri"] = "rest", o.catalog.String()
	if o.token != "" {
		props["token"] = o.token
	}
	if o.credential != "" {
		props["credential"] = o.credential
	}
	cat, err := catalog.Load(ctx, o.name, props)
	if err != nil {
		return nil, nil, fmt.Errorf("open catalog %s: %w", o.catalog.Redacted(), err)
	}
	return cat, func() {
		if c, ok := cat.(catalog.Closer); ok {
			_ = c.Close() // it was only asked
		}
	}, nil
}

// answerTime is how long a database may take to answer at all.
const answerTime = 30 * time.Second

// openSQL opens a catalog in a database, and makes its two tables if they are not
// there. The library makes them without a context: the database is asked before.
func openSQL(ctx context.Context, o options, props iceberg.Properties) (catalog.Catalog, func(), error) {
	driver, dialect, source := "pgx", sqlcatalog.Postgres, o.catalog.String()
	if o.catalog.Scheme == "sqlite" {
		// One writer waits for another instead of failing at once.
		driver, dialect, source = "sqlite", sqlcatalog.SQLite, "file:"+o.catalog.EscapedPath()+"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)&_txlock=immediate"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		return nil, nil, cmdline.UsageError{Err: fmt.Errorf("--catalog %s: %w", o.catalog.Redacted(), err)}
	}
	closed := func() { _ = db.Close() }
	limited, done := context.WithTimeout(ctx, answerTime)
	defer done()
	var cat catalog.Catalog
	if err = db.PingContext(limited); err == nil {
		cat, err = sqlcatalog.NewCatalog(o.name, db, dialect, props)
	}
	if err != nil {
		closed()
		return nil, nil, fmt.Errorf("open catalog %s: %w", o.catalog.Redacted(), err)
	}
	return cat, closed, nil
}

// fileProperties are what the files of tables need to know of the settings of S3.
// Keys are not among them, since properties may be shown and kept: withKeys.
func fileProperties(store s3sink.Config, warehouse string) iceberg.Properties {
	props := iceberg.Properties{}
	if !strings.HasPrefix(store.URL, "s3") {
		return props
	}
	if store.Endpoint != "" {
		props[icebergio.S3EndpointURL] = store.Endpoint
	}
	if store.Region != "" {
		props[icebergio.S3Region] = store.Region
	}
	switch place, err := canonical(warehouse); {
	case store.PathStyle != nil:
		props[icebergio.S3ForceVirtualAddressing] = strconv.FormatBool(!*store.PathStyle)
	case err == nil && strings.Contains(bucketOf(place), "."): // its name does not fit a wildcard certificate
		props[icebergio.S3ForceVirtualAddressing] = "false"
	}
	return props
}

func bucketOf(place string) string {
	rest, _ := strings.CutPrefix(place, "s3://")
	bucket, _, _ := strings.Cut(rest, "/")
	return bucket
}

// withKeys gives the files of tables the keys, the region and the certificate
// authorities of the settings; without keys the usual chain of AWS is asked.
func withKeys(ctx context.Context, store s3sink.Config) (context.Context, error) {
	if !strings.HasPrefix(store.URL, "s3") {
		return ctx, nil
	}
	var opts []func(*config.LoadOptions) error
	if store.AccessKeyID != "" {
		opts = append(opts, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(store.AccessKeyID, store.SecretAccessKey, store.SessionToken)))
	}
	if store.Region != "" {
		opts = append(opts, config.WithRegion(store.Region))
	}
	opts = append(opts, config.WithDefaultRegion("us-east-1"))
	if store.CAFile != "" {
		client, err := trusting(store.CAFile)
		if err != nil {
			return nil, cmdline.UsageError{Err: fmt.Errorf("s3.ca-file: %w", err)}
		}
		opts = append(opts, config.WithHTTPClient(client))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("read the settings of AWS: %w", err)
	}
	return utils.WithAwsConfig(ctx, &cfg), nil
}

// trusting is an HTTP client that trusts the authorities of a file beside those of
// the system.
func trusting(file string) (*awshttp.BuildableClient, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("there is no certificate in " + file)
	}
	return awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}), nil
}
