package s3sink

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Inspect asks the bucket about itself; see Inspector.
func (b *bucket) Inspect(ctx context.Context) Facts {
	f := &BucketFacts{Name: b.name, Prefix: b.path(""), Host: b.host(), Secure: !strings.HasPrefix(b.cfg.Endpoint, "http://"), Storage: b.cfg.StorageClass}
	all := Facts{Bucket: f}
	var located string
	var wg sync.WaitGroup
	for _, question := range []func(){
		func() { f.Reach = b.reach(ctx, f) },
		func() { all.Owner = inspectOwner(ctx, b) },
		func() { located = b.location(ctx) },
		func() { f.Versioning = b.versioning(ctx) },
		func() { f.Lifecycle = b.lifecycle(ctx) },
		func() { f.Lock = b.lock(ctx) },
		func() { f.Encryption = b.encryption(ctx) },
		func() { f.Uploads = b.uploads(ctx) },
	} {
		wg.Go(question)
	}
	wg.Wait()
	f.Region = b.regionInUse()
	f.Located = firstOf(f.Located, located)
	return all
}

func (b *bucket) host() string {
	u, err := url.Parse(b.cfg.Endpoint)
	if err != nil {
		return ""
	}
	return u.Host
}

// errUndated stands for answers without a Date.
var errUndated = errors.New("the store's answers have no date")

// reach looks for the bucket, and notes what its answer says beside that. An
// answer to HEAD has no words, so where it is bad a listing says why. Who may not
// list can work all the same.
func (b *bucket) reach(ctx context.Context, f *BucketFacts) error {
	f.Skew.Err = errUndated
	err := b.do(ctx, request{op: "check"}, func(ctx context.Context, _ int) error {
		c, err := b.connect(ctx)
		if err != nil {
			return err
		}
		there, err := c.BucketExists(ctx, b.name)
		x, _ := ctx.Value(exchangeKey{}).(*exchange)
		f.note(x)
		if err == nil && !there {
			r, a := request{op: "check"}, &answer{status: 404, code: "NoSuchBucket"}
			return b.fault(r, ClassNoBucket, b.hint(r, ClassNoBucket, a, "", x), a)
		}
		return err
	})
	if err == nil || ClassOf(err) == ClassNoBucket {
		return err
	}
	if _, why := b.page(ctx, "check", "", "", 1); ClassOf(why) != ClassDenied {
		return why
	}
	if ClassOf(err) == ClassDenied {
		return nil
	}
	return err
}

// note takes what an answer says of the clock and of the region.
func (f *BucketFacts) note(x *exchange) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.dated {
		f.Skew = Answer[time.Duration]{Value: x.skew}
	}
	if regionName.MatchString(x.region) {
		f.Located = x.region
	}
}

// location is the region that the store says the bucket is in; "" where it
// does not say.
func (b *bucket) location(ctx context.Context) string {
	var region string
	ok, err := b.ask(ctx, opLocation, url.Values{"location": {""}}, "LocationConstraint", &region)
	switch region = strings.TrimSpace(region); {
	case err != nil || !ok || region != "" && !regionName.MatchString(region):
		return ""
	case region == "EU": // what the oldest buckets have
		return "eu-west-1"
	}
	return region // "" from AWS means us-east-1, and from others nothing
}

func (b *bucket) versioning(ctx context.Context) Answer[Versioning] {
	var doc struct{ Status string }
	_, err := b.ask(ctx, opVersioning, url.Values{"versioning": {""}}, "VersioningConfiguration", &doc)
	return Answer[Versioning]{Versioning(doc.Status), err}
}

func (b *bucket) lifecycle(ctx context.Context) Answer[[]LifecycleRule] {
	var doc lifecycleDocument
	_, err := b.ask(ctx, opLifecycle, url.Values{"lifecycle": {""}}, "LifecycleConfiguration", &doc)
	return Answer[[]LifecycleRule]{doc.rules(), err}
}

func (b *bucket) lock(ctx context.Context) Answer[Lock] {
	var doc lockDocument
	_, err := b.ask(ctx, opLock, url.Values{"object-lock": {""}}, "ObjectLockConfiguration", &doc)
	return Answer[Lock]{doc.lock(), err}
}

func (b *bucket) encryption(ctx context.Context) Answer[Encryption] {
	var doc encryptionDocument
	_, err := b.ask(ctx, opEncryption, url.Values{"encryption": {""}}, "ServerSideEncryptionConfiguration", &doc)
	return Answer[Encryption]{doc.encryption(), err}
}

func (b *bucket) uploads(ctx context.Context) Answer[Uploads] {
	var doc uploadsDocument
	query := url.Values{"uploads": {""}, "prefix": {b.path("")}, "max-uploads": {"1000"}}
	_, err := b.ask(ctx, opUploads, query, "ListMultipartUploadsResult", &doc)
	return Answer[Uploads]{doc.uploads(b.path("")), err}
}
