package deploy

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const chart = root + "/k8s/chart"

// object is what the tests read of a manifest.
type object struct {
	Kind     string
	Metadata struct {
		Name                string
		Labels, Annotations map[string]string
	}
	Spec       yaml.Node
	Data       map[string]string
	StringData map[string]string `yaml:"stringData"`
}

// labelled is the part of several kinds that says which Pods they are for.
type labelled struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

// workload is the spec of what makes Pods.
type workload struct {
	Replicas int
	Selector labelled
	Template struct {
		Metadata struct{ Labels, Annotations map[string]string }
		Spec     podSpec
	}
}

// decode reads the spec of an object.
func (o object) decode(t *testing.T, into any) {
	t.Helper()
	if err := o.Spec.Decode(into); err != nil {
		t.Fatalf("%s %s: %v", o.Kind, o.Metadata.Name, err)
	}
}

// objects are the manifests of a text.
func objects(t *testing.T, text string) (all []object) {
	t.Helper()
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var o object
		switch err := d.Decode(&o); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		case o.Kind != "":
			all = append(all, o)
		}
	}
}

// ofKind are the objects of a kind.
func ofKind(all []object, kind string) []object {
	return slices.DeleteFunc(slices.Clone(all), func(o object) bool { return o.Kind != kind })
}

// output runs a tool to its end.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(tool(t, name), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %q: %v\n%s%s", name, args, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// overlays are the kustomizations that can be applied, by name.
func overlays(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob(root + "/k8s/overlays/*")
	if err != nil || len(dirs) < 4 {
		t.Fatalf("%q, %v", dirs, err)
	}
	return dirs
}

// kustomize renders an overlay.
func kustomize(t *testing.T, dir string) string {
	t.Helper()
	if _, err := exec.LookPath("kubectl"); err == nil {
		return output(t, "kubectl", "kustomize", dir)
	}
	return output(t, "kustomize", "build", dir)
}

// helm renders the chart with a file of values, "" = with none.
func helm(t *testing.T, values string, more ...string) string {
	t.Helper()
	args := append([]string{"template", "try", chart, "--namespace", "korvet"}, more...)
	if values != "" {
		args = append(args, "--values", values)
	}
	return output(t, "helm", args...)
}

// chartValues are the files of values with which the chart is tried; "" = none.
func chartValues(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(chart + "/ci/*-values.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%q, %v", files, err)
	}
	return append(files, "")
}

// rendered is everything that can be applied, by what it is made of.
func rendered(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range overlays(t) {
		all["overlay "+filepath.Base(dir)] = kustomize(t, dir)
	}
	for _, values := range chartValues(t) {
		all["chart with "+filepath.Base(values)] = helm(t, values)
	}
	return all
}

// eachRendered runs a test for everything that can be applied.
func eachRendered(t *testing.T, test func(*testing.T, []object)) {
	t.Helper()
	all := rendered(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { test(t, objects(t, all[name])) })
	}
}
