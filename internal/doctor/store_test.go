package doctor

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"korvet-offload/s3sink"
)

func storeError(class s3sink.Class) error {
	return &s3sink.Error{Op: "check", Bucket: "s3://b", Class: class, Err: errors.New("no")}
}

// fine is a bucket about which there is nothing to say.
func fine() s3sink.Facts {
	return s3sink.Facts{Owner: s3sink.Answer[s3sink.Marker]{Value: s3sink.Marker{Namespace: "korvet"}}, Bucket: &s3sink.BucketFacts{
		Name: "b", Prefix: "root/", Secure: true, Region: "eu-west-1", Located: "eu-west-1",
		Lifecycle: s3sink.Answer[[]s3sink.LifecycleRule]{Value: []s3sink.LifecycleRule{{ID: "abort", AbortDays: 7, NoncurrentDays: 7}}},
	}}
}

var storeNow = time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)

func wanted() StoreWant {
	return StoreWant{Namespace: "korvet", Now: storeNow, Retentions: []Retention{
		{Topic: "week", Prefix: "root/korvet:storage:local:week:", Total: 7 * day},
		{Topic: "ever", Prefix: "root/korvet:storage:local:ever:"},
	}}
}

func TestFineBucket(t *testing.T) {
	all := OfStore(fine(), wanted())
	for _, f := range all {
		expect(t, f.ID, f, OK, "")
	}
	if len(all) != 12 || !CanTry(fine()) {
		t.Errorf("%d findings", len(all))
	}
}

