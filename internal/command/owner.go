package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"

	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/redisstore"
	"korvet-offload/offload"
	"korvet-offload/s3sink"
	"korvet-offload/segment"
)

// clusterKeeper is what the owner of a root needs of Redis.
type clusterKeeper interface {
	ClusterID(ctx context.Context) (string, error)
	ClaimClusterID(ctx context.Context, id string) (string, error)
	SwapClusterID(ctx context.Context, old, new string) (bool, error)
	Known(ctx context.Context) (map[string]string, error)
}

// cluster is this Redis as the owner of a root: s3sink.Cluster. A user who may
// not look at the id's key is told so at the start, and goes by the namespace
// alone.
type cluster struct {
	redis clusterKeeper // set before anybody asks
	// doubt is why this process does not know whether Redis remembered a topic
	// when it started: what its own passes have written since proves nothing.
	doubt atomic.Pointer[error]
	// accepted is the id by which this process has found the root to be its own;
	// nil = none yet.
	accepted atomic.Pointer[string]
	// objects says why a root without a marker is not the one with this Redis'
	// objects (s3sink.ErrAnotherRoot), or why that can't be told now; nil = nobody
	// asks.
	objects func(context.Context) error
	// empty is set when a person has said that the root is to be taken without them.
	empty atomic.Bool
}

// The two ways in which a root can be another's.
const (
	emptiedHint = "redis has no cluster id and remembers no topic: it was emptied, or it is another one; " +
		"if it is to go on with this root, rebuild the manifests with `korvet-offload restore --manifests`, or let it take the root over with `korvet-offload restore --claim`"
	otherHint = "redis is cluster %q: give each Redis a prefix of its own in remote-path; " +
		"if the one that the root belonged to is gone and this one goes on with it, let it take the root over with `korvet-offload restore --claim`"
)

// Accepts implements s3sink.Cluster. A Redis that has lost only the id, or that
// was made by an older version, takes over what the marker says.
func (c *cluster) Accepts(ctx context.Context, id string) error {
	own, err := c.redis.ClusterID(ctx)
	switch {
	case redisstore.ClassOf(err) == redisstore.Permission:
		return nil
	case err != nil:
		return err
	case own == "":
		if own, err = c.takeOver(ctx, id); err != nil {
			return err
		}
	}
	if err := sameCluster(own, id); err != nil {
		return err
	}
	c.accepted.Store(&id)
	return nil
}

// still says why a root that was this Redis' own is not any more. One that is
// emptied under a running worker, and gets its topics again, would otherwise go
// on below the objects of its earlier life.
func (c *cluster) still(ctx context.Context) error {
	id := c.accepted.Load()
	if id == nil {
		return nil
	}
	err := c.Accepts(ctx, *id)
	if errors.Is(err, s3sink.ErrOtherCluster) {
		return fmt.Errorf("%w: %w", offload.ErrDataLost, err)
	}
	return redisError(err)
}

// ownRegistry is a registry that is read only as long as the root is this Redis'
// own: without topics a pass does nothing.
type ownRegistry struct {
	offload.Registry
	owner *cluster
}

// Topics implements offload.Registry.
func (r ownRegistry) Topics(ctx context.Context) ([]segment.Topic, error) {
	if err := r.owner.still(ctx); err != nil {
		return nil, err
	}
	return r.Registry.Topics(ctx)
}

// ownKnown is the records of topics, which count only as long as the root is this
// Redis' own: one that is emptied after its topics were read, and before these, would
// be given a record of each.
type ownKnown struct {
	redisStore
	owner *cluster
}

// Known implements offload.Known.
func (k ownKnown) Known(ctx context.Context) (map[string]string, error) {
	known, err := k.redisStore.Known(ctx)
	if err != nil || len(known) > 0 {
		return known, err
	}
	return known, k.owner.still(ctx)
}

// takeOver gives Redis the id of a marker, where what it remembers says that the
// root is its own, and returns the id that it has then.
func (c *cluster) takeOver(ctx context.Context, id string) (string, error) {
	known, err := c.redis.Known(ctx)
	if err != nil {
		return "", err
	}
	if len(known) == 0 {
		return "", fmt.Errorf("%w, %q: %s", s3sink.ErrOtherCluster, id, emptiedHint)
	}
	if why := c.doubt.Load(); why != nil {
		return "", fmt.Errorf("the root names cluster %q, and at the start redis did not say whether it remembered a topic: start again: %w", id, *why)
	}
	own, err := c.redis.ClaimClusterID(ctx, id)
	if redisstore.ClassOf(err) == redisstore.Permission {
		return id, nil
	}
	return own, err
}

