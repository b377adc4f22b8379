package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"korvet-offload/segment"
)

// routes are the paths of a server.
func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/v1/topics", s.answering(s.topics))
	mux.Handle("/v1/streams", s.answering(s.streams))
	for _, of := range []string{"/v1/topics/{topic}/{partition}/", "/v1/streams/{key}/"} {
		mux.Handle(of+"segments", s.about(s.segments))
		mux.Handle(of+"segments/{segment}", s.about(s.segment))
		mux.Handle(of+"messages", s.about(s.messages))
	}
	mux.Handle("/", s.answering(func(*reply, *http.Request) error {
		return refused{http.StatusNotFound, "there is nothing here; docs/serve.md lists the paths, which begin with /v1/topics and /v1/streams"}
	}))
	return mux
}

// answering answers, or says why not.
func (s *server) answering(do func(*reply, *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := w.(*reply) //nolint:forcetypeassert // watched has made it
		if err := do(reply, r); err != nil {
			s.fail(reply, r, err)
		}
	})
}

// about answers a question about a partition.
func (s *server) about(do func(*reply, *http.Request, segment.Partition) error) http.Handler {
	return s.answering(func(w *reply, r *http.Request) error {
		p, err := s.partition(r)
		if err != nil {
			return err
		}
		return do(w, r, p)
	})
}

// maxKey is how long the key of a plain stream may be here, in bytes.
const maxKey = 1024

// partition is that of a path. What could not be the name of one, in this layout,
// is not looked for.
func (s *server) partition(r *http.Request) (segment.Partition, error) {
	name, plain := r.PathValue("key"), true
	if name == "" {
		name, plain = r.PathValue("topic")+":"+r.PathValue("partition"), false
	}
	p, err := segment.ParsePartition(name, plain)
	if err != nil || len(name) > maxKey {
		return p, refused{http.StatusNotFound, "no partition can have this name"}
	}
	if is, ok := s.parts.Layout.PartitionOf(s.parts.Layout.Folder(p)); !ok || is != p {
		return p, refused{http.StatusNotFound, "no partition can have this name"}
	}
	return p, nil
}

// segment answers with one segment, as JSON or as its file.
func (s *server) segment(w *reply, r *http.Request, p segment.Partition) error {
	name, file := strings.CutSuffix(r.PathValue("segment"), ".parquet")
	n, err := segment.ParseNumber(name)
	if err != nil {
		return refused{http.StatusNotFound, "want the number of a segment, and .parquet for its file"}
	}
	if file {
		return s.file(w, r, p, n)
	}
	e, err := s.entry(r.Context(), p, n)
	if err != nil {
		return err
	}
	return writeJSON(w, viewOf(p, n, e))
}

// entry is that of a segment as it stands in the manifest now. What is DELETING is
// hidden from readers.
func (s *server) entry(ctx context.Context, p segment.Partition, n segment.Number) (segment.Entry, error) {
	answers, err := s.parts.Manifests.Peek(ctx, []segment.Peek{{Partition: p, Numbers: []segment.Number{n}}})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return segment.Entry{}, fmt.Errorf("read the manifest of %s: %w", p, err)
	}
	none := refused{http.StatusNotFound, fmt.Sprintf("there is no segment %s/%s", p, n)}
	if answers[0].Raw[0] == "" {
		return segment.Entry{}, none
	}
	e, err := segment.ParseEntry([]byte(answers[0].Raw[0]))
	switch {
	case err != nil:
		return e, fmt.Errorf("segment %s/%s: %w: %w", p, n, ErrDamaged, err)
	case e.State == segment.Deleting:
		return e, none
	}
	return e, nil
}

// pathOf is where a partition is found here.
func pathOf(p segment.Partition) string {
	if p.Plain {
		return "/v1/streams/" + url.PathEscape(p.Topic)
	}
	return fmt.Sprintf("/v1/topics/%s/%d", p.Topic, p.Number)
}

// errStop ends a reading whose reader has gone.
var errStop = errors.New("stop")