func TestBuckets(t *testing.T) {
	type change = func(*s3sink.Facts, *StoreWant)
	rules := func(rules ...s3sink.LifecycleRule) change {
		return func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Lifecycle.Value = rules }
	}
	lifecycle := func(class s3sink.Class) change {
		return func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Lifecycle.Err = storeError(class) }
	}
	lockFor := func(period time.Duration) change {
		return func(f *s3sink.Facts, _ *StoreWant) {
			f.Bucket.Lock.Value = s3sink.Lock{Enabled: true, Mode: "COMPLIANCE", Period: period}
		}
	}
	for i, tt := range []struct {
		id     string
		change change
		want   Verdict
		word   string
	}{
		{"store.region", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Located = "us-west-2" }, Fail, "us-west-2"},
		{"store.region", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Located = "" }, OK, "eu-west-1"},
		{"store.tls", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Secure, f.Bucket.Host = false, "minio:9000" }, Warn, "https://"},
		{"store.tls", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Secure, f.Bucket.Host = false, "127.0.0.1:9000" }, OK, "this host"},
		{"store.tls", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Secure, f.Bucket.Host = false, "[::1]" }, OK, "this host"},
		{"store.tls", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Secure, f.Bucket.Host = false, "localhost" }, OK, "this host"},
		{"store.clock", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Skew.Value = 10 * time.Second }, Warn, "10s ahead"},
		{"store.clock", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Skew.Value = -time.Hour }, Fail, "1h0m0s behind"},
		{"store.clock", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Skew.Err = errors.New("none") }, Skipped, "time"},
		{"store.owner", func(f *s3sink.Facts, _ *StoreWant) { f.Owner.Value.Namespace = "other" }, Fail, `"other"`},
		{"store.owner", func(f *s3sink.Facts, _ *StoreWant) { f.Owner.Value.Namespace = "" }, OK, "nobody"},
		{"store.owner", func(f *s3sink.Facts, _ *StoreWant) { f.Owner.Value.Cluster = "a" }, OK, "namespace korvet"},
		{"store.owner", func(f *s3sink.Facts, w *StoreWant) {
			f.Owner.Value.Cluster, w.Cluster = "a", Cluster{Told: true, ID: "a"}
		}, OK, "of this redis"},
		{"store.owner", func(f *s3sink.Facts, w *StoreWant) {
			f.Owner.Value.Cluster, w.Cluster = "a", Cluster{Told: true}
		}, Fail, "it was emptied"},
		{"store.owner", func(f *s3sink.Facts, w *StoreWant) {
			f.Owner.Value.Cluster, w.Cluster = "a", Cluster{Told: true, Topics: 1}
		}, OK, "takes the cluster id over"},
		{"store.owner", func(f *s3sink.Facts, w *StoreWant) {
			f.Owner.Value.Cluster, w.Cluster = "a", Cluster{Told: true, ID: "b", Topics: 1}
		}, Fail, `this redis is cluster "b"`},
		{"store.owner", func(f *s3sink.Facts, _ *StoreWant) { f.Owner.Err = storeError(s3sink.ClassInvalid) }, Fail, "prefix"},
		{"store.owner", func(f *s3sink.Facts, _ *StoreWant) { f.Owner.Err = storeError(s3sink.ClassDenied) }, Skipped, "s3:GetObject"},
		{"store.versioning", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Versioning.Value = s3sink.VersioningEnabled }, OK, "a rule removes"},
		{"store.versioning", func(f *s3sink.Facts, _ *StoreWant) {
			f.Bucket.Versioning.Value, f.Bucket.Lifecycle.Value = s3sink.VersioningEnabled, nil
		}, Warn, `"root/" with NoncurrentVersionExpiration`},
		{"store.versioning", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Versioning.Err = storeError(s3sink.ClassUnsupported) }, Skipped, "does not say"},
		{"store.versioning", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Versioning.Err = storeError(s3sink.ClassDenied) }, Skipped, "s3:GetBucketVersioning"},
		{"store.expiry", lifecycle(s3sink.ClassDenied), Skipped, "s3:GetLifecycleConfiguration"},
		{"store.expiry", rules(), OK, "no rule"},
		{"store.expiry", rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 6}), Fail, `rule "x" for "" removes objects after 6 days, and topic week keeps them for 7 days`},
		{"store.expiry", rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 30}), Fail, "topic ever keeps them for ever"},
		{"store.expiry", rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 30, Prefix: "root/korvet:storage:local:week:0/"}), OK, "later"},
		{"store.expiry", rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 7, Prefix: "root/korvet:storage:local:week"}), OK, "later"},
		{"store.expiry", rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 1, Prefix: "rooted/"}), OK, "no rule"},
		{"store.expiry", rules(s3sink.LifecycleRule{ExpireDate: storeNow}), Fail, "on 2026-05-01"},
		{"store.expiry", func(f *s3sink.Facts, w *StoreWant) {
			rules(s3sink.LifecycleRule{ID: "x", ExpireDays: 1})(f, w)
			w.Retentions = nil
		}, Warn, "not known"},
		{"store.unfinished", rules(), Warn, "AbortIncompleteMultipartUpload"},
		{"store.unfinished", rules(s3sink.LifecycleRule{AbortDays: 7, Prefix: "root/sub/"}), Warn, "AbortIncompleteMultipartUpload"},
		{"store.unfinished", rules(s3sink.LifecycleRule{AbortDays: 7, Narrow: true}), Warn, "AbortIncompleteMultipartUpload"},
		{"store.unfinished", rules(s3sink.LifecycleRule{ID: "up", AbortDays: 7, Prefix: "roo"}), OK, `"up"`},
		{"store.unfinished", lifecycle(s3sink.ClassUnsupported), Skipped, "does not say"},
		{"store.archive", rules(s3sink.LifecycleRule{ID: "cold", Transitions: []s3sink.Transition{{Class: "STANDARD_IA", Days: 30}, {Class: "DEEP_ARCHIVE", Days: 90}}}), Warn, "DEEP_ARCHIVE after 90 days"},
		{"store.archive", rules(s3sink.LifecycleRule{Transitions: []s3sink.Transition{{Class: "GLACIER_IR", Days: 1}}}), OK, "no rule"},
		{"store.archive", rules(s3sink.LifecycleRule{Prefix: "other/", Transitions: []s3sink.Transition{{Class: "GLACIER", Days: 1}}}), OK, "no rule"},
		{"store.archive", lifecycle(s3sink.ClassTimeout), Skipped, "no"},
		{"store.lock", lockFor(30 * day), Warn, "topic week keeps objects for 7 days"},
		{"store.lock", lockFor(day), OK, "COMPLIANCE for 1 day"},
		{"store.lock", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Lock.Value.Enabled = true }, OK, "not locked by default"},
		{"store.lock", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Lock.Err = storeError(s3sink.ClassDenied) }, Skipped, "s3:GetBucketObjectLockConfiguration"},
		{"store.encryption", func(f *s3sink.Facts, _ *StoreWant) {
			f.Bucket.Encryption.Value = s3sink.Encryption{Algorithm: "aws:kms", KeyID: "k"}
		}, OK, "aws:kms with key k"},
		{"store.encryption", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Encryption.Err = storeError(s3sink.ClassDenied) }, Skipped, "s3:GetEncryptionConfiguration"},
		{"store.uploads", func(f *s3sink.Facts, _ *StoreWant) {
			f.Bucket.Uploads.Value = s3sink.Uploads{Count: 3, More: true, Oldest: storeNow.Add(-50 * time.Hour)}
		}, Warn, "more than 3 unfinished uploads, the oldest 2 days old"},
		{"store.uploads", func(f *s3sink.Facts, _ *StoreWant) {
			f.Bucket.Uploads.Value = s3sink.Uploads{Count: 1, Oldest: storeNow.Add(-time.Hour)}
		}, OK, "1 unfinished upload"},
		{"store.uploads", func(f *s3sink.Facts, _ *StoreWant) { f.Bucket.Uploads.Err = storeError(s3sink.ClassDenied) }, Skipped, "s3:ListBucketMultipartUploads"},
	} {
		f, w := fine(), wanted()
		tt.change(&f, &w)
		expect(t, fmt.Sprintf("%d %s", i, tt.id), find(t, OfStore(f, w), tt.id), tt.want, tt.word)
	}
}

