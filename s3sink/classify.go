package s3sink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
)

// codeClasses says what S3's error codes mean; what is not here goes by its
// HTTP status.
var codeClasses = map[string]Class{
	"PreconditionFailed":                 ClassExists,
	"ConditionalRequestConflict":         ClassConflict,
	"OperationAborted":                   ClassConflict,
	"NoSuchKey":                          ClassMissing,
	"NoSuchUpload":                       ClassOther,
	"NoSuchBucket":                       ClassNoBucket,
	"AccessDenied":                       ClassDenied,
	"AllAccessDisabled":                  ClassDenied,
	"AccountProblem":                     ClassDenied,
	"ObjectLocked":                       ClassLocked,
	"FileImmutable":                      ClassLocked,
	"ObjectUnderActiveHold":              ClassLocked,
	"RetentionPolicyNotMet":              ClassLocked,
	"SlowDown":                           ClassThrottled,
	"SlowDownRead":                       ClassThrottled,
	"SlowDownWrite":                      ClassThrottled,
	"Throttling":                         ClassThrottled,
	"ThrottlingException":                ClassThrottled,
	"RequestLimitExceeded":               ClassThrottled,
	"RequestThrottled":                   ClassThrottled,
	"TooManyRequests":                    ClassThrottled,
	"InternalError":                      ClassUnavailable,
	"ServiceUnavailable":                 ClassUnavailable,
	"RequestTimeout":                     ClassTimeout,
	"IncompleteBody":                     ClassUnavailable,
	"RequestTimeTooSkewed":               ClassClockSkew,
	"PermanentRedirect":                  ClassWrongRegion,
	"TemporaryRedirect":                  ClassWrongRegion,
	"AuthorizationHeaderMalformed":       ClassWrongRegion,
	"IllegalLocationConstraintException": ClassWrongRegion,
	"InvalidRegion":                      ClassWrongRegion,
	"InvalidAccessKeyId":                 ClassCredentials,
	"SignatureDoesNotMatch":              ClassCredentials,
	"ExpiredToken":                       ClassCredentials,
	"ExpiredTokenException":              ClassCredentials,
	"TokenRefreshRequired":               ClassCredentials,
	"InvalidToken":                       ClassCredentials,
	"InvalidSecurity":                    ClassCredentials,
	"NotImplemented":                     ClassUnsupported,
	"QuotaExceeded":                      ClassFull,
	"InsufficientStorage":                ClassFull,
	"XMinioStorageFull":                  ClassFull,
	"XMinioAdminBucketQuotaExceeded":     ClassFull,
	"ServiceQuotaExceededException":      ClassFull,
	"InvalidObjectState":                 ClassOther,
	"InvalidRequest":                     ClassInvalid,
	"BadDigest":                          ClassInvalid,
	"InvalidDigest":                      ClassInvalid,
	"XAmzContentSHA256Mismatch":          ClassInvalid,
	"XAmzContentChecksumMismatch":        ClassInvalid,
	"KMS.DisabledException":              ClassDenied,
	"KMS.NotFoundException":              ClassDenied,
	"KMS.KMSInvalidStateException":       ClassDenied,
	"KMS.DisabledKeyException":           ClassDenied,
	"KMS.InvalidKeyUsageException":       ClassDenied,
	"XAdminUserNotFound":                 ClassCredentials,
	"XMinioServerNotInitialized":         ClassUnavailable,
}

var statusClasses = map[int]Class{
	http.StatusMovedPermanently:    ClassWrongRegion,
	http.StatusTemporaryRedirect:   ClassWrongRegion,
	http.StatusPermanentRedirect:   ClassWrongRegion,
	http.StatusUnauthorized:        ClassCredentials,
	http.StatusForbidden:           ClassDenied,
	http.StatusRequestTimeout:      ClassTimeout,
	http.StatusConflict:            ClassConflict,
	http.StatusPreconditionFailed:  ClassExists,
	http.StatusTooManyRequests:     ClassThrottled,
	http.StatusNotImplemented:      ClassUnsupported,
	http.StatusInsufficientStorage: ClassFull,
}

// maxSkew is how far a clock may be off before S3 refuses its signatures.
const maxSkew = 15 * time.Minute

