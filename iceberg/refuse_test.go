package main

import (
	"context"
	"strings"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"

	"korvet-offload/internal/cmdline"
	"korvet-offload/segment"
)

// refused checks that a table is refused, with and without --dry-run, and is as it was.
func (r *rig) refused(want string) {
	r.t.Helper()
	before, objects := r.snapshots("orders"), r.digests()
	for _, args := range [][]string{{"orders", "--dry-run"}, {"orders"}} {
		a := r.register(args...)
		if a.code != cmdline.Fault || a.stdout != "" || !strings.Contains(a.stderr, want) || strings.Count(a.stderr, "\n") != 1 {
			r.t.Errorf("%q: exit %d, %s%s\nwant %q", args, a.code, a.stdout, a.stderr, want)
		}
	}
	if n := r.snapshots("orders"); n != before {
		r.t.Errorf("%d snapshots, and before %d", n, before)
	}
	r.untouched(objects)
}

// set sets properties of the table as another program may.
func (r *rig) set(pairs ...string) {
	r.t.Helper()
	r.change("orders", func(_ context.Context, tx *table.Transaction) error {
		props := iceberg.Properties{}
		for i := 0; i < len(pairs); i += 2 {
			props[pairs[i]] = pairs[i+1]
		}
		return tx.SetProperties(props)
	})
}

// A table by whose means an engine could delete objects, or write among them, is refused.
func TestUnsafeTablesAreRefused(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	mapping := nameMapping(tableSchema())
	for _, tt := range []struct{ name, value, good, want string }{
		{"gc.enabled", "true", "false", `its property gc.enabled is "true"`},
		{"gc.enabled", "no", "FALSE", `its property gc.enabled is "no"`},
		{"write.data.path", r.remote, "file:///elsewhere", "its property write.data.path is " + r.remote + ", which overlaps"},
		{"write.metadata.path", r.remote + "/x", r.warehouse + "/m", "its property write.metadata.path is"},
		{"write.object-storage.path", "file:///", "file:///elsewhere", "its property write.object-storage.path is"},
		{rootProperty, "s3://elsewhere", r.remote, "its files lie below s3://elsewhere"},
		{table.DefaultNameMappingKey, strings.Replace(mapping, `"id"`, `"ids"`, 1), mapping, "its property " + table.DefaultNameMappingKey},
	} {
		r.set(tt.name, tt.value)
		r.refused(tt.want)
		r.set(tt.name, tt.good)
	}
	r.change("orders", func(_ context.Context, tx *table.Transaction) error {
		return tx.RemoveProperties([]string{"gc.enabled"})
	})
	r.refused(`its property gc.enabled is "true"`)
	r.set("gc.enabled", "false")
	r.want(r.register("orders"), cmdline.Done, 0, 0, 4)
}

// make makes the table as another program may.
func (r *rig) make(schema *iceberg.Schema, opts ...catalog.CreateTableOpt) {
	r.t.Helper()
	ctx, is := r.registration("orders")
	if err := is.catalog.CreateNamespace(ctx, table.Identifier{"korvet"}, nil); err != nil {
		r.t.Fatal(err)
	}
	if _, err := is.catalog.CreateTable(ctx, table.Identifier{"korvet", "orders"}, schema, opts...); err != nil {
		r.t.Fatal(err)
	}
}

// A table that lies around the remote path is refused: whoever drops it may remove its
// folder.
func TestATableAroundTheRootIsRefused(t *testing.T) {
	for name, location := range map[string]func(*rig) string{
		"around": func(r *rig) string { return strings.TrimSuffix(r.remote, "/objects") },
		"at":     func(r *rig) string { return r.remote },
		"below":  func(r *rig) string { return r.remote + "/tables/orders" },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.pass()
			r.make(tableSchema(), catalog.WithLocation(location(r)), catalog.WithProperties(iceberg.Properties{"gc.enabled": "false"}))
			r.refused("its location is " + location(r) + ", which overlaps the remote path")
			for _, warehouse := range []string{location(r), strings.Replace(location(r), "file://", "file:", 1)} {
				a := r.register("payments", "--warehouse", warehouse)
				if a.code != cmdline.Usage || !strings.Contains(a.stderr, "--warehouse is "+warehouse+", which overlaps") {
					t.Errorf("%+v", a)
				}
			}
		})
	}
}

