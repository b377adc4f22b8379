package s3sink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"
)

// documents answers questions about the bucket by their names, and everything
// else as an empty bucket does.
func documents(of map[string]http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for name, answer := range of {
			if r.URL.Query().Has(name) {
				answer(w, r)
				return
			}
		}
		switch {
		case r.Method == http.MethodHead:
			w.Header().Set("X-Amz-Bucket-Region", "us-east-1")
		case strings.Contains(r.URL.Path, MarkerKey):
			s3Error(http.StatusNotFound, "NoSuchKey", "")(w, r)
		default:
			xmlText(`<ListBucketResult><Name>bucket</Name></ListBucketResult>`)(w, r)
		}
	}
}

func xmlText(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
}

func inspect(t *testing.T, of map[string]http.HandlerFunc) *BucketFacts {
	t.Helper()
	b := newBench(t, Limits{Attempts: 2}, documents(of))
	return b.Inspect(t.Context()).Bucket
}

func TestInspectReadsDocuments(t *testing.T) {
	f := inspect(t, map[string]http.HandlerFunc{
		"location":    xmlText(`<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">us-east-1</LocationConstraint>`),
		"versioning":  xmlText(`<?xml version="1.0"?><VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>`),
		"object-lock": xmlText(`<ObjectLockConfiguration><ObjectLockEnabled>Enabled</ObjectLockEnabled><Rule><DefaultRetention><Mode>COMPLIANCE</Mode><Years>1</Years></DefaultRetention></Rule></ObjectLockConfiguration>`),
		"encryption": xmlText(`<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm>
<KMSMasterKeyID>arn:aws:kms:eu-west-1:1:key/2</KMSMasterKeyID></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`),
		"uploads": xmlText(`<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>
<Upload><Key>root/a</Key><Initiated>2026-01-02T00:00:00.000Z</Initiated></Upload><Upload><Key>root/b</Key><Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload>
<Upload><Key>other/c</Key><Initiated>2020-01-01T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>`),
		"lifecycle": xmlText(`<LifecycleConfiguration>
<Rule><ID>off</ID><Status>Disabled</Status><Prefix/><Expiration><Days>1</Days></Expiration></Rule>
<Rule><ID>old</ID><Status>Enabled</Status><Prefix>root/x</Prefix><Expiration><Date>2027-01-01T00:00:00.000Z</Date></Expiration></Rule>
<Rule><ID>all</ID><Status>Enabled</Status><Filter/><AbortIncompleteMultipartUpload><DaysAfterInitiation>7</DaysAfterInitiation></AbortIncompleteMultipartUpload>
<NoncurrentVersionExpiration><NoncurrentDays>3</NoncurrentDays></NoncurrentVersionExpiration></Rule>
<Rule><ID>tagged</ID><Status>Enabled</Status><Filter><And><Prefix>root/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter>
<Expiration><Days>30</Days></Expiration><Transition><Days>90</Days><StorageClass>GLACIER</StorageClass></Transition><Transition><Days>30</Days><StorageClass>STANDARD_IA</StorageClass></Transition></Rule>
</LifecycleConfiguration>`),
	})
	want := []LifecycleRule{
		{ID: "old", Prefix: "root/x", ExpireDate: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
		{ID: "all", AbortDays: 7, NoncurrentDays: 3},
		{ID: "tagged", Prefix: "root/", Narrow: true, ExpireDays: 30, Transitions: []Transition{{"GLACIER", 90}, {"STANDARD_IA", 30}}},
	}
	if f.Lifecycle.Err != nil || !reflect.DeepEqual(f.Lifecycle.Value, want) {
		t.Errorf("%+v", f.Lifecycle)
	}
	if f.Reach != nil || f.Located != "us-east-1" || f.Region != "us-east-1" || f.Versioning.Value != VersioningEnabled {
		t.Errorf("%+v", f)
	}
	if l := f.Lock; l.Err != nil || l.Value != (Lock{true, "COMPLIANCE", 365 * day}) {
		t.Errorf("%+v", l)
	}
	if e := f.Encryption; e.Err != nil || !e.Value.KMS() || e.Value.KeyID != "arn:aws:kms:eu-west-1:1:key/2" {
		t.Errorf("%+v", e)
	}
	if u := f.Uploads; u.Err != nil || u.Value != (Uploads{2, true, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}) {
		t.Errorf("%+v", u)
	}
}

// What is not set is no error; what a store does not know, or does not let one
// see, says so.
//
//fault:input | A store answers questions about the bucket with errors, listings, pages, cut or endless XML | Stubs, each answer to each question | What is not set is told from what is not known and what may not be seen; nothing is believed of the rest
func TestInspectOfWhatIsNotThere(t *testing.T) {
	questions := []string{"lifecycle", "object-lock", "encryption", "versioning", "uploads"}
	for name, tt := range map[string]struct {
		answer http.HandlerFunc
		want   Class
	}{
		"no rules":        {s3Error(404, "NoSuchLifecycleConfiguration", "none"), ""},
		"no lock":         {s3Error(404, "ObjectLockConfigurationNotFoundError", "none"), ""},
		"no encryption":   {s3Error(404, "ServerSideEncryptionConfigurationNotFoundError", "none"), ""},
		"no key":          {s3Error(404, "NoSuchKey", "what?"), ""},
		"a proxy's 404":   {s3Error(404, "", ""), ClassUnsupported},
		"not implemented": {s3Error(501, "NotImplemented", "no"), ClassUnsupported},
		"no method":       {s3Error(405, "MethodNotAllowed", "no"), ClassUnsupported},
		"denied":          {s3Error(403, "AccessDenied", "no"), ClassDenied},
		"no bucket":       {s3Error(404, "NoSuchBucket", "gone"), ClassNoBucket},
		"down":            {s3Error(500, "InternalError", "sorry"), ClassUnavailable},
		"a listing":       {xmlText(`<ListBucketResult/>`), ClassUnsupported},
		"a page":          {xmlText(`<!doctype html><html><body>hello`), ClassUnsupported},
		"nothing":         {xmlText(``), ClassUnsupported},
		"cut off":         {xmlText(`<LifecycleConfiguration><Rule><ID>`), ClassUnsupported},
		"too long":        {xmlText(`<LifecycleConfiguration>` + strings.Repeat(" ", maxAnswer) + `</LifecycleConfiguration>`), ClassUnsupported},
		"entities":        {xmlText(`<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><LifecycleConfiguration><Rule><ID>&b;</ID></Rule></LifecycleConfiguration>`), ClassUnsupported},
	} {
		t.Run(name, func(t *testing.T) {
			of := map[string]http.HandlerFunc{}
			for _, q := range questions {
				of[q] = tt.answer
			}
			f := inspect(t, of)
			for q, err := range map[string]error{"lifecycle": f.Lifecycle.Err, "lock": f.Lock.Err, "encryption": f.Encryption.Err, "versioning": f.Versioning.Err, "uploads": f.Uploads.Err} {
				if ClassOf(err) != tt.want {
					t.Errorf("%s: %v, want %q", q, err, tt.want)
				}
				if tt.want == ClassDenied && !strings.Contains(err.Error(), "allow s3:") {
					t.Errorf("%s: %v", q, err)
				}
			}
			if f.Reach != nil {
				t.Errorf("%v", f.Reach)
			}
		})
	}
}

// Answers that are put together at random are read or refused, and never
// hold what a terminal would act on.
func TestInspectReadsAnything(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"<Rule>", "</Rule>", "<ID>\x1b[31m</ID>", "<Status>Enabled</Status>", "<Filter>", "</Filter>", "<Expiration><Days>-1</Days></Expiration>",
		"<Expiration><Days>99999999999999999999</Days></Expiration>", "<Transition><Days>x</Days><StorageClass>\u202eGLACIER</StorageClass></Transition>", "<And>", "</And>", "&#0;", "<![CDATA[x]]>"}
	for range 2000 {
		var b strings.Builder
		b.WriteString("<LifecycleConfiguration>")
		for range random.IntN(12) {
			b.WriteString(words[random.IntN(len(words))])
		}
		b.WriteString("</LifecycleConfiguration>")
		var doc lifecycleDocument
		if parseDocument([]byte(b.String()), "LifecycleConfiguration", &doc) != nil {
			continue
		}
		for _, r := range doc.rules() {
			if strings.ContainsAny(fmt.Sprint(r), "\x1b\u202e") || r.ExpireDays < 0 || r.ExpireDays > maxDays {
				t.Fatalf("%s: %+v", b.String(), r)
			}
		}
	}
}