func TestStoreThatIsAway(t *testing.T) {
	for _, class := range []s3sink.Class{s3sink.ClassNoBucket, s3sink.ClassCredentials, s3sink.ClassWrongRegion, s3sink.ClassClockSkew, s3sink.ClassDenied, s3sink.ClassFull,
		s3sink.ClassLocked, s3sink.ClassInvalid, s3sink.ClassUnsupported, s3sink.ClassUnavailable, s3sink.ClassTimeout, s3sink.ClassOther} {
		f := fine()
		f.Bucket.Reach = storeError(class)
		all := OfStore(f, wanted())
		expect(t, string(class), find(t, all, "store.reach"), Fail, "check s3://b: no")
		if len(all) != 3 || CanTry(f) {
			t.Errorf("%s: %+v", class, all)
		}
	}
	expect(t, "unset", UnsetStore()[0], Fail, "korvet.storage.remote-path is not set")
	expect(t, "no store", NoStore(errors.New("no URL"))[0], Fail, "no URL")
}

func TestFolders(t *testing.T) {
	ext4 := func() s3sink.FolderFacts {
		return s3sink.FolderFacts{Path: "/data", Type: "ext4", Space: s3sink.Answer[s3sink.Space]{Value: s3sink.Space{Free: 50 << 30, Total: 100 << 30, FreeFiles: 1 << 20, FileLimit: 1 << 21}}}
	}
	for i, tt := range []struct {
		id     string
		change func(*s3sink.FolderFacts)
		want   Verdict
		word   string
	}{
		{"store.reach", func(*s3sink.FolderFacts) {}, OK, "/data"},
		{"store.reach", func(f *s3sink.FolderFacts) { f.Reach = storeError(s3sink.ClassNoBucket) }, Fail, "remote-path"},
		{"store.put", func(f *s3sink.FolderFacts) { f.Missing = true }, Skipped, "make the folder"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.Mount = true }, OK, "a mount of its own"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.Type = "tmpfs" }, Warn, "restarts"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.Type = "overlay" }, Warn, "container"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.ReadOnly = true }, Fail, "writable"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.Type = "" }, Skipped, "does not say"},
		{"store.disk", func(f *s3sink.FolderFacts) { f.Type = "nfs" }, OK, "nfs"},
		{"store.space", func(f *s3sink.FolderFacts) { f.Space.Value.Free = 1 << 29 }, Warn, "512.0 MiB free of 100.0 GiB"},
		{"store.space", func(f *s3sink.FolderFacts) { f.Space.Value.Free = 2 << 30 }, Warn, "2.0 GiB free"},
		{"store.space", func(f *s3sink.FolderFacts) { f.Space.Value.FreeFiles = 10 }, Warn, "10 more files"},
		{"store.space", func(f *s3sink.FolderFacts) { f.Space.Value.FreeFiles, f.Space.Value.FileLimit = 0, 0 }, OK, "50.0 GiB"},
		{"store.space", func(f *s3sink.FolderFacts) { f.Space.Err = errors.New("no") }, Skipped, "does not say"},
	} {
		f := ext4()
		tt.change(&f)
		all := OfStore(s3sink.Facts{Folder: &f}, wanted())
		expect(t, fmt.Sprintf("%d %s", i, tt.id), find(t, all, tt.id), tt.want, tt.word)
	}
}

