package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"korvet-offload/internal/cmdline"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
)

// Properties of a table, and of a snapshot's summary, that are this program's own.
const (
	rootProperty  = "korvet.offload.root"  // below which all files lie that it adds
	topicProperty = "korvet.offload.topic" // in the summary: whose files a snapshot of this program added or took out
)

// tableSchema is that of segment files (docs/file-format.md). Values are optional, although
// a file has every one: readers in Go would not take the other.
func tableSchema() *iceberg.Schema {
	return iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.String, Required: true, Doc: "<ms>-<sequence>; orders as two numbers, not as text"},
		iceberg.NestedField{ID: 2, Name: "fields", Required: true, Doc: "names and values of the message",
			Type: &iceberg.MapType{KeyID: 3, KeyType: iceberg.PrimitiveTypes.String, ValueID: 4, ValueType: iceberg.PrimitiveTypes.Binary}})
}

// newProperties are those of a table that this program makes. With gc.enabled=false
// engines refuse to delete files of a table: not when snapshots expire, not when it is
// purged, not as orphans.
func newProperties(r root) iceberg.Properties {
	return iceberg.Properties{
		table.GCEnabledKey:                        "false",
		rootProperty:                              r.url,
		table.DefaultNameMappingKey:               nameMapping(tableSchema()),
		table.ManifestMergeEnabledKey:             "true", // each run adds a manifest
		table.MetadataDeleteAfterCommitEnabledKey: "true", // of old table metadata; it has nothing to do with data
		table.MetadataPreviousVersionsMaxKey:      "20",
	}
}

// nameMapping is which columns of a file without field ids are which of a schema.
func nameMapping(s *iceberg.Schema) string {
	text, err := json.Marshal(s.NameMapping())
	if err != nil {
		panic(err) // names and numbers always have a JSON form
	}
	return string(text)
}

// errNoTable says that a table is not there yet.
var errNoTable = errors.New("there is no such table")

// loadTable loads a table and refuses one that is not safe to be worked on.
func loadTable(ctx context.Context, cat catalog.Catalog, name table.Identifier, r root) (*table.Table, error) {
	t, err := cat.LoadTable(ctx, slices.Clone(name))
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		return nil, errNoTable
	}
	if err != nil {
		return nil, fmt.Errorf("load table %s: %w", dotted(name), err)
	}
	if err := checkTable(t, r); err != nil {
		return nil, fmt.Errorf("table %s: %w", dotted(name), err)
	}
	return r.guarded(t, cat), nil
}

// createTable makes the table, and its namespace if there is none. Somebody who makes it
// at the same time is as good.
func createTable(ctx context.Context, cat catalog.Catalog, o options, r root) error {
	if err := checkPlace("--warehouse", o.warehouse, r); err != nil {
		return cmdline.UsageError{Err: err}
	}
	namespace := catalog.NamespaceFromIdent(o.table)
	if err := cat.CreateNamespace(ctx, namespace, nil); err != nil && !errors.Is(err, catalog.ErrNamespaceAlreadyExists) {
		return fmt.Errorf("make namespace %s: %w", dotted(namespace), err)
	}
	opts := []catalog.CreateTableOpt{catalog.WithProperties(newProperties(r))}
	if o.sql() { // else the catalog decides
		opts = append(opts, catalog.WithLocation(o.warehouse+"/"+strings.Join(o.table, "/")))
	}
	_, err := cat.CreateTable(ctx, slices.Clone(o.table), tableSchema(), opts...)
	if err != nil && !errors.Is(err, catalog.ErrTableAlreadyExists) {
		return fmt.Errorf("make table %s: %w", dotted(o.table), err)
	}
	return nil
}

// checkPlace refuses a place that overlaps the root: gc and verify would meet a
// table's files as strangers, and an engine that removes the orphans of a table, or its
// folder, would remove segments.
func checkPlace(what, location string, r root) error {
	if strings.Contains(location, "/") && r.overlaps(location) {
		return fmt.Errorf("%s is %s, which overlaps the remote path %s: give tables a place beside it", what, location, r.url)
	}
	return nil
}