func TestInspectSaysHowFarTheClockIsOff(t *testing.T) {
	b := newBench(t, Limits{Attempts: 2}, documents(nil))
	b.ahead = time.Hour
	if f := b.Inspect(t.Context()).Bucket; f.Skew.Err != nil || (f.Skew.Value-time.Hour).Abs() > 2*time.Second {
		t.Errorf("%+v", f.Skew)
	}
}

// careless is a store that keeps what it is sent, whatever the headers say.
func careless(known bool) http.HandlerFunc {
	objects := map[string][]byte{}
	return func(w http.ResponseWriter, r *http.Request) {
		key, q := r.URL.Path, r.URL.Query()
		switch {
		case r.Header.Get("If-None-Match") != "" && !known:
			s3Error(http.StatusNotImplemented, "NotImplemented", "no conditions")(w, r)
		case r.Method == http.MethodPost && q.Has("uploads"):
			xmlText(`<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>`)(w, r)
		case r.Method == http.MethodPost && q.Has("uploadId"):
			objects[key] = nil
			xmlText(`<CompleteMultipartUploadResult><Bucket>bucket</Bucket><Key>k</Key><ETag>"e"</ETag></CompleteMultipartUploadResult>`)(w, r)
		case r.Method == http.MethodPost && q.Has("delete"):
			s3Error(http.StatusNotImplemented, "NotImplemented", "one by one")(w, r)
		case r.Method == http.MethodPut:
			objects[key], _ = io.ReadAll(r.Body)
			w.Header().Set("ETag", `"e"`)
		case r.Method == http.MethodDelete:
			delete(objects, key)
			w.WriteHeader(http.StatusNoContent)
		case q.Has("list-type"):
			xmlText(`<ListBucketResult/>`)(w, r)
		default:
			body, ok := objects[key]
			if !ok && strings.Contains(key, ProbeFolder) {
				s3Error(http.StatusNotFound, "NoSuchKey", "")(w, r)
				return
			}
			w.Header().Set("ETag", `"e"`)
			w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
			_, _ = w.Write(body)
		}
	}
}

