package s3sink

import (
	"context"
	"encoding/json"
	"errors"
	"time"
)

// Cluster is what the objects below a root belong to beside a namespace: one
// server, or cluster of servers, which has an id of its own. Markers of older
// versions name none.
type Cluster interface {
	// Accepts says why a root whose marker names this id must not be used:
	// ErrOtherCluster, or why that can't be told now. It is not asked of a marker
	// that names none.
	Accepts(ctx context.Context, id string) error
	// ID is what a marker names that is put now; "" = none. An error keeps it from
	// being put: ErrAnotherRoot, or why that can't be told now.
	ID(ctx context.Context) (string, error)
}

// ErrAnotherRoot says that a root without a marker is not the one with the
// objects that are known of: a folder that is not mounted, or another bucket. A
// store refuses it with ClassInvalid.
var ErrAnotherRoot = errors.New("it is not the root with the objects")

// ErrOtherCluster says that a root belongs to another cluster. A store refuses
// such a root with ClassInvalid.
var ErrOtherCluster = errors.New("the root belongs to another cluster")

// Marker is what the owner marker of a root says.
type Marker struct {
	Namespace string    // "" = there is no marker
	Cluster   string    // "" = it names none
	Created   time.Time // by the clock of the host that put it; zero = it does not say
}

// ReadMarker reads the owner marker, and says nothing against anybody's. What is
// no marker, or one of a later version, is an error of ClassInvalid.
func ReadMarker(ctx context.Context, s Store) (Marker, error) {
	content, err := markerBytes(ctx, s)
	switch {
	case ClassOf(err) == ClassMissing:
		return Marker{}, nil
	case err != nil:
		return Marker{}, err
	}
	var m marker
	if json.Unmarshal(content, &m) == nil && m.V == 1 && m.Namespace != "" {
		return Marker{m.Namespace, m.Cluster, m.Created}, nil
	}
	return Marker{}, Owner{}.accepts(content)
}

// acceptsCluster says why a root with this marker, which is one of the
// namespace's, must not be written to.
func (o Owner) acceptsCluster(ctx context.Context, content []byte) error {
	var m marker
	if err := json.Unmarshal(content, &m); err != nil || m.Cluster == "" || o.Cluster == nil {
		return nil //nolint:nilerr // accepts has read it
	}
	err := o.Cluster.Accepts(ctx, m.Cluster)
	if errors.Is(err, ErrOtherCluster) {
		return &Error{Op: "claim", Key: MarkerKey, Class: ClassInvalid, Err: err}
	}
	return err
}
