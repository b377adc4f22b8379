package s3sink

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

var slowDown = s3Error(503, "SlowDown", "Please reduce your request rate.")

//fault:store | The store answers 503 SlowDown to a put four times | A stub | The put is repeated with growing random waits and told as throttling
func TestThrottledPutIsRepeated(t *testing.T) {
	b := newBench(t, Limits{}, slowDown, slowDown, slowDown, slowDown, ok)
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if e := b.retries(); len(e) != 4 || e[0].Class != ClassThrottled || e[3].Attempt != 4 || e[0].Key != "k" {
		t.Errorf("events: %+v", e)
	}
	ceiling := 200 * time.Millisecond
	for i, wait := range b.waits {
		if wait > ceiling {
			t.Errorf("wait %d is %s, want at most %s", i, wait, ceiling)
		}
		ceiling *= 2
	}
}

//fault:store | The store answers 500 for long | A stub | The put is given up after the attempts that are allowed
func TestAttemptsEnd(t *testing.T) {
	b := newBench(t, Limits{Attempts: 3}, s3Error(500, "InternalError", ""))
	_, err := b.Put(t.Context(), upload("k", []byte("body")))
	if ClassOf(err) != ClassUnavailable || len(b.stub.requests()) != 3 {
		t.Errorf("%v after %d requests", err, len(b.stub.requests()))
	}
}

//fault:store | 503 with Retry-After in seconds, for an hour, and as a date | A stub that answers the three ways | The put waits as long as was said, and never more than 30 s
func TestRetryAfter(t *testing.T) {
	var b *bench
	b = newBench(t, Limits{Patience: time.Minute}, s3Error(503, "SlowDown", "", "Retry-After", "7"),
		s3Error(503, "SlowDown", "", "Retry-After", "3600"), func(w http.ResponseWriter, r *http.Request) {
			s3Error(503, "SlowDown", "", "Retry-After", b.now().Add(20*time.Second).UTC().Format(http.TimeFormat))(w, r)
		}, ok)
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil {
		t.Fatal(err)
	}
	if b.waits[0] != 7*time.Second || b.waits[1] != retryAfterCap || b.waits[2] < 15*time.Second {
		t.Errorf("waits: %v", b.waits)
	}
}

//fault:time | The program is told to stop while it waits to ask the store again | The context ends during the wait | The wait ends at once
func TestWaitEndsWithContext(t *testing.T) {
	b := newBench(t, Limits{}, slowDown)
	ctx, cancel := context.WithCancel(t.Context())
	b.opt.Sleep = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return sleep(ctx, time.Hour)
	}
	_, err := b.Put(ctx, upload("k", []byte("body")))
	if !errors.Is(err, context.Canceled) || ClassOf(err) != ClassThrottled {
		t.Errorf("got %v", err)
	}
}

//fault:store | 409 ConditionalRequestConflict, then 200 | A stub | The put is repeated and done
func TestConflictIsRepeated(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(409, "ConditionalRequestConflict", ""), ok)
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); err != nil || len(b.stub.requests()) != 2 {
		t.Errorf("%v after %d requests", err, len(b.stub.requests()))
	}
}

//fault:store | The store stores an object and answers 503 | A stub that answers 412 to the second attempt | The put says that something is there, and the caller compares
func TestStoredButAnswered503(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(503, "ServiceUnavailable", ""), s3Error(412, "PreconditionFailed", ""))
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); !errors.Is(err, ErrExists) {
		t.Errorf("got %v", err)
	}
}

//fault:store | The store answers 501 to conditional puts | A stub | Nothing is put but at keys of one's own, and those are looked at first
func TestConditionNotSupported(t *testing.T) {
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("If-None-Match") != "":
			s3Error(501, "NotImplemented", "A header you provided implies functionality that is not implemented")(w, r)
		case r.Method == http.MethodHead && strings.HasSuffix(r.URL.Path, "/taken"):
			ok(w, r)
		case r.Method == http.MethodHead && r.URL.Path == "/bucket/":
			ok(w, r)
		case r.Method == http.MethodPut:
			ok(w, r)
		default:
			s3Error(404, "NoSuchKey", "")(w, r)
		}
	})
	if _, err := b.Put(t.Context(), upload("k", []byte("body"))); !errors.Is(err, ErrUnsupported) {
		t.Errorf("put: %v", err)
	}
	if got, err := b.CreateOnly(t.Context()); got || err != nil {
		t.Errorf("create-only: %v, %v", got, err)
	}
	free, taken := upload("free", []byte("body")), upload("taken", []byte("body"))
	free.Unconditional, taken.Unconditional = true, true
	if _, err := b.Put(t.Context(), free); err != nil {
		t.Errorf("unconditional put: %v", err)
	}
	if _, err := b.Put(t.Context(), taken); !errors.Is(err, ErrExists) {
		t.Errorf("unconditional put of what is there: %v", err)
	}
}

