package s3sink

import (
	"context"
	"errors"
)

var errNotTested = errors.New("permission to put was not tested; the first put will show it")

// Check looks for the bucket, its region, and the permissions to list and to
// read; see Store.
func (b *bucket) Check(ctx context.Context) []Problem {
	if err := b.headBucket(ctx, "check"); err != nil && ClassOf(err) != ClassDenied {
		// The answer to HEAD has no body; that to a listing says why.
		if _, why := b.page(ctx, "check", "", "", 1); why != nil {
			err = why
		}
		return []Problem{{Tried: "reach the bucket", Err: err}}
	}
	var found []Problem
	if _, err := b.page(ctx, "check", "", "", 1); err != nil {
		// Without it the store can't say "missing", but the work can be done.
		found = append(found, Problem{Tried: "list the prefix", Err: err, Warning: ClassOf(err) == ClassDenied})
	}
	if _, err := b.Stat(ctx, MarkerKey); err != nil && ClassOf(err) != ClassMissing {
		found = append(found, Problem{Tried: "look at an object", Err: err, Warning: len(found) > 0})
	}
	if b.opt.Owner.Namespace != "" {
		if err := b.CheckOwner(ctx); err != nil {
			found = append(found, Problem{Tried: "read the owner marker", Err: err})
		}
	}
	return append(found, Problem{Tried: "put an object", Err: errNotTested, Warning: true})
}
