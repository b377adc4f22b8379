package command

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/ops"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/segcache"
	"korvet-offload/internal/serve"
	"korvet-offload/s3sink"
)

const serveDescription = `A server for consumers and query engines that have no credentials of the store.
Nothing can be changed through it. docs/serve.md has the paths, and how DuckDB
reads through it.

    /v1/topics                              topics and their partitions
    /v1/topics/TOPIC/NUMBER/segments        segments of a partition
    /v1/topics/TOPIC/NUMBER/segments/N.parquet   the file, or ranges of it
    /v1/topics/TOPIC/NUMBER/messages        messages, one JSON object per line
    /v1/streams, /v1/streams/KEY/...        the same of plain streams
    /healthz                                answers ok, to everybody

Only files are served that a manifest names, or, with --from-store, that lie on
the store under the path of a segment; then Redis is not used at all. Where the
remote path is a folder, files are sent by the kernel without being copied; so
are those from a bucket with cache.dir set, in which files are kept.

It listens on 127.0.0.1 unless serve.address says otherwise; set serve.token where
others can reach it. SIGTERM ends it within 20 seconds: answers under way get 15.`

func (p Process) serveCommand() *cli.Command {
	return &cli.Command{
		Name:        "serve",
		Usage:       "serve the remote tier to others over HTTP, read-only",
		UsageText:   "korvet-offload serve [--from-store] [options]",
		Description: serveDescription,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "from-store", DisableDefaultText: true, Usage: "go by what lies on the store alone, without Redis"},
		}, settingFlags(bothSettings("page-size", "serve-address", "zero-copy", "cache-dir", "log-level", "log-format")...)...),
		Action: p.serve,
	}
}

func (p Process) serve(c *cli.Context) (err error) {
	cfg, err := p.settings(c, true)
	if err != nil {
		return err
	}
	log, _, err := ops.NewLogger(cfg.Ops, p.Stderr, terminal(p.Stderr))
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		log.Warn(w)
	}
	store, err := openStore(cfg.Config, s3sink.Options{})
	if err != nil {
		return cmdline.UsageError{Err: err}
	}
	defer store.Close()
	if err := checkServed(c.Context, store, log); err != nil {
		return err
	}
	files, end, err := openServedFiles(cfg.Config, store, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	parts, done, err := servedParts(c.Context, cfg.Config, c.Bool("from-store"), store)
	if err != nil {
		return err
	}
	defer done()
	parts.Files = files
	if err := serve.Serve(c.Context, cfg.Serve, parts, servedEvents(log, cfg.Serve)); err != nil {
		return err
	}
	log.Info("stopped")
	return nil
}

// checkServed refuses a place that belongs to another namespace: what lies there
// are other topics' segments. A store that can't be asked is asked for files later.
func checkServed(ctx context.Context, store s3sink.Store, log *zap.Logger) error {
	err := checkOwner(ctx, store)
	if err == nil || ctx.Err() != nil || errors.As(err, new(cmdline.UsageError)) {
		return err
	}
	log.Warn("the store does not say whom it belongs to; going on", zap.Error(err))
	return nil
}

// servedParts are what is served but the files. The caller calls done when nobody
// uses them any more.
func servedParts(ctx context.Context, cfg config.Config, fromStore bool, store s3sink.Store) (parts serve.Parts, done func(), err error) {
	parts.Layout = cfg.Redis.Layout
	if fromStore {
		fromListing(&parts, store)
		return parts, func() {}, nil
	}
	redis, err := redisstore.Open(ctx, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		return parts, nil, err
	}
	fromManifests(&parts, redis, store)
	return parts, redis.Close, nil
}

// servedEvents write down what the server tells.
func servedEvents(log *zap.Logger, cfg serve.Config) serve.Events {
	return serve.Events{
		Listening: func(a net.Addr) {
			log.Info("serving", zap.String("address", a.String()), zap.Bool("tls", cfg.CertFile != ""), zap.Bool("token", cfg.Token != ""), zap.Bool("zero_copy", cfg.ZeroCopy && cfg.CertFile == ""))
			if at, err := netip.ParseAddrPort(a.String()); cfg.Token == "" && err == nil && !at.Addr().Unmap().IsLoopback() {
				log.Warn("the server answers other hosts, and asks for no token: whoever reaches it reads all messages; set korvet.storage.offload.serve.token, or listen on 127.0.0.1")
			}
		},
		BadCertificate: func(err error) {
			log.Error("the certificate can't be read again; going on with the one before", zap.Error(err))
		},
		Answered: func(a serve.Answered) {
			log.Debug("answered", zap.String("method", a.Method), zap.String("path", a.Path), zap.String("from", a.From), zap.Int("status", a.Status),
				zap.Int64("bytes", a.Bytes), zap.Duration("took", a.Took))
		},
		Failed: func(path string, err error) {
			log.Warn("a request could not be answered", zap.String("path", path), zap.Error(err))
		},
	}
}

// openServedFiles opens the files of a store, with the cache before it where there
// is one. The caller calls end when nobody uses them any more.
func openServedFiles(cfg config.Config, store s3sink.Store, log *zap.Logger) (serve.Files, func() error, error) {
	if local, ok := store.(s3sink.Local); ok {
		return folderFiles{local}, func() error { return nil }, nil
	}
	if cfg.Cache.Dir == "" {
		return bucketFiles{store}, func() error { return nil }, nil
	}
	cache, err := segcache.Open(cfg.Cache, func(err error) {
		log.Warn("the cache can't keep files now; they are passed on from the store", zap.Error(err))
	})
	if err != nil {
		return nil, nil, fmt.Errorf("serve: %w", err)
	}
	return newCachedFiles(store, cache), cache.Close, nil
}