// TestConditionIgnored: a store that takes the condition and does not obey it
// is found out, and what it replaces is replaced by the same bytes.
//
//fault:store | The store takes the condition of a put and does not obey it | A stub that stores every put | Found out by putting the owner marker's own bytes again
func TestConditionIgnored(t *testing.T) {
	var content [][]byte
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			s3Error(404, "NoSuchKey", "")(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		content = append(content, body)
		ok(w, r)
	})
	for range 2 {
		if got, err := b.CreateOnly(t.Context()); got || err != nil {
			t.Errorf("create-only: %v, %v", got, err)
		}
	}
	if len(content) != 2 || !bytes.Equal(content[0], content[1]) {
		t.Errorf("put were %q", content)
	}
}

// TestNoPermissionToList: what is missing looks forbidden then, and must not
// stop the first put.
//
//fault:store | A HEAD of what is missing is answered 403 | A stub as AWS answers without s3:ListBucket | The first put is tried, and 403 is never taken for missing
func TestNoPermissionToList(t *testing.T) {
	var stored bool
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPut:
			s3Error(403, "AccessDenied", "Access Denied")(w, r)
		case stored:
			s3Error(412, "PreconditionFailed", "")(w, r)
		default:
			stored = true
			ok(w, r)
		}
	})
	if err := b.CheckOwner(t.Context()); err != nil {
		t.Errorf("check: %v", err)
	}
	if got, err := b.CreateOnly(t.Context()); !got || err != nil {
		t.Errorf("create-only: %v, %v", got, err)
	}
	if _, err := b.Stat(t.Context(), "k"); !errors.Is(err, ErrUnknown) || errors.Is(err, ErrMissing) {
		t.Errorf("stat: %v", err)
	}
}

//fault:store | The store refuses a put in a dozen ways | A stub for each | One line that names bucket, key, cause and what to do
func TestAnswers(t *testing.T) {
	longAgo := time.Now().Add(-20 * time.Minute).UTC().Format(http.TimeFormat)
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		class  Class
		says   []string
	}{
		"no bucket":       {s3Error(404, "NoSuchBucket", "The specified bucket does not exist"), ClassNoBucket, []string{"s3://bucket", "create the bucket or mend remote-path"}},
		"wrong region":    {s3Error(301, "PermanentRedirect", "use the endpoint", "X-Amz-Bucket-Region", "eu-west-1"), ClassWrongRegion, []string{"eu-west-1", "s3.region"}},
		"bodyless 400":    {s3Error(400, "", "", "X-Amz-Bucket-Region", "eu-west-1"), ClassWrongRegion, []string{"eu-west-1"}},
		"malformed":       {s3Error(400, "AuthorizationHeaderMalformed", "the key is no key"), ClassCredentials, []string{"s3.access-key-id"}},
		"denied":          {s3Error(403, "AccessDenied", "User: arn:aws:iam::1:user/x is not authorized to perform: s3:PutObject"), ClassDenied, []string{"root/k", "arn:aws:iam::1:user/x", "allow s3:PutObject"}},
		"key denied":      {s3Error(403, "AccessDenied", "not allowed to use kms key"), ClassDenied, []string{"kms:GenerateDataKey"}},
		"clock":           {s3Error(403, "RequestTimeTooSkewed", "too large", "Date", longAgo), ClassClockSkew, []string{"20m", "NTP"}},
		"wrong signature": {s3Error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match"), ClassCredentials, []string{"s3.secret-access-key"}},
		"full":            {s3Error(507, "XMinioStorageFull", "disk"), ClassFull, []string{"make room"}},
		"bad digest":      {s3Error(400, "XAmzContentSHA256Mismatch", "no"), ClassInvalid, []string{"bad disk"}},
		"proxy page":      {page(403, "<html>Authorization: AWS4-HMAC-SHA256 Credential=AKID</html>"), ClassDenied, []string{"HTTP 403"}},
		"odd":             {s3Error(418, "Teapot", "short"), ClassInvalid, []string{"Teapot", "418"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, Limits{}, c.answer)
			_, err := b.Put(t.Context(), upload("k", []byte("body")))
			if ClassOf(err) != c.class {
				t.Errorf("class %q, want %q: %v", ClassOf(err), c.class, err)
			}
			for _, want := range append(c.says, "put s3://bucket") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
			if strings.ContainsAny(err.Error(), "\n") || strings.Contains(err.Error(), "AKID") {
				t.Errorf("%q is no error to show", err)
			}
			want := 1
			if c.class == ClassClockSkew {
				want = 3 // once more by the store's clock, and by this host's again
			}
			if n := len(b.stub.requests()); n != want {
				t.Errorf("asked %d times, want %d", n, want)
			}
		})
	}
}

func page(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

//fault:store | The store's answer repeats the secret, a token and a signature | A stub | None of them is in the error, nor in what it wraps
func TestErrorsHoldNoSecrets(t *testing.T) {
	token := strings.Repeat("FwoGZXIvYXdzEXAMPLE", 12)
	b := newBench(t, Limits{Attempts: 1}, s3Error(403, "AccessDenied", "secret verysecret token "+token+" signature "+strings.Repeat("0a", 32)))
	_, err := b.Put(t.Context(), upload("k", []byte("body")))
	for _, secret := range []string{"verysecret", token, "0a0a0a"} {
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%q holds %q", err, secret)
		}
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(e.Error(), "verysecret") {
			t.Errorf("%q holds a secret", e)
		}
	}
}