// checkTable refuses a table by whose own means objects could be deleted, or to which
// segments do not fit.
func checkTable(t *table.Table, r root) error {
	props := t.Properties()
	if gc := props.Get(table.GCEnabledKey, "true"); !strings.EqualFold(gc, "false") {
		return fmt.Errorf("its property gc.enabled is %q: engines could delete the only copies of segments; set it to false, or let a new table be made", gc)
	}
	places := map[string]string{"its location": t.Location()}
	for name, value := range props {
		if strings.HasPrefix(name, "write.") && strings.HasSuffix(name, "path") || name == table.WriteMetadataLocationKey {
			places["its property "+name] = value
		}
	}
	for _, what := range slices.Sorted(maps.Keys(places)) {
		if err := checkPlace(what, places[what], r); err != nil {
			return err
		}
	}
	if is := props.Get(rootProperty, r.url); is != r.url {
		return fmt.Errorf("its files lie below %s and the remote path is %s: every message would be there twice; let a new table be made", is, r.url)
	}
	if err := checkForm(t); err != nil {
		return err
	}
	return checkHistory(t)
}

// checkForm refuses a table of another form than that of segments.
func checkForm(t *table.Table) error {
	if found, want := form(t.Schema()), form(tableSchema()); found != want {
		return fmt.Errorf("its schema is %s, want %s", found, want)
	}
	if v := t.Metadata().Version(); v != 2 {
		return fmt.Errorf("its format version is %d, want 2", v)
	}
	if spec := t.Spec(); !spec.IsUnpartitioned() {
		return fmt.Errorf("it is partitioned by %s, want no partitions", spec.String())
	}
	want := nameMapping(t.Schema())
	if found := t.Properties().Get(table.DefaultNameMappingKey, want); !sameMapping(found, want) {
		return fmt.Errorf("its property %s is %s, want %s", table.DefaultNameMappingKey, found, want)
	}
	return nil
}

func sameMapping(a, b string) bool {
	var left, right iceberg.NameMapping
	if json.Unmarshal([]byte(a), &left) != nil || json.Unmarshal([]byte(b), &right) != nil {
		return false
	}
	return left.String() == right.String()
}

// form is names and types of a schema.
func form(s *iceberg.Schema) string {
	var all []string
	for _, f := range s.Fields() {
		need := "optional"
		if f.Required {
			need = "required"
		}
		all = append(all, fmt.Sprintf("%s: %s %s", f.Name, need, typeForm(f.Type)))
	}
	return strings.Join(all, ", ")
}

func typeForm(t iceberg.Type) string {
	m, ok := t.(*iceberg.MapType)
	if !ok {
		return t.String()
	}
	need := "optional"
	if m.ValueRequired {
		need = "required"
	}
	return fmt.Sprintf("map<%s, %s %s>", typeForm(m.KeyType), need, typeForm(m.ValueType))
}

// checkHistory refuses a table in which somebody else has rewritten or deleted files:
// what an engine has compacted would be added once more, and be there twice.
func checkHistory(t *table.Table) error {
	current := t.CurrentSnapshot()
	if current == nil {
		return nil
	}
	for _, s := range table.AncestorsOf(current.SnapshotID, t.SnapshotByID) {
		if s.Summary == nil {
			continue
		}
		_, ours := s.Summary.Properties[topicProperty]
		deleted := s.Summary.Properties["deleted-data-files"]
		if !ours && (s.Summary.Operation == table.OpReplace || deleted != "" && deleted != "0") {
			return fmt.Errorf("snapshot %d, which another program made (%s), has rewritten or removed files: messages could be there twice; roll the table back to before it, or let a new table be made", s.SnapshotID, s.Summary.Operation)
		}
	}
	return nil
}

// liveFiles are the data files that the current snapshot names, by their locations.
func liveFiles(ctx context.Context, t *table.Table) (map[string]iceberg.DataFile, error) {
	live := map[string]iceberg.DataFile{}
	current := t.CurrentSnapshot()
	if current == nil {
		return live, nil
	}
	files, err := t.FS(ctx)
	if err != nil {
		return nil, err
	}
	lists, err := current.Manifests(files)
	if err != nil {
		return nil, fmt.Errorf("read snapshot %d of table %s: %w", current.SnapshotID, dotted(t.Identifier()), err)
	}
	for _, list := range lists {
		if list.ManifestContent() != iceberg.ManifestContentData {
			continue
		}
		for entry, err := range list.Entries(files, true) {
			if err != nil {
				return nil, fmt.Errorf("read %s of table %s: %w", list.FilePath(), dotted(t.Identifier()), err)
			}
			live[entry.DataFile().FilePath()] = entry.DataFile()
		}
	}
	return live, nil
}

func dotted(name table.Identifier) string { return strings.Join(name, ".") }
