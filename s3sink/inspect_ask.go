package s3sink

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/signer"
)

// What an Inspector asks for, as errors name it.
const (
	opVersioning = "read versioning"
	opLifecycle  = "read lifecycle rules"
	opLock       = "read object lock"
	opEncryption = "read encryption"
	opUploads    = "list unfinished uploads"
	opLocation   = "read location"
)

// reads says whether an operation is one of those.
func reads(op string) bool {
	return strings.HasPrefix(op, "read ") || op == opUploads
}

// maxAnswer is more than any answer about a bucket is long, in bytes. A bucket
// may have 1000 lifecycle rules.
const maxAnswer = 4 << 20

const emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

var (
	errLongAnswer = errors.New("the answer is longer than any could be")
	errOddAnswer  = errors.New("the answer is not what was asked for")
)

// ask reads a document about the bucket into one of root's name; ok is false
// where the store says that there is none. The S3 library has calls for most of
// them, which read answers of any length, and only one transition of a rule.
func (b *bucket) ask(ctx context.Context, op string, query url.Values, root string, into any) (ok bool, err error) {
	r := request{op: op}
	var content []byte
	err = b.do(ctx, r, func(ctx context.Context, _ int) error {
		var err error
		content, err = b.document(ctx, query)
		return err
	})
	switch {
	case isNotSet(err):
		return false, nil
	case isUnknown(err):
		a, _ := errors.AsType[*answer](err)
		return false, b.fault(r, ClassUnsupported, "", a)
	case err != nil:
		return false, err
	}
	if err := parseDocument(content, root, into); err != nil {
		return false, b.fault(r, ClassUnsupported, "", err)
	}
	return true, nil
}

// document makes one signed request for a document about the bucket.
func (b *bucket) document(ctx context.Context, query url.Values) ([]byte, error) {
	c, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := b.creds.GetWithContext(nil)
	if err != nil {
		return nil, err
	}
	at, err := b.address(ctx, c, query)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("X-Amz-Content-Sha256", emptySHA256)
	req = signer.SignV4(*req, keys.AccessKeyID, keys.SecretAccessKey, keys.SessionToken, firstOf(b.regionInUse(), defaultRegion))
	res, err := b.http.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case res.StatusCode != http.StatusOK:
		return nil, errorDocument(res.StatusCode, content)
	case len(content) > maxAnswer:
		return nil, b.fault(request{op: "check"}, ClassUnsupported, "", errLongAnswer)
	}
	return content, nil
}

// address is where the library would send a request about the bucket: which
// host that is depends on the region and on the style. It tells by signing
// an address, whose signature is left away.
func (b *bucket) address(ctx context.Context, c *minio.Core, query url.Values) (string, error) {
	at, err := c.Presign(ctx, http.MethodGet, b.name, "", time.Minute, nil)
	if err != nil {
		return "", err
	}
	at.RawQuery = query.Encode()
	return at.String(), nil
}

// errorDocument is the error of an answer other than 200.
func errorDocument(status int, content []byte) error {
	e := minio.ErrorResponse{StatusCode: status}
	var doc struct {
		XMLName xml.Name `xml:"Error"`
		Code    string
		Message string
		Region  string
	}
	if xml.Unmarshal(content, &doc) == nil {
		e.Code, e.Message, e.Region = doc.Code, doc.Message, doc.Region
	}
	return e
}

// isNotSet says whether a store has answered that there is no such document.
func isNotSet(err error) bool {
	a, ok := errors.AsType[*answer](err)
	return ok && a.status == http.StatusNotFound && a.code != "" && a.code != "NoSuchBucket"
}

// isUnknown says whether a store has answered that it does not know the question.
func isUnknown(err error) bool {
	a, ok := errors.AsType[*answer](err)
	switch {
	case !ok || a.code == "NoSuchBucket":
		return false
	case a.status == http.StatusNotFound, a.status == http.StatusMethodNotAllowed, a.status == http.StatusNotImplemented:
		return true
	}
	return a.code == "MethodNotAllowed" || a.code == "NotImplemented"
}

// parseDocument reads XML whose outermost element has a name: a store that
// passes over a question that it does not know answers with a listing.
func parseDocument(content []byte, root string, into any) error {
	d := xml.NewDecoder(strings.NewReader(string(content)))
	for {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("%w: it is no XML", errOddAnswer)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		if start.Name.Local != root {
			return fmt.Errorf("%w: want %s", errOddAnswer, root)
		}
		if err := d.DecodeElement(into, &start); err != nil {
			return fmt.Errorf("%w: %s can't be read", errOddAnswer, root)
		}
		return nil
	}
}