//fault:store | A HEAD is answered 404 because the bucket is gone | A stub that answers so to both | The bucket is named as missing, not the object
func TestMissingBucketIsNoMissingObject(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(404, "", ""))
	_, err := b.Stat(t.Context(), "k")
	if errors.Is(err, ErrMissing) || ClassOf(err) != ClassNoBucket {
		t.Errorf("got %v", err)
	}
}

//fault:network | The connection is reset in the middle of a body | A stub that reads a little and closes | The put is repeated, and then an outage
func TestConnectionReset(t *testing.T) {
	reset := func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.CopyN(io.Discard, r.Body, 1000)
		panic(http.ErrAbortHandler)
	}
	b := newBench(t, Limits{}, reset, reset, ok)
	if _, err := b.Put(t.Context(), upload("k", make([]byte, 4<<20))); err != nil {
		t.Error(err)
	}
	b = newBench(t, Limits{Attempts: 2}, reset)
	if _, err := b.Put(t.Context(), upload("k", make([]byte, 4<<20))); ClassOf(err) != ClassUnavailable {
		t.Errorf("got %v", err)
	}
}

// hang never reads and never answers, until the test ends.
func hang(t *testing.T) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-t.Context().Done():
		}
	}
}

//fault:network | An upload stands still, at once or in the middle | A stub that stops reading | The attempt is cut off after the time without progress, and repeated
func TestUploadThatStandsStill(t *testing.T) {
	for name, first := range map[string]int64{"at once": 0, "in the middle": 1 << 20} {
		b := newBench(t, Limits{Attempts: 2, NoProgress: 250 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.CopyN(io.Discard, r.Body, first)
			hang(t)(w, r)
		})
		b.cfg.MultipartThreshold = MaxPartSize
		_, err := b.Put(t.Context(), upload("k", make([]byte, 64<<20)))
		if ClassOf(err) != ClassTimeout || !strings.Contains(err.Error(), "no byte moved for 250ms") {
			t.Errorf("%s: got %v", name, err)
		}
		if n := len(b.stub.requests()); n != 2 {
			t.Errorf("%s: asked %d times", name, n)
		}
	}
}

//fault:network | The store takes a request and does not answer | A stub that hangs | Every operation ends by its deadline
func TestAnswerThatDoesNotCome(t *testing.T) {
	b := newBench(t, Limits{Attempts: 1, Request: 50 * time.Millisecond}, hang(t))
	_, err := b.Put(t.Context(), upload("k", []byte("small")))
	if ClassOf(err) != ClassTimeout {
		t.Errorf("put: %v", err)
	}
	_, err = b.Stat(t.Context(), "k")
	if ClassOf(err) != ClassTimeout {
		t.Errorf("stat: %v", err)
	}
	_, err = b.Open(t.Context(), "k")
	if ClassOf(err) != ClassTimeout {
		t.Errorf("open: %v", err)
	}
}

type brokenBody struct{}

func (brokenBody) ReadAt([]byte, int64) (int, error) { return 0, errors.New("disk is broken") }

//fault:store | The disk of the unfinished file is broken | A body whose reads fail, single and in parts | The put fails at once with the cause and is not repeated
func TestBodyThatCannotBeRead(t *testing.T) {
	for _, size := range []int64{1000, 10 << 20} {
		b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Has("uploads") {
				_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><UploadId>id</UploadId></InitiateMultipartUploadResult>`)
				return
			}
			if r.Method == http.MethodDelete {
				w.WriteHeader(http.StatusNoContent)
			}
		})
		b.trustParts()
		u := upload("k", nil)
		u.Body, u.Size = brokenBody{}, size
		_, err := b.Put(t.Context(), u)
		if ClassOf(err) != ClassInvalid || !strings.Contains(err.Error(), "disk is broken") {
			t.Errorf("%d bytes: %v", size, err)
		}
		if len(b.events) != 0 {
			t.Errorf("%d bytes: events %+v", size, b.events)
		}
	}
}

// TestCompletedButAnswered503: the upload that was to be completed is gone when
// it is asked for again, because the first attempt did it.
//
//fault:store | A multipart upload is completed and answered 503 | A stub that then knows no such upload | The put says that something is there, and the caller compares
func TestCompletedButAnswered503(t *testing.T) {
	var completed int
	b := newBench(t, Limits{}, func(w http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case q.Has("uploads"):
			_, _ = io.WriteString(w, `<InitiateMultipartUploadResult><Bucket>bucket</Bucket><UploadId>id</UploadId></InitiateMultipartUploadResult>`)
		case q.Has("partNumber"):
			ok(w, r)
		case r.Method == http.MethodPost && completed == 0:
			completed++
			s3Error(503, "ServiceUnavailable", "")(w, r)
		default:
			s3Error(404, "NoSuchUpload", "")(w, r)
		}
	})
	b.trustParts()
	if _, err := b.Put(t.Context(), upload("k", make([]byte, 7<<20))); !errors.Is(err, ErrExists) {
		t.Errorf("put: %v", err)
	}
}