// fault makes the error of a request against this bucket.
func (b *bucket) fault(r request, class Class, hint string, err error) *Error {
	e := &Error{Op: r.op, Bucket: "s3://" + b.name, Class: class, Hint: hint, Err: err}
	if r.key != "" {
		e.Key = b.path(r.key)
	}
	return e
}

// classify turns what came of an attempt into an error. ctx is the caller's
// context, not the attempt's.
func (b *bucket) classify(ctx context.Context, r request, err error, x *exchange) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if ended := ctx.Err(); ended != nil {
		class := ClassOther
		if errors.Is(ended, context.DeadlineExceeded) {
			class = ClassTimeout
		}
		return b.fault(r, class, "", ended)
	}
	if body, ok := errors.AsType[bodyError](err); ok {
		return b.fault(r, ClassInvalid, "", fmt.Errorf("read body: %w", body.error))
	}
	if cred, ok := errors.AsType[*credentialsError](err); ok {
		return b.fault(r, ClassCredentials, cred.hint, cred)
	}
	if res, ok := errors.AsType[minio.ErrorResponse](err); ok && res.StatusCode+len(res.Code) > 0 {
		return b.classifyAnswer(r, res, x)
	}
	return b.classifyNetwork(r, err)
}

func (b *bucket) classifyAnswer(r request, res minio.ErrorResponse, x *exchange) *Error {
	x.mu.Lock()
	defer x.mu.Unlock()
	a := &answer{status: res.StatusCode, code: res.Code}
	if a.status == 0 {
		a.status = x.status
	}
	if codePattern.MatchString(a.code) {
		a.message = redact(b.hide(res.Message))
	} else {
		a.code = "" // the answer was not S3's, but a proxy's, say
	}
	class := classOfAnswer(r, a)
	switch {
	case r.op == "delete" && b.saysLocked(r, class, res.Message):
		class = ClassLocked
	case class == ClassWrongRegion && a.code == "AuthorizationHeaderMalformed" && res.Region == "":
		class = ClassCredentials
	case class == ClassInvalid && x.region != "" && x.region != b.regionInUse():
		class = ClassWrongRegion // HEAD says only 400
	case a.status == http.StatusServiceUnavailable && a.code == "" && isHead(r.op):
		class = ClassThrottled // most likely
	case a.status == http.StatusBadRequest && a.code == "" && isHead(r.op):
		class = ClassCredentials // an expired token, most likely
	}
	return b.fault(r, class, b.hint(r, class, a, res.Region, x), a)
}

// isHead says whether an operation is a HEAD, the answers to which have no words.
func isHead(op string) bool { return op == "stat" || op == "check" }

func classOfAnswer(r request, a *answer) Class {
	class, known := codeClasses[a.code]
	if !known {
		class, known = statusClasses[a.status]
	}
	switch {
	case !known && a.status >= 500:
		return ClassUnavailable
	case !known && a.status >= 400:
		return ClassInvalid
	case !known:
		return ClassOther
	case class == ClassMissing && (r.key == "" || r.op == "put"):
		return ClassNoBucket
	}
	return class
}

// lockPattern is in the messages of stores that refuse to delete what is
// locked; their codes are AccessDenied or InvalidRequest.
var lockPattern = regexp.MustCompile(`(?i)object.?lock|\bworm\b|retention|legal.?hold|immutab`)

// saysLocked tells a lock from a missing permission. Names that happen to hold
// such a word don't count.
func (b *bucket) saysLocked(r request, class Class, message string) bool {
	switch class {
	case ClassDenied, ClassInvalid, ClassConflict:
		for _, name := range []string{b.path(r.key), b.name} {
			if name != "" {
				message = strings.ReplaceAll(message, name, "")
			}
		}
		return lockPattern.MatchString(message) && !strings.Contains(message, "not authorized to perform")
	}
	return false
}

