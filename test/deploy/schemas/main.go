// Command schemas writes the JSON schemas by which kubeconform judges
// manifests: one file per kind, of Kubernetes' own OpenAPI document and of
// CustomResourceDefinitions. A property that a schema does not know is wrong.
//
//	schemas OUT swagger.json crd.yaml...
//
// The files are named KIND-GROUP-VERSION.json in lower case, the group by its
// first part, as kubeconform asks for them.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "schemas:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return errors.New("want OUT, swagger.json and any number of crd.yaml")
	}
	out := args[0]
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	if err := writeKinds(out, args[1]); err != nil {
		return err
	}
	for _, crd := range args[2:] {
		if err := writeCustom(out, crd); err != nil {
			return err
		}
	}
	return nil
}

// schema is a JSON schema, or a part of one.
type schema = map[string]any

// kind is what a schema describes.
type kind struct{ Group, Version, Kind string }

// file is the name under which kubeconform looks for the schema of a kind.
func (k kind) file() string {
	parts := []string{k.Kind}
	if k.Group != "" {
		group, _, _ := strings.Cut(k.Group, ".")
		parts = append(parts, group)
	}
	return strings.ToLower(strings.Join(append(parts, k.Version), "-")) + ".json"
}

func (k kind) write(dir string, s schema) error {
	content, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write schema of %s: %w", k.Kind, err)
	}
	return os.WriteFile(filepath.Join(dir, k.file()), content, 0o644)
}

// seal makes a schema refuse what it does not know, at any depth, and take
// what the API server takes though the document does not say so.
func seal(v any) {
	switch v := v.(type) {
	case schema:
		for _, part := range v {
			seal(part)
		}
		sealOne(v)
	case []any:
		for _, part := range v {
			seal(part)
		}
	}
}

func sealOne(s schema) {
	switch {
	case s["format"] == "int-or-string" || s["x-kubernetes-int-or-string"] == true:
		delete(s, "type")
		delete(s, "format")
		s["type"] = []any{"string", "integer"}
	case s["properties"] != nil && s["additionalProperties"] == nil && s["x-kubernetes-preserve-unknown-fields"] != true:
		if _, ok := s["properties"].(schema); ok {
			s["additionalProperties"] = false
		}
	}
}