func sameCluster(own, id string) error {
	if own == id {
		return nil
	}
	return fmt.Errorf("%w, %q: "+otherHint, s3sink.ErrOtherCluster, id, own)
}

// ID implements s3sink.Cluster.
func (c *cluster) ID(ctx context.Context) (string, error) {
	if c.objects != nil && !c.empty.Load() {
		if err := c.objects(ctx); err != nil {
			return "", err
		}
	}
	id, err := c.redis.ClaimClusterID(ctx, rand.Text())
	if redisstore.ClassOf(err) == redisstore.Permission {
		return "", nil
	}
	if err == nil {
		c.accepted.Store(&id)
	}
	return id, err
}

// settle is for a start at which the store could not be asked. Passes that are
// made before it answers write down which topics there are, and an emptied Redis
// would look like one that remembers them. Given an id of its own now, it is
// another cluster than the marker's, whenever and by whomever that is read.
func (c *cluster) settle(ctx context.Context) {
	known, err := c.redis.Known(ctx)
	if err == nil && len(known) == 0 {
		_, err = c.redis.ClaimClusterID(ctx, rand.Text())
	}
	if err != nil && redisstore.ClassOf(err) != redisstore.Permission {
		c.doubt.Store(&err)
	}
}

// Errors of claimCluster.
var (
	errNoMarker      = errors.New("the root has no owner marker: there is nothing to take over; the first upload claims it, or --claim")
	errClusterRaced  = errors.New("the cluster id of redis has changed meanwhile: nothing was changed")
	errNoClusterName = errors.New("the root's owner marker names no cluster: it was put by an older version, and the namespace alone decides")
)

// claimCluster makes this Redis the one that the root belongs to: from now on
// it has the cluster id that the owner marker names, which is returned with the
// one that it had before. Nothing is changed with act false. It is for a person
// who says that this Redis goes on with the root, and takes the place of
// checkOwner there. A root of another namespace is refused (cmdline.UsageError);
// errNoMarker and errNoClusterName mean that there is nothing to claim.
func (s *session) claimCluster(ctx context.Context, act bool) (was, is string, err error) {
	ctx, cancel := context.WithTimeout(ctx, ownerTime)
	defer cancel()
	m, err := s3sink.ReadMarker(ctx, s.store)
	switch ns := s.cfg.Redis.Layout.Namespace; {
	case s3sink.ClassOf(err) == s3sink.ClassInvalid:
		return "", "", cmdline.UsageError{Err: err}
	case err != nil:
		return "", "", err
	case m.Namespace == "":
		return "", "", errNoMarker
	case m.Namespace != ns:
		return "", "", cmdline.UsageError{Err: fmt.Errorf("claim %s: the root belongs to namespace %q, this is namespace %q", s.cfg.Store.URL, m.Namespace, ns)}
	case m.Cluster == "":
		return "", "", errNoClusterName
	}
	if was, err = s.redis.ClusterID(ctx); err != nil || was == m.Cluster || !act {
		return was, m.Cluster, err
	}
	return was, m.Cluster, setCluster(ctx, s.redis, was, m.Cluster)
}

// setCluster gives Redis an id in place of the one that was read.
func setCluster(ctx context.Context, redis clusterKeeper, was, id string) error {
	if was == "" {
		switch now, err := redis.ClaimClusterID(ctx, id); {
		case err != nil:
			return err
		case now != id:
			return errClusterRaced
		}
		return nil
	}
	ok, err := redis.SwapClusterID(ctx, was, id)
	if err == nil && !ok {
		err = errClusterRaced
	}
	return err
}

// lacksCluster says that the user may not look at the cluster's id, so that the
// namespace alone decides whose the root is; "" if it may.
func (s *session) lacksCluster(ctx context.Context) string {
	_, err := s.redis.ClusterID(ctx)
	if redisstore.ClassOf(err) != redisstore.Permission {
		return ""
	}
	return fmt.Sprintf("whose the root is is told by the namespace alone: %v", err)
}