// What an error says is to be done is said once, where that belongs.
func TestAdviceIsGivenOnce(t *testing.T) {
	hinted := &s3sink.Error{Op: "check", Bucket: "s3://b", Class: s3sink.ClassNoBucket, Hint: "create the bucket or mend remote-path", Err: errors.New("NoSuchBucket")}
	f := fine()
	f.Bucket.Reach = fmt.Errorf("store: %w", hinted)
	want := Finding{ID: "store.reach", Area: Store, Verdict: Fail, Seen: "store: check s3://b: NoSuchBucket", Do: hinted.Hint}
	if got := find(t, OfStore(f, wanted()), "store.reach"); got != want {
		t.Errorf("%+v", got)
	}
	f.Bucket.Reach = &s3sink.Error{Op: "check", Bucket: "s3://b", Class: s3sink.ClassDenied, Hint: "allow s3:GetObject", Err: errors.New("no")}
	if got := find(t, OfStore(f, wanted()), "store.reach"); got.Seen != "check s3://b: no" || got.Do != "allow s3:GetObject; docs/iam/s3-policy.json has all that is needed" {
		t.Errorf("%+v", got)
	}
	for step, verdict := range map[s3sink.Step]Verdict{s3sink.StepPut: Fail, s3sink.StepAbort: Warn} {
		hinted.Op = "abort"
		if got := trial(s3sink.Trial{Step: step, Err: hinted}); got.Verdict != verdict || got.Do != hinted.Hint || strings.Contains(got.Seen, got.Do) {
			t.Errorf("%s: %+v", step, got)
		}
	}
}

// A folder is not new where Redis knows of objects, or of topics.
func TestFoldersThatAreNotMounted(t *testing.T) {
	for i, tt := range []struct {
		folder s3sink.FolderFacts
		owner  s3sink.Answer[s3sink.Marker]
		past   Past
		id     string
		want   Verdict
		word   string
	}{
		{s3sink.FolderFacts{Missing: true}, s3sink.Answer[s3sink.Marker]{}, Past{}, "store.reach", OK, "the first upload makes it"},
		{s3sink.FolderFacts{Missing: true}, s3sink.Answer[s3sink.Marker]{}, Past{Topics: 2}, "store.reach", Warn, "2 topics that it has worked on: not mounted?"},
		{s3sink.FolderFacts{Missing: true}, s3sink.Answer[s3sink.Marker]{}, Past{Remote: "orders:0/1", Topics: 2}, "store.reach", Fail, "segment orders:0/1: not mounted?"},
		{s3sink.FolderFacts{Missing: true, Reach: storeError(s3sink.ClassNoBucket)}, s3sink.Answer[s3sink.Marker]{}, Past{Topics: 1}, "store.reach", Fail, "not mounted?"},
		{s3sink.FolderFacts{}, s3sink.Answer[s3sink.Marker]{}, Past{Remote: "orders:0/1"}, "store.owner", Fail, "no owner marker"},
		{s3sink.FolderFacts{}, s3sink.Answer[s3sink.Marker]{}, Past{Topics: 1}, "store.owner", OK, "nobody's yet"},
		{s3sink.FolderFacts{}, s3sink.Answer[s3sink.Marker]{Value: s3sink.Marker{Namespace: "korvet"}}, Past{Remote: "orders:0/1"}, "store.owner", OK, "namespace korvet"},
	} {
		w := wanted()
		w.Past = tt.past
		tt.folder.Path = "/data"
		facts := s3sink.Facts{Folder: &tt.folder, Owner: tt.owner}
		all := OfStore(facts, w)
		expect(t, fmt.Sprint(i), find(t, all, tt.id), tt.want, tt.word)
		for _, f := range all {
			if tt.want == Fail && strings.Contains(f.Do, "make the folder") {
				t.Errorf("%d: %+v", i, f)
			}
		}
		if got, want := Unclaimed(facts), tt.folder.Missing || tt.owner.Value.Namespace == ""; got != want {
			t.Errorf("%d: unclaimed %t", i, got)
		}
	}
	if Unclaimed(fine()) || Unclaimed(s3sink.Facts{Folder: &s3sink.FolderFacts{Reach: storeError(s3sink.ClassDenied)}}) {
		t.Error("a bucket, or a folder that can't be read, is taken for unclaimed")
	}
}

