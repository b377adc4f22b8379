package command

import (
	"errors"
	"os"
	"strings"
	"testing"

	"go.uber.org/zap"

	"korvet-offload/internal/ops"
)

// A store that did not answer at the start, and then says that the root is another
// cluster's, is not said to be away any more.
//
//fault:store | The store does not answer at the start, and later says that the root is another cluster's | a marker of another cluster, and then the own one | it is not ready and says whose the root is, and is ready when the root is its own
func TestTheRootTurnsOutToBeAnothers(t *testing.T) {
	rig := newRig(t)
	s := sessionOf(t, rig.environ, quiet{})
	rig.server.Exec("SET", clusterKey, "own")
	rig.setMarker(t, "other")
	d := &daemon{cfg: s.cfg, manager: newManager(zap.NewNop()), eviction: newEvictionWatch(zap.NewNop())}
	d.journal = newJournal(zap.NewNop(), ops.NewHealth(d.alive))
	d.metrics = newMetrics(s.cfg, d.up)
	d.journal.fails(partOwner, "the store does not say whom it belongs to; going on", errors.New("refused"))
	d.look(t.Context(), s)
	if why := d.journal.downBecause(); !strings.Contains(why, `"other"`) {
		t.Errorf("it says %q", why)
	}
	mounted := rig.root() + "-mounted"
	rig.setMarker(t, "own")
	mustCall(t, rig.environ, exitDone, "run", "--once")
	if err := errors.Join(os.Rename(rig.root(), mounted), os.Mkdir(rig.root(), 0o700)); err != nil {
		t.Fatal(err)
	}
	d.look(t.Context(), s)
	if why := d.journal.downBecause(); !strings.Contains(why, "mount the disk") {
		t.Errorf("it is not mounted, and it says %q", why)
	}
	if err := errors.Join(os.Remove(rig.root()), os.Rename(mounted, rig.root())); err != nil {
		t.Fatal(err)
	}
	d.look(t.Context(), s)
	if why := d.journal.downBecause(); why != "" {
		t.Errorf("the root is its own, and it says %q", why)
	}
}
