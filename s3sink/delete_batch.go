package s3sink

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"slices"

	"github.com/minio/minio-go/v7"
)

// errBadReply says that a reply which began as a success is none that S3 sends.
var errBadReply = errors.New("the reply is empty or cut, or did not come from S3")

// removal is a batch on its way.
type removal struct {
	left     []string          // not known to be deleted, and worth asking for again
	errs     map[string]*Error // what the store said last of each that is left; nil if it refused them all
	unspoken []string          // neither deleted nor refused by a reply
}

// deleteBatch deletes several objects by one request, which it repeats for
// those that the store could not delete just then. It returns the keys that it
// has no answer for and that have to be deleted singly. An error means that
// the store took no batch, and the keys that are left have no answer.
func (b *bucket) deleteBatch(ctx context.Context, keys []string, a *answers) (singly []string, err error) {
	m := &removal{left: keys}
	err = b.do(ctx, request{op: "delete"}, func(ctx context.Context, _ int) error { return b.askBatch(ctx, m, a) })
	switch {
	case err == nil:
		return m.unspoken, nil
	case ctx.Err() != nil:
		return nil, err
	case m.errs != nil:
		for key, e := range m.errs {
			a.set(key, e)
		}
		return m.unspoken, nil
	case hasNoBatch(err):
		b.noBatch.Store(true)
		return slices.Concat(m.unspoken, m.left), nil
	case ClassOf(err) == ClassLocked: // some stores refuse all for the sake of one
		return slices.Concat(m.unspoken, m.left), nil
	}
	return nil, err
}

// askBatch makes one attempt for the keys that are left.
func (b *bucket) askBatch(ctx context.Context, m *removal, a *answers) error {
	m.errs = nil
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	paths := make([]string, len(m.left))
	for i, key := range m.left {
		paths[i] = b.path(key)
	}
	reply, err := removeObjects(ctx, c, b.name, paths)
	if err != nil {
		return err
	}
	return b.readReply(m, reply, a)
}

// readReply notes the answers that are final, and returns the first error that
// is not.
func (b *bucket) readReply(m *removal, reply map[string]*minio.ErrorResponse, a *answers) error {
	var first error
	keys := m.left
	m.left, m.errs = nil, map[string]*Error{}
	for _, key := range keys {
		said, spoken := reply[b.path(key)]
		if !spoken {
			m.unspoken = append(m.unspoken, key)
			continue
		}
		e := b.refusal(key, said)
		switch {
		case e == nil:
			a.set(key, nil)
		case e.Class.retriable():
			m.left, m.errs[key] = append(m.left, key), e
			if first == nil {
				first = e
			}
		default:
			a.set(key, e)
		}
	}
	return first
}

// refusal makes an error of what a reply said of one key; nil if the object is
// gone. A reply for single keys comes from a bucket that is there, so here a
// missing object needs no second look.
func (b *bucket) refusal(key string, said *minio.ErrorResponse) *Error {
	if said == nil {
		return nil
	}
	e := b.classifyAnswer(request{op: "delete", key: key}, *said, new(exchange)) // the status is that of the reply
	if e.Class == ClassMissing {
		return nil
	}
	return e
}

// removeObjects sends one batch and returns what the reply says of each path,
// nil for those it names as deleted. The library leaves out the errors
// InvalidArgument and NoSuchVersion, so that those keys are not in the reply,
// and tells of a request that failed as if it had failed for each path; only
// what a reply said of one path has no HTTP status.
func removeObjects(ctx context.Context, c *minio.Core, bucket string, paths []string) (map[string]*minio.ErrorResponse, error) {
	todo := make(chan minio.ObjectInfo, len(paths))
	for _, path := range paths {
		todo <- minio.ObjectInfo{Key: path}
	}
	close(todo)
	var failed error
	reply := make(map[string]*minio.ErrorResponse, len(paths))
	for res := range c.RemoveObjectsWithResult(ctx, bucket, todo, minio.RemoveObjectsOptions{}) {
		said, isAnswer := errors.AsType[minio.ErrorResponse](res.Err)
		switch {
		case res.Err == nil && reply[res.ObjectName] == nil: // an error outweighs
			reply[res.ObjectName] = nil
		case isAnswer && said.StatusCode == 0:
			reply[res.ObjectName] = &said
		case isAnswer && said.StatusCode == http.StatusOK && !codePattern.MatchString(said.Code):
			failed = errBadReply
		case res.Err != nil:
			failed = res.Err
		}
	}
	return reply, failed
}

var (
	noBatchPattern = regexp.MustCompile(`(?i)not (implemented|supported)|unsupported`)
	formPattern    = regexp.MustCompile(`(?i)multipart/form-data`)
)

// hasNoBatch says whether a store refuses batches as such: by a status, by the
// code or the message of an answer 400, or because it takes every POST to a
// bucket for the form of a browser.
func hasNoBatch(err error) bool {
	a, ok := errors.AsType[*answer](err)
	if !ok {
		return false
	}
	switch a.status {
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return true
	case http.StatusBadRequest:
		switch a.code {
		case "", "NotImplemented", "MethodNotAllowed", "MalformedXML", "MalformedPOSTRequest":
			return true
		}
		if noBatchPattern.MatchString(a.message) {
			return true
		}
	}
	return formPattern.MatchString(a.message)
}
