package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
	"korvet-offload/s3sink"
)

const registerDescription = `Brings an Iceberg table up to what the manifests of a topic say: adds the files of
segments that are REMOTE, and takes out those that are not any more, in one
snapshot. It makes the table if there is none. Run it again and again: nothing
differs, nothing is changed.

No object is ever changed or deleted: a file that is taken out is only not
named by the table any more. A table by whose means an engine could delete objects
is refused: one whose gc.enabled is not false, or whose location overlaps the
remote path.

The token or credential of a REST catalog comes from the environment:
` + tokenVariable + `, ` + credentialVariable + `.
The password of a database comes from PGPASSWORD or a .pgpass file.

Exit code 1 if a file was not as its manifest says, and was not added, or if
something can't be read or changed.`

func (p process) registerCommand() *cli.Command {
	return &cli.Command{
		Name:            "register",
		Usage:           "make a table of a topic's REMOTE segments, or bring it up to date",
		UsageText:       "korvet-offload iceberg register TOPIC --catalog URI [--warehouse URL] [options]",
		ArgsUsage:       "TOPIC",
		Description:     registerDescription,
		HideHelpCommand: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "catalog", Usage: "`URI` of the catalog: https://host/path (REST), postgres://user@host/database, or sqlite:///file", EnvVars: []string{"KORVET_OFFLOAD_ICEBERG_CATALOG"}},
			&cli.StringFlag{Name: "catalog-name", Usage: "the catalog's `NAME`, which an SQL catalog keeps beside its tables", Value: "korvet"},
			&cli.StringFlag{Name: "warehouse", Usage: "where tables lie, beside the remote path: a `URL` such as s3://bucket/warehouse; for a REST catalog what it calls its warehouse", EnvVars: []string{"KORVET_OFFLOAD_ICEBERG_WAREHOUSE"}},
			&cli.StringFlag{Name: "table", Usage: "`NAMESPACE.NAME` of the table", DefaultText: "korvet.TOPIC, in small letters, with _ for . and -"},
			&cli.StringSliceFlag{Name: "property", Usage: "a property of the catalog or of its files, as `NAME=VALUE`; may be repeated"},
			&cli.BoolFlag{Name: "dry-run", DisableDefaultText: true, Usage: "change nothing, and print what would be"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: outputTable, Usage: "print results as `FORMAT`: table or json"},
		}, config.Flags()...),
		Action: p.register,
	}
}

func (p process) register(c *cli.Context) error {
	o, err := p.readOptions(c)
	if err != nil {
		return err
	}
	in := config.FromFlags(c, p.environ)
	in.NeedStore = true
	cfg, err := config.Load(in)
	if err != nil {
		return err
	}
	r, closed, err := connect(c.Context, o, cfg.Config)
	if err != nil {
		return err
	}
	defer closed()
	ctx, err := withKeys(c.Context, cfg.Store)
	if err != nil {
		return err
	}
	done, err := r.run(ctx)
	if err != nil {
		return err
	}
	for _, problem := range done.problems {
		p.complain(problem)
	}
	if err := r.print(p.stdout, done); err != nil {
		return err
	}
	if len(done.problems) > 0 {
		return cmdline.ErrReported
	}
	return nil
}

// connect opens Redis, the object store and the catalog, and makes sure that the two
// first belong together.
func connect(ctx context.Context, o options, cfg config.Config) (*registration, func(), error) {
	place, err := rootOf(cfg.Store.URL)
	if err != nil {
		return nil, nil, cmdline.UsageError{Err: err}
	}
	owner := &reader{}
	store, err := s3sink.Open(cfg.Store, s3sink.Options{Owner: s3sink.Owner{Namespace: cfg.Redis.Layout.Namespace, Cluster: owner}, UserAgent: "korvet-offload-iceberg"})
	if err != nil {
		return nil, nil, cmdline.UsageError{Err: err}
	}
	redis, err := redisstore.Open(ctx, cfg.Redis, cfg.Topics, cfg.Streams)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	closed := func() { redis.Close(); store.Close() }
	owner.redis = redis
	if err := store.CheckOwner(ctx); err != nil {
		closed()
		return nil, nil, fmt.Errorf("check whose %s is: %w", place.url, err)
	}
	catalog, closeCatalog, err := openCatalog(ctx, o, cfg.Store)
	if err != nil {
		closed()
		return nil, nil, err
	}
	return &registration{options: o, root: place, layout: cfg.Redis.Layout, redis: redis, store: store, catalog: catalog, wait: backOff},
		func() { closeCatalog(); closed() }, nil
}

// reader is this Redis as the owner of a root that it only reads: s3sink.Cluster.
type reader struct {
	redis interface {
		ClusterID(ctx context.Context) (string, error)
	}
}

// Accepts refuses a root of another Redis: by its manifests all files of the table would
// be gone.
func (r *reader) Accepts(ctx context.Context, id string) error {
	own, err := r.redis.ClusterID(ctx)
	switch {
	case redisstore.ClassOf(err) == redisstore.Permission, err == nil && own == id:
		return nil
	case err != nil:
		return err
	}
	return fmt.Errorf("%w, %q: this Redis is %q; name the Redis that the root belongs to", s3sink.ErrOtherCluster, id, own)
}

// ID is not asked of somebody who puts nothing.
func (r *reader) ID(ctx context.Context) (string, error) { return r.redis.ClusterID(ctx) }
