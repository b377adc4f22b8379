package page

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"korvet-offload/internal/board"
)

// fields collects the names that a type has in JSON.
func fields(t reflect.Type, into map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		fields(t.Elem(), into)
	case reflect.Struct:
		if t.PkgPath() == "time" {
			return
		}
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" {
				into[name] = true
			}
			fields(t.Field(i).Type, into)
		}
	}
}

// Every field of the API is in docs/http.md. What is found is documented with
// the command that prints it too.
func TestTheAPIIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/http.md")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	fields(reflect.TypeFor[board.Status](), names)
	fields(reflect.TypeFor[onePartition](), names)
	counts := map[string]bool{}
	if len(names) < 80 {
		t.Fatalf("only %d fields", len(names))
	}
	found, _ := reflect.TypeFor[board.Status]().FieldByName("Counts")
	fields(found.Type, counts)
	for name := range names {
		if !strings.Contains(string(page), "`"+name+"`") && !counts[name] {
			t.Errorf("docs/http.md does not say what %s is", name)
		}
	}
}