func TestTrials(t *testing.T) {
	denied := &s3sink.Error{Op: "abort", Bucket: "s3://b", Class: s3sink.ClassDenied, Err: errors.New("no")}
	for _, step := range s3sink.Steps() {
		expect(t, string(step), trial(s3sink.Trial{Step: step}), OK, "")
		expect(t, string(step), trial(s3sink.Trial{Step: step, Err: s3sink.ErrNotYet}), Skipped, "not tried")
		want := Fail
		switch step {
		case s3sink.StepList, s3sink.StepAbort:
			want = Warn
		case s3sink.StepUnnamed:
			want = OK
		case s3sink.StepChecksum:
			want = Skipped
		}
		f := trial(s3sink.Trial{Step: step, Err: denied})
		expect(t, string(step), f, want, "")
		find(t, Sorted([]Finding{f}), "store."+string(step))
	}
	for i, tt := range []struct {
		step s3sink.Step
		err  error
		want Verdict
		word string
	}{
		{s3sink.StepCreateOnly, s3sink.ErrReplaced, Warn, "path of its own"},
		{s3sink.StepCreateOnly, storeError(s3sink.ClassUnsupported), Warn, "path of its own"},
		{s3sink.StepPartsOnly, s3sink.ErrReplaced, Warn, "5 GiB"},
		{s3sink.StepLink, s3sink.ErrReplaced, Fail, "file system"},
		{s3sink.StepChecksum, s3sink.ErrUnchecked, Warn, "verified"},
		{s3sink.StepGet, s3sink.ErrDiffers, Fail, "caches"},
		{s3sink.StepList, s3sink.ErrNotListed, Fail, "caches"},
		{s3sink.StepDelete, s3sink.ErrStillThere, Fail, "caches"},
		{s3sink.StepDelete, storeError(s3sink.ClassLocked), Fail, "store.lock"},
		{s3sink.StepParts, storeError(s3sink.ClassTimeout), Fail, "store is up"},
		{s3sink.StepAbort, storeError(s3sink.ClassDenied), Skipped, "not tried"},
	} {
		expect(t, fmt.Sprintf("%d %s", i, tt.step), trial(s3sink.Trial{Step: tt.step, Err: tt.err}), tt.want, tt.word)
	}
}

func TestCleanUp(t *testing.T) {
	done := []s3sink.Trial{{Step: s3sink.StepPut}}
	expect(t, "clean", find(t, OfTrials(s3sink.Trials{Done: done}, false), "store.cleanup"), OK, "nothing is left")
	expect(t, "left", find(t, OfTrials(s3sink.Trials{Done: done, Left: []string{"k1", "k2"}}, false), "store.cleanup"), Fail, "k1, k2")
	done[0].Err = s3sink.ErrNotYet
	expect(t, "untried", find(t, OfTrials(s3sink.Trials{Done: done}, false), "store.cleanup"), Skipped, "nothing was put")
}

// Parts of an encrypted object take one right more than a single put.
func TestDeniedKey(t *testing.T) {
	denied := s3sink.Trials{Done: []s3sink.Trial{{Step: s3sink.StepParts, Err: storeError(s3sink.ClassDenied)}}}
	expect(t, "with a key", find(t, OfTrials(denied, true), "store.parts"), Fail, "kms:Decrypt")
	if f := find(t, OfTrials(denied, false), "store.parts"); strings.Contains(f.Do, "kms") {
		t.Errorf("%+v", f)
	}
}