// hint says what to do about an answer.
func (b *bucket) hint(r request, class Class, a *answer, region string, x *exchange) string {
	switch class {
	case ClassNoBucket:
		return "create the bucket or mend remote-path"
	case ClassWrongRegion:
		return regionHint(firstOf(region, x.region))
	case ClassClockSkew:
		return fmt.Sprintf("this host's clock is off by %s against the store's; set it right (NTP)", x.skew)
	case ClassCredentials:
		return "check the keys of " + b.source
	case ClassDenied:
		return deniedHint(r.op, a, b.cfg.SSE == SSEKMS) + dateHint(x)
	case ClassFull:
		return "make room, or raise the quota"
	case ClassLocked:
		return "its retention period, or its legal hold, has to end first"
	case ClassUnsupported:
		if r.op != "delete" && !reads(r.op) {
			return "the store has no conditional puts"
		}
	}
	if strings.Contains(a.code, "Digest") || strings.Contains(a.code, "Mismatch") {
		return "the body changed after it was hashed; look for a bad disk or bad memory"
	}
	return ""
}

func regionHint(region string) string {
	if region == "" || !regionName.MatchString(region) {
		return "set s3.region to the bucket's region"
	}
	return "the bucket is in " + region + ": set s3.region to it"
}

// permissions are what each operation needs on AWS.
var permissions = map[string]string{
	"put":    "s3:PutObject (and s3:AbortMultipartUpload) on the prefix",
	"claim":  "s3:PutObject and s3:GetObject on the prefix",
	"stat":   "s3:GetObject on the prefix, and s3:ListBucket on the bucket to tell what is missing",
	"get":    "s3:GetObject on the prefix",
	"list":   "s3:ListBucket on the bucket",
	"check":  "s3:ListBucket on the bucket",
	"abort":  "s3:AbortMultipartUpload on the prefix",
	"delete": "s3:DeleteObject on the prefix",

	opVersioning: "s3:GetBucketVersioning on the bucket",
	opLifecycle:  "s3:GetLifecycleConfiguration on the bucket",
	opLock:       "s3:GetBucketObjectLockConfiguration on the bucket",
	opEncryption: "s3:GetEncryptionConfiguration on the bucket",
	opUploads:    "s3:ListBucketMultipartUploads on the bucket",
	opLocation:   "s3:GetBucketLocation on the bucket",
}

func deniedHint(op string, a *answer, kms bool) string {
	hint := "allow " + permissions[op]
	if kms || strings.Contains(strings.ToLower(a.code+a.message), "kms") {
		hint += ", and kms:GenerateDataKey and kms:Decrypt on the key"
	}
	return hint
}

// dateHint names the other reason that a HEAD may have been refused for. The
// answer does not tell, and the Date may be a proxy's.
func dateHint(x *exchange) string {
	if !x.oddlyDated() && x.trial == nil {
		return ""
	}
	return fmt.Sprintf("; or this host's clock is wrong: it is off by %s against the Date of the answer", x.skew)
}

func (b *bucket) classifyNetwork(r request, err error) *Error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if hint := certificateHint(err); hint != "" {
		return b.fault(r, ClassInvalid, hint, err)
	}
	class, hint := ClassUnavailable, ""
	var timeout net.Error
	switch dns, isDNS := errors.AsType[*net.DNSError](err); {
	case errors.Is(err, errNoProgress), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		class = ClassTimeout
	case isDNS && dns.IsNotFound:
		hint = "check s3.endpoint and s3.region; with virtual-host style the bucket's name is a part of the host's"
	case strings.Contains(err.Error(), "Connection closed by foreign host"):
		err = errors.New("the store closed the connection before it answered")
	case strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		class, hint = ClassInvalid, "the store does not speak TLS there; s3.endpoint may have to begin with http://"
	}
	return b.fault(r, class, hint, &transportError{text: redact(err.Error()), err: err})
}

// transportError prints what is safe of an error of the network.
type transportError struct {
	text string
	err  error
}

func (e *transportError) Error() string { return e.text }
func (e *transportError) Unwrap() error { return e.err }

// isExpired says whether other credentials may do better.
func isExpired(e *Error) bool {
	a, ok := errors.AsType[*answer](e.Err)
	return ok && (a.code == "" || strings.HasPrefix(a.code, "ExpiredToken") || a.code == "TokenRefreshRequired")
}

func firstOf(values ...string) string {
	for _, v := range values {
		if v != "" {
			return v
		}
	}
	return ""
}
