package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"korvet-offload/internal/cmdline"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// restServer is a REST catalog over another one: as much of the protocol as a
// client that makes tables and commits to them needs.
type restServer struct {
	t       *testing.T
	catalog catalog.Catalog
	token   string
	place   string // below which tables lie
	commits atomic.Int64
	spoil   func(w http.ResponseWriter) bool // answers a commit that was carried out in another way; nil = never
}

// startREST puts a REST catalog in front of the rig's own.
func startREST(r *rig) *restServer {
	r.t.Helper()
	_, is := r.registration("orders")
	s := &restServer{t: r.t, catalog: is.catalog, token: "s3cret", place: r.warehouse}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/config", func(w http.ResponseWriter, q *http.Request) {
		reply(w, 200, map[string]any{"defaults": map[string]string{}, "overrides": map[string]string{"prefix": q.URL.Query().Get("warehouse")}})
	})
	mux.HandleFunc("POST /v1/wh/namespaces", s.makeNamespace)
	mux.HandleFunc("POST /v1/wh/namespaces/{ns}/tables", s.makeTable)
	mux.HandleFunc("GET /v1/wh/namespaces/{ns}/tables/{table}", s.load)
	mux.HandleFunc("POST /v1/wh/namespaces/{ns}/tables/{table}", s.commit)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "Bearer "+s.token {
			fault(w, http.StatusUnauthorized, "NotAuthorizedException", errors.New("no token"))
			return
		}
		mux.ServeHTTP(w, q)
	}))
	r.t.Cleanup(server.Close)
	r.catalog, r.warehouse = server.URL, "wh"
	return s
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v)
}

func fault(w http.ResponseWriter, code int, kind string, err error) {
	reply(w, code, map[string]any{"error": map[string]any{"message": err.Error(), "type": kind, "code": code}})
}

func (s *restServer) fail(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, catalog.ErrNoSuchTable):
		fault(w, 404, "NoSuchTableException", err)
	case errors.Is(err, catalog.ErrNoSuchNamespace):
		fault(w, 404, "NoSuchNamespaceException", err)
	case errors.Is(err, catalog.ErrTableAlreadyExists), errors.Is(err, catalog.ErrNamespaceAlreadyExists):
		fault(w, 409, "AlreadyExistsException", err)
	default:
		fault(w, 409, "CommitFailedException", err)
	}
}

func (s *restServer) makeNamespace(w http.ResponseWriter, q *http.Request) {
	var body struct{ Namespace []string }
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		fault(w, 400, "BadRequestException", err)
		return
	}
	if err := s.catalog.CreateNamespace(q.Context(), body.Namespace, nil); err != nil {
		s.fail(w, err)
		return
	}
	reply(w, 200, map[string]any{"namespace": body.Namespace, "properties": map[string]string{}})
}

func (s *restServer) show(w http.ResponseWriter, t *table.Table) {
	reply(w, 200, map[string]any{"metadata-location": t.MetadataLocation(), "metadata": t.Metadata(), "config": map[string]string{}})
}

func (s *restServer) makeTable(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Name       string             `json:"name"`
		Schema     *iceberg.Schema    `json:"schema"`
		Properties iceberg.Properties `json:"properties"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		fault(w, 400, "BadRequestException", err)
		return
	}
	ns := q.PathValue("ns")
	t, err := s.catalog.CreateTable(q.Context(), table.Identifier{ns, body.Name}, body.Schema,
		catalog.WithProperties(body.Properties), catalog.WithLocation(s.place+"/"+ns+"/"+body.Name))
	if err != nil {
		s.fail(w, err)
		return
	}
	s.show(w, t)
}

func (s *restServer) load(w http.ResponseWriter, q *http.Request) {
	t, err := s.catalog.LoadTable(q.Context(), table.Identifier{q.PathValue("ns"), q.PathValue("table")})
	if err != nil {
		s.fail(w, err)
		return
	}
	s.show(w, t)
}

func (s *restServer) commit(w http.ResponseWriter, q *http.Request) {
	var body struct {
		Requirements table.Requirements `json:"requirements"`
		Updates      table.Updates      `json:"updates"`
	}
	if err := json.NewDecoder(q.Body).Decode(&body); err != nil {
		fault(w, 400, "BadRequestException", err)
		return
	}
	s.commits.Add(1)
	meta, location, err := s.catalog.CommitTable(q.Context(), table.Identifier{q.PathValue("ns"), q.PathValue("table")}, body.Requirements, body.Updates)
	switch {
	case err != nil:
		s.fail(w, err)
	case s.spoil == nil || !s.spoil(w):
		reply(w, 200, map[string]any{"metadata-location": location, "metadata": meta})
	}
}

func TestLifeWithREST(t *testing.T) {
	r := newRig(t)
	s := startREST(r)
	a := r.register("orders")
	if a.code != cmdline.Fault || strings.Count(a.stderr, "\n") != 1 {
		t.Errorf("without a token: %+v", a)
	}
	r.environ = append(r.environ, tokenVariable+"="+s.token)
	life(t, r)
	if a := r.register("orders"); strings.Contains(a.stdout+a.stderr, s.token) {
		t.Errorf("%+v", a)
	}
}

// A commit whose answer is lost has been made: the run sees it, and does not make it
// once more.
func TestALostAnswer(t *testing.T) {
	r := newRig(t)
	r.pass()
	s := startREST(r)
	r.environ = append(r.environ, tokenVariable+"="+s.token)
	s.spoil = func(w http.ResponseWriter) bool {
		fault(w, http.StatusBadGateway, "BadGateway", errors.New("the answer is lost"))
		return true
	}
	r.want(r.register("orders"), cmdline.Done, 0, 0, 4)
	if n := s.commits.Load(); n != 1 {
		t.Errorf("%d commits", n)
	}
	r.wantRows(allOfOrders()...)
}

// Where the catalog decides that a table lies around the remote path, it is refused
// before anything is added to it.
func TestARESTCatalogThatPutsTablesAtTheRoot(t *testing.T) {
	r := newRig(t)
	r.pass()
	s := startREST(r)
	r.environ = append(r.environ, tokenVariable+"="+s.token)
	s.place = strings.TrimSuffix(r.remote, "/objects") + "/objects/tables"
	a := r.register("orders")
	if a.code != cmdline.Fault || !strings.Contains(a.stderr, "its location is "+s.place) || s.commits.Load() != 0 {
		t.Errorf("%+v", a)
	}
}
