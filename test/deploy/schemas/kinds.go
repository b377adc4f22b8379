package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

const reference = "#/definitions/"

// writeKinds writes the schema of every kind of Kubernetes' document. Each
// holds the definitions that it refers to, and no others.
func writeKinds(out, swagger string) error {
	definitions, err := readDefinitions(swagger)
	if err != nil {
		return err
	}
	for name, d := range definitions {
		for _, k := range kindsOf(d) {
			used := map[string]schema{}
			collect(definitions, name, used)
			// A definition of its own, since a reference hides what is beside it.
			s := schema{"$schema": "http://json-schema.org/draft-07/schema#", "allOf": []any{schema{"$ref": reference + name}}, "definitions": used}
			if err := k.write(out, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func readDefinitions(swagger string) (map[string]schema, error) {
	content, err := os.ReadFile(swagger)
	if err != nil {
		return nil, err
	}
	var document struct{ Definitions map[string]schema }
	if err := json.Unmarshal(content, &document); err != nil {
		return nil, fmt.Errorf("read %s: %w", swagger, err)
	}
	for name, d := range document.Definitions {
		if strings.HasSuffix(name, ".api.resource.Quantity") {
			d["type"] = []any{"string", "number"}
		}
		seal(d)
	}
	return document.Definitions, nil
}

// kindsOf are the kinds of which a definition is the top; most have none.
func kindsOf(d schema) (kinds []kind) {
	list, _ := d["x-kubernetes-group-version-kind"].([]any)
	properties, _ := d["properties"].(schema)
	if properties["apiVersion"] == nil || len(list) != 1 { // those of several groups, such as DeleteOptions, are no manifests
		return nil
	}
	for _, v := range list {
		if v, ok := v.(schema); ok {
			group, _ := v["group"].(string)
			version, _ := v["version"].(string)
			name, _ := v["kind"].(string)
			kinds = append(kinds, kind{group, version, name})
		}
	}
	return kinds
}

// collect adds a definition, and all that it refers to.
func collect(all map[string]schema, name string, used map[string]schema) {
	if _, seen := used[name]; seen {
		return
	}
	used[name] = all[name]
	eachReference(all[name], func(to string) { collect(all, to, used) })
}

func eachReference(v any, visit func(string)) {
	switch v := v.(type) {
	case schema:
		if to, ok := v["$ref"].(string); ok {
			visit(strings.TrimPrefix(to, reference))
		}
		for _, part := range v {
			eachReference(part, visit)
		}
	case []any:
		for _, part := range v {
			eachReference(part, visit)
		}
	}
}