// A table of another form is refused, and what was found and is wanted is said.
func TestOtherFormsAreRefused(t *testing.T) {
	good := iceberg.Properties{"gc.enabled": "false"}
	text := iceberg.NestedField{ID: 1, Name: "id", Type: iceberg.PrimitiveTypes.String, Required: true}
	fields := tableSchema().Field(1)
	spec := iceberg.NewPartitionSpec(iceberg.PartitionField{SourceIDs: []int{1}, FieldID: 1000, Name: "id", Transform: iceberg.IdentityTransform{}})
	optional := fields
	optional.Required = false
	for _, tt := range []struct {
		name   string
		schema *iceberg.Schema
		opt    catalog.CreateTableOpt
		want   string
	}{
		{"fewer columns", iceberg.NewSchema(0, text), nil, "its schema is id: required string, want id: required string, fields: required map<string, optional binary>"},
		{"an optional column", iceberg.NewSchema(0, text, optional), nil, "fields: optional map"},
		{"a column more", iceberg.NewSchema(0, text, fields, iceberg.NestedField{ID: 9, Name: "day", Type: iceberg.PrimitiveTypes.Date}), nil, "day: optional date, want"},
		{"partitions", tableSchema(), catalog.WithPartitionSpec(&spec), "it is partitioned by"},
		{"another version", tableSchema(), catalog.WithProperties(iceberg.Properties{"gc.enabled": "false", "format-version": "3"}), "its format version is 3, want 2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t)
			r.pass()
			opts := []catalog.CreateTableOpt{catalog.WithProperties(good)}
			if tt.opt != nil {
				opts = append(opts, tt.opt)
			}
			r.make(tt.schema, opts...)
			r.refused(tt.want)
		})
	}
}

// A table that somebody else has made, of the right form and safe, is taken, and
// belongs to this root from then on.
func TestATableOfOthersIsTaken(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.make(tableSchema(), catalog.WithProperties(iceberg.Properties{"gc.enabled": "false"}))
	a := r.register("orders")
	r.want(a, cmdline.Done, 4, 0, 0)
	if a.Created {
		t.Errorf("%s", a.stdout)
	}
	_, is := r.table("orders")
	if got := is.Properties().Get(rootProperty, ""); got != r.remote {
		t.Errorf("its root is %q", got)
	}
	r.wantRows(allOfOrders()...)
}

// Topics whose tables have the same name by default are not mixed.
func TestTopicsOfOneNameAreNotMixed(t *testing.T) {
	r := newRig(t)
	b, closed := r.broker()
	defer closed()
	if err := b.CreateTopic(t.Context(), "Orders", 1); err != nil {
		t.Fatal(err)
	}
	r.write(segment.Partition{Topic: "Orders"}, 0, false)
	r.pass()
	r.want(r.register("orders"), cmdline.Done, 4, 0, 0)
	if a := r.register("Orders"); a.code != cmdline.Usage || !strings.Contains(a.stderr, "korvet.orders holds files of topic orders") {
		t.Errorf("exit %d, %s%s", a.code, a.stderr, a.stdout)
	}
	r.wantRows(allOfOrders()...)
	r.want(r.register("Orders", "--table", "korvet.capital"), cmdline.Done, 1, 0, 0)
}

// What another program has rewritten is not added once more.
func TestWhatWasRewrittenIsNotAddedAgain(t *testing.T) {
	r := newRig(t)
	r.pass()
	r.register("orders")
	r.change("orders", func(ctx context.Context, tx *table.Transaction) error {
		return tx.Delete(ctx, iceberg.NotEqualTo(iceberg.Reference("id"), "0-0"), nil)
	})
	if rows := r.rows("orders"); len(rows) != 0 {
		t.Fatalf("%d rows", len(rows))
	}
	r.refused("which another program made (")
	first := int64(0)
	_, is := r.table("orders")
	for _, s := range is.Metadata().Snapshots() {
		if s.ParentSnapshotID == nil {
			first = s.SnapshotID
		}
	}
	r.change("orders", func(_ context.Context, tx *table.Transaction) error { return tx.RollbackToSnapshot(first) })
	r.want(r.register("orders"), cmdline.Done, 0, 0, 4)
	r.wantRows(allOfOrders()...)
}