// What a store only seems to do is found out before it matters.
//
//fault:store | A store ignores conditions and checksums, or knows no conditions | A stub that keeps whatever it is sent, tried by the doctor | Each is said, and nothing of the attempts is left
func TestTryAtACarelessStore(t *testing.T) {
	for known, want := range map[bool]map[Step]error{
		true:  {StepCreateOnly: ErrReplaced, StepPartsOnly: ErrReplaced, StepChecksum: ErrUnchecked, StepList: ErrNotListed},
		false: {StepCreateOnly: ErrUnsupported, StepParts: ErrUnsupported, StepChecksum: ErrUnsupported, StepPartsOnly: errNothingThere, StepList: ErrNotListed},
	} {
		b := newBench(t, Limits{Attempts: 2}, serial(careless(known)))
		tried := b.Try(t.Context())
		for _, one := range tried.Done {
			if !errors.Is(one.Err, want[one.Step]) {
				t.Errorf("known %t: %s: %v, want %v", known, one.Step, one.Err, want[one.Step])
			}
		}
		if len(tried.Left) > 0 {
			t.Errorf("left %q", tried.Left)
		}
	}
}

// serial answers one request at a time.
func serial(h http.HandlerFunc) http.HandlerFunc {
	turn := newTurn()
	return func(w http.ResponseWriter, r *http.Request) {
		_ = turn.take(context.Background())
		defer turn.give()
		h(w, r)
	}
}

// What can't be removed is named.
//
//fault:store | What the doctor puts can't be removed | A stub that refuses every deletion and every abort | Each key that is left is named
func TestTryNamesWhatIsLeft(t *testing.T) {
	store := careless(true)
	b := newBench(t, Limits{Attempts: 2}, serial(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete || r.Method == http.MethodPost && r.URL.Query().Has("delete") {
			s3Error(http.StatusForbidden, "AccessDenied", "no")(w, r)
			return
		}
		store(w, r)
	}))
	tried := b.Try(t.Context())
	last := tried.Done[len(tried.Done)-1]
	if last.Step != StepDelete || ClassOf(last.Err) != ClassDenied || len(tried.Left) != 4 || !strings.HasPrefix(tried.Left[0], ProbeFolder) || !strings.HasSuffix(tried.Left[3], "(unfinished upload)") {
		t.Errorf("%+v %q", last, tried.Left)
	}
}

// A store that never answers costs no more than the caller's time.
func TestTryEndsWithItsContext(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	b := newBench(t, Limits{Attempts: 2}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete || r.Method == http.MethodPost {
			s3Error(http.StatusInternalServerError, "InternalError", "")(w, r)
			return
		}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	began := time.Now()
	tried := b.Try(ctx)
	if took := time.Since(began); took > CleanUpTime+5*time.Second {
		t.Errorf("took %s", took)
	}
	if len(tried.Done) != 10 || !tried.Done[3].IsUntried() || len(tried.Left) != 1 {
		t.Errorf("%+v", tried)
	}
}
