package command

import (
	"context"
	"time"

	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/internal/doctor"
	"korvet-offload/internal/redisstore"
	"korvet-offload/internal/words"
)

// preflightTime is how long the look at the start may take.
const preflightTime = 2 * time.Second

// preflight looks at what is cheap to see, and writes down what is not as it
// should be, a line each. What the start says in lines of its own is left out:
// what Redis may evict, what its user lacks, whose the place is.
func preflight(ctx context.Context, cfg config.Config, redis *redisstore.Store, log *zap.Logger) doctor.Count {
	limited, cancel := context.WithTimeout(ctx, preflightTime)
	defer cancel()
	all := doctor.Brief(examine(limited, cfg, depth{redis: redis, brief: true}))
	if ctx.Err() != nil {
		return doctor.Count{} // what ended has no fault
	}
	for _, f := range all {
		if f.Verdict == doctor.Warn || f.Verdict == doctor.Fail {
			log.Warn("preflight: "+f.Seen, zap.String("check", f.ID), zap.String("verdict", string(f.Verdict)), zap.String("advice", f.Do))
		}
	}
	return doctor.Tally(all)
}

// preflightSum is the line below those of preflight.
func preflightSum(c doctor.Count) string {
	text := "preflight: " + words.Count(c.OK, "check") + " ok, " + words.Count(c.Warn, "warning")
	if c.Fail > 0 {
		text += ", " + words.Count(c.Fail, "failure")
	}
	return text + "; run korvet-offload doctor for all"
}

// preflight is what a daemon does beside its work.
func (d *daemon) preflight(ctx context.Context, redis *redisstore.Store) {
	if c := preflight(ctx, d.cfg, redis, d.log); ctx.Err() == nil {
		d.log.Info(preflightSum(c))
	}
}

// preflightOnce is preflight before a single pass, which says nothing where all
// is well: a timer's mail should be worth reading.
func preflightOnce(ctx context.Context, cfg config.Config, redis *redisstore.Store, log *zap.Logger) {
	if c := preflight(ctx, cfg, redis, log); c.Warn+c.Fail > 0 {
		log.Info(preflightSum(c))
	}
}
