package s3sink

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// Unfinished is an upload in parts that was begun and neither completed nor
// given up: its parts are paid for, and no reader sees them.
type Unfinished struct {
	Key   string    // below the root, of the object that it would make
	ID    string    // the store's name of it
	Begun time.Time // by the store's clock; zero = it does not say
}

// Sweeper finds and removes what killed processes leave of uploads. Every store
// that Open makes is one. Its methods may be called by several goroutines at once.
type Sweeper interface {
	// Uploads gives the unfinished uploads below the root, in the store's order. It
	// ends at the first error. A folder has none.
	Uploads(ctx context.Context) iter.Seq2[Unfinished, error]
	// AbortUpload gives an upload up, with all its parts; nil also if there is no
	// such upload any more. Whoever still sends parts to it finds that out.
	AbortUpload(ctx context.Context, u Unfinished) error
	// Now is the time of the clock by which Info.ModTime and Unfinished.Begun are
	// told, to a second; of a folder, this host's.
	Now(ctx context.Context) (time.Time, error)
}

var (
	_ Sweeper = (*bucket)(nil)
	_ Sweeper = (*files)(nil)
)

// Uploads lists the unfinished uploads; see Sweeper. It holds one page at a time.
func (b *bucket) Uploads(ctx context.Context) iter.Seq2[Unfinished, error] {
	return func(yield func(Unfinished, error) bool) {
		var key, id string
		for {
			page, err := b.uploadsPage(ctx, key, id)
			if err != nil {
				yield(Unfinished{}, err)
				return
			}
			for _, u := range page.Uploads {
				below, ours := strings.CutPrefix(u.Key, b.path(""))
				if ours && below != "" && u.UploadID != "" && !yield(Unfinished{below, u.UploadID, u.Initiated}, nil) {
					return
				}
			}
			if !page.IsTruncated {
				return
			}
			if page.NextKeyMarker == "" || page.NextKeyMarker == key && page.NextUploadIDMarker == id {
				yield(Unfinished{}, b.fault(request{op: opUploads}, ClassOther, "", errListing))
				return
			}
			key, id = page.NextKeyMarker, page.NextUploadIDMarker
		}
	}
}

func (b *bucket) uploadsPage(ctx context.Context, key, id string) (page minio.ListMultipartUploadsResult, err error) {
	r := request{op: opUploads}
	err = b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		page, err = c.ListMultipartUploads(ctx, b.name, b.path(""), key, id, "", pageSize)
		return err
	})
	if isUnknown(err) {
		a, _ := errors.AsType[*answer](err)
		err = b.fault(r, ClassUnsupported, "", a)
	}
	return page, err
}

// AbortUpload gives an upload up; see Sweeper. A part that was on its way may
// arrive behind the abort; then the next listing shows the upload again.
func (b *bucket) AbortUpload(ctx context.Context, u Unfinished) error {
	r := request{op: "abort", key: u.Key}
	if err := checkKey(u.Key); err != nil || u.ID == "" {
		return b.invalid("abort", errors.Join(err, errors.New("an upload has a key and an id")))
	}
	switch err := b.abortOnce(ctx, r, u.ID); {
	case !noSuchUpload(err):
		return err
	default: // 404 does not tell a missing upload from a missing bucket
		return b.headBucket(ctx, "abort")
	}
}

// Now is the time that the store dates its answers by; see Sweeper.
func (b *bucket) Now(ctx context.Context) (time.Time, error) {
	var at time.Time
	r := request{op: "check"}
	err := b.do(ctx, r, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		there, err := c.BucketExists(ctx, b.name)
		if err == nil && !there {
			return b.fault(r, ClassNoBucket, "", &answer{status: 404, code: "NoSuchBucket"})
		}
		if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok && err == nil {
			at = x.storeTime(b.opt.Now())
		}
		return err
	})
	if err == nil && at.IsZero() {
		err = b.fault(r, ClassUnsupported, "", errUndated)
	}
	return at, err
}

// storeTime is what the clock of an answer shows when this host's shows now; zero
// where the answer had no date.
func (x *exchange) storeTime(now time.Time) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.dated {
		return time.Time{}
	}
	return now.Add(-x.skew)
}

// Uploads gives none: what a killed process leaves of a file has no name, or one
// that the next put of its folder sweeps; see Sweeper.
func (f *files) Uploads(context.Context) iter.Seq2[Unfinished, error] {
	return func(func(Unfinished, error) bool) {}
}

// AbortUpload has nothing to give up; see Sweeper.
func (f *files) AbortUpload(context.Context, Unfinished) error { return nil }

// Now is this host's time; see Sweeper.
func (f *files) Now(ctx context.Context) (time.Time, error) { return f.opt.Now(), ctx.Err() }
