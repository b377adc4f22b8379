package main

import (
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"
)

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPIV3Schema schema `yaml:"openAPIV3Schema"`
			}
		}
	}
}

// writeCustom writes the schemas of the versions of a
// CustomResourceDefinition.
func writeCustom(out, crd string) error {
	content, err := os.ReadFile(crd)
	if err != nil {
		return err
	}
	var d definition
	if err := yaml.Unmarshal(content, &d); err != nil {
		return fmt.Errorf("read %s: %w", crd, err)
	}
	for _, v := range d.Spec.Versions {
		s := v.Schema.OpenAPIV3Schema
		seal(s)
		properties, ok := s["properties"].(schema)
		if !ok {
			return fmt.Errorf("read %s: version %s has no schema", crd, v.Name)
		}
		properties["metadata"] = schema{"type": "object"}
		if err := (kind{d.Spec.Group, v.Name, d.Spec.Names.Kind}).write(out, s); err != nil {
			return err
		}
	}
	return nil
}
