package s3sink

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// steady is how much a clock may seem off before its offset is worth changing.
const steady = time.Minute

// resigner signs requests again for the store's clock, once the store has said
// that this host's is wrong. The S3 library signs by the host's clock alone, so
// this happens behind it; the bodies' hashes are in headers and stay.
//
// A Date alone proves nothing, as it may be that of a proxy: the offset that
// all requests are signed with changes only where the store has refused a
// request for its clock, by that code.
type resigner struct {
	now    func() time.Time
	creds  *credentials.Credentials
	offset atomic.Int64 // the store's clock minus this host's, in ns; 0 = sign nothing again
}

// correct takes that the store has refused a request for its clock, and says
// whether the next attempt would be signed with another offset. Only the first
// of the requests that were signed alike changes it, and the others follow. An
// offset that is refused in turn was measured against a clock that is not the
// store's, or this host's has been set since: it is dropped and not replaced,
// so that what comes next begins with the host's own clock.
func (s *resigner) correct(x *exchange) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	var offset time.Duration
	if x.offset == 0 && x.skew.Abs() >= steady {
		offset = -x.skew
	}
	s.offset.CompareAndSwap(int64(x.offset), int64(offset))
	return s.offset.Load() != int64(x.offset)
}

// sign returns the request as it should be sent, and the offset that it is
// signed with: itself where there is none, or where its signature is none that
// could be made again.
func (s *resigner) sign(req *http.Request, offset time.Duration) (*http.Request, time.Duration) {
	if offset == 0 {
		return req, 0
	}
	old, ok := parseAuthorization(req.Header.Get("Authorization"))
	if !ok {
		return req, 0
	}
	keys, err := s.creds.GetWithContext(nil)
	if err != nil || keys.AccessKeyID != old.key {
		return req, 0 // renewed in between: the answer will say so
	}
	req = req.Clone(req.Context())
	now := s.now().Add(offset).UTC()
	req.Header.Set("X-Amz-Date", now.Format("20060102T150405Z"))
	old.scope[0] = now.Format("20060102")
	req.Header.Set("Authorization", old.authorization(req, keys.SecretAccessKey))
	return req, offset
}

// authorization is a parsed header of AWS Signature Version 4.
type authorization struct {
	key    string
	scope  []string // date, region, service, aws4_request
	signed string   // names of headers, with ';' between them
}

const algorithm = "AWS4-HMAC-SHA256"

func parseAuthorization(header string) (a authorization, ok bool) {
	rest, ok := strings.CutPrefix(header, algorithm+" ")
	if !ok {
		return a, false
	}
	for part := range strings.SplitSeq(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		switch name {
		case "Credential":
			at := strings.Split(value, "/")
			if len(at) < 5 {
				return a, false
			}
			a.scope = at[len(at)-4:]
			a.key = strings.Join(at[:len(at)-4], "/")
		case "SignedHeaders":
			a.signed = value
		}
	}
	return a, a.key != "" && a.signed != ""
}

// authorization makes the header for a request whose other headers are final.
func (a authorization) authorization(req *http.Request, secret string) string {
	canonical := strings.Join([]string{
		req.Method, s3utils.EncodePath(req.URL.Path), strings.ReplaceAll(req.URL.Query().Encode(), "+", "%20"),
		a.headers(req), a.signed, req.Header.Get("X-Amz-Content-Sha256"),
	}, "\n")
	sum := sha256.Sum256([]byte(canonical))
	scope := strings.Join(a.scope, "/")
	key := []byte("AWS4" + secret)
	for _, step := range append(slices.Clone(a.scope), strings.Join([]string{
		algorithm, req.Header.Get("X-Amz-Date"), scope, hex.EncodeToString(sum[:]),
	}, "\n")) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(step))
		key = mac.Sum(nil)
	}
	return algorithm + " Credential=" + a.key + "/" + scope + ", SignedHeaders=" + a.signed + ", Signature=" + hex.EncodeToString(key)
}

// headers are those that are signed, each on a line.
func (a authorization) headers(req *http.Request) string {
	var lines strings.Builder
	for name := range strings.SplitSeq(a.signed, ";") {
		values := req.Header.Values(name)
		if name == "host" {
			values = []string{firstOf(req.Host, req.URL.Host)}
		}
		lines.WriteString(name + ":")
		for i, value := range values {
			if i > 0 {
				lines.WriteByte(',')
			}
			lines.WriteString(strings.Join(strings.Fields(value), " "))
		}
		lines.WriteByte('\n')
	}
	return lines.String()
}
