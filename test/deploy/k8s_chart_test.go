package deploy

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestTheChartIsLinted(t *testing.T) {
	for _, values := range chartValues(t) {
		args := []string{"lint", "--strict", chart}
		if values != "" {
			args = append(args, "--values", values)
		}
		if out := output(t, "helm", args...); !strings.Contains(out, "0 chart(s) failed") {
			t.Errorf("%s: %s", values, out)
		}
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for set, want := range map[string]string{
		"podMonitr.enabled=true":          "'podMonitr' not allowed",
		"podMonitor.enable=true":          "'enable' not allowed",
		"image.digest=sha256:abc":         "/image/digest",
		"replicas=-1":                     "/replicas",
		"shards=none":                     "/shards",
		"terminationGracePeriodSeconds=5": "/terminationGracePeriodSeconds",
		"resources.limits.memory=lots":    "/resources/limits/memory",
		"http.port=70000":                 "/http/port",
		"networkPolicy.redis.ports={}":    "/networkPolicy/redis/ports",
		"settings.korvet=null":            "/settings",
	} {
		out, err := exec.Command(tool(t, "helm"), "template", chart, "--set", set).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, want %q\n%s", set, err, want, out)
		}
	}
}

// The names of the image, and what changes when a value does.
func TestTheChartDoesWhatItsValuesSay(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	pick := func(sets ...string) pod {
		var args []string
		for _, s := range sets {
			args = append(args, "--set", s)
		}
		return pods(t, ofKind(objects(t, helm(t, "", args...)), "Deployment"))[0]
	}
	for set, want := range map[string]string{
		"image.repository=r/k":                "r/k:" + appVersion(t),
		"image.tag=v2":                        "korvet-offload:v2",
		"image.digest=" + digest:              "korvet-offload@" + digest,
		"image.tag=v2,image.digest=" + digest: "korvet-offload@" + digest,
	} {
		if got := pick(set).Containers[0].Image; got != want {
			t.Errorf("%s: %s, want %s", set, got, want)
		}
	}
	for set, want := range map[string]string{
		"shards=3":                    "KORVET_STORAGE_OFFLOAD_SHARDS=3",
		"resources.limits.memory=1Gi": "GOMEMLIMIT=939524096",
		"http.port=80":                "KORVET_STORAGE_OFFLOAD_HTTP_ADDRESS=:80",
		"http.tlsSecret=s":            "KORVET_STORAGE_OFFLOAD_HTTP_KEY_FILE=/etc/korvet-offload/tls/tls.key",
		"existingSecret=s":            "KORVET_OFFLOAD_SECRETS_DIR=/etc/korvet-offload/secrets",
	} {
		if got := pick(set).Containers[0].environ("/etc/korvet-offload"); !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %s", set, got, want)
		}
	}
}

func TestOtherSettingsAreOtherPods(t *testing.T) {
	sum := func(path string) string {
		var w workload
		ofKind(objects(t, helm(t, "", "--set", "settings.korvet.storage.remote-path="+path)), "Deployment")[0].decode(t, &w)
		return w.Template.Metadata.Annotations["checksum/settings"]
	}
	a, b := sum("s3://a/x"), sum("s3://b/x")
	if a == "" || a == b {
		t.Errorf("checksums %q and %q", a, b)
	}
}

// Names and labels are no longer than Kubernetes takes them, however long those
// are that they are made of. None of it is away with replicas=0, to stop it.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("n", 63)
	for _, set := range []string{"nameOverride=" + long, "fullnameOverride=" + long} {
		for _, o := range objects(t, helm(t, "", "--set", set, "--set", "replicas=0")) {
			for name, value := range o.Metadata.Labels {
				if len(value) > 63 {
					t.Errorf("%s: the label %s of a %s has %d characters", set, name, o.Kind, len(value))
				}
			}
		}
	}
}

func TestTheNotesSayWhatIsMissing(t *testing.T) {
	const missing = "settings.korvet.storage.remote-path is not there"
	for values, want := range map[string]bool{chart + "/values.yaml": true, chart + "/ci/s3-values.yaml": false, chart + "/ci/shards-values.yaml": false} {
		notes := output(t, "helm", "install", "try", chart, "--dry-run=client", "--values", values)
		if strings.Contains(notes, missing) != want || !strings.Contains(notes, "helm test try") {
			t.Errorf("%s: %s", values, notes)
		}
	}
}

func appVersion(t *testing.T) string {
	t.Helper()
	var c struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, "k8s/chart/Chart.yaml")), &c); err != nil || c.AppVersion == "" {
		t.Fatalf("%+v, %v", c, err)
	}
	return c.AppVersion
}

// The kustomizations and the chart are of one release.
func TestOneVersionEverywhere(t *testing.T) {
	for _, dir := range overlays(t) {
		if c := ours(t, objects(t, kustomize(t, dir)))[0]; !strings.HasSuffix(c.Image, ":"+appVersion(t)) {
			t.Errorf("%s: %s, and the chart has %s", dir, c.Image, appVersion(t))
		}
	}
}

// value is one documented value of the chart.
type value struct{ name, preset, text string }

// documented lists the values that have a comment "# -- ...", and what has
// none.
func documented(n *yaml.Node, path string) (found []value, bare []string) {
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := strings.TrimPrefix(path+"."+n.Content[i].Value, ".")
		text, ok := strings.CutPrefix(n.Content[i].HeadComment, "# -- ")
		switch sub := n.Content[i+1]; {
		case ok:
			found = append(found, value{name, preset(sub), text})
		case sub.Kind == yaml.MappingNode && len(sub.Content) > 0:
			f, b := documented(sub, name)
			found, bare = append(found, f...), append(bare, b...)
		default:
			bare = append(bare, name)
		}
	}
	return found, bare
}

// preset is a default as a cell of a table has it.
func preset(n *yaml.Node) string {
	var v any
	if err := n.Decode(&v); err != nil {
		return err.Error()
	}
	text, err := json.Marshal(v)
	if err != nil || len(text) > 60 {
		return "see `values.yaml`"
	}
	return "`" + string(text) + "`"
}

func TestTheChartsTableIsCurrent(t *testing.T) {
	var values yaml.Node
	if err := yaml.Unmarshal([]byte(readFile(t, "k8s/chart/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	found, bare := documented(values.Content[0], "")
	if len(bare) > 0 {
		t.Errorf("not documented: %q", bare)
	}
	var table strings.Builder
	table.WriteString("| Value | Default | Meaning |\n|---|---|---|\n")
	for _, v := range found {
		fmt.Fprintf(&table, "| `%s` | %s | %s |\n", v.name, v.preset, v.text)
	}
	mustBeCurrent(t, "k8s/chart/README.md", between(t, readFile(t, "k8s/chart/README.md"), table.String()))
}

// between puts a table between the marks of a page.
func between(t *testing.T, page, table string) string {
	t.Helper()
	const begin, end = "<!-- values -->\n", "<!-- end of values -->"
	head, rest, ok := strings.Cut(page, begin)
	_, tail, also := strings.Cut(rest, end)
	if !ok || !also {
		t.Fatalf("the marks %q and %q are gone", begin, end)
	}
	return head + begin + table + end + tail
}

// mustBeCurrent compares a file with what it ought to be, or makes it so.
func mustBeCurrent(t *testing.T, name, want string) {
	t.Helper()
	if os.Getenv("UPDATE_DOCS") != "" {
		if err := os.WriteFile(filepath.Join(root, name), []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if readFile(t, name) != want {
		t.Errorf("%s is not current: UPDATE_DOCS=1 go test ./test/deploy -run %s", name, t.Name())
	}
}

// schemaOf is the part of a JSON schema that lists properties.
type schemaOf struct {
	Properties map[string]schemaOf
}

func TestTheSchemaKnowsExactlyTheValues(t *testing.T) {
	var values map[string]any
	if err := yaml.Unmarshal([]byte(readFile(t, "k8s/chart/values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	var schema schemaOf
	if err := json.Unmarshal([]byte(readFile(t, "k8s/chart/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // every chart gets it from the one above
	sameNames(t, "", values, schema)
}

func sameNames(t *testing.T, path string, values map[string]any, s schemaOf) {
	t.Helper()
	if len(s.Properties) == 0 {
		return // whatever Kubernetes takes
	}
	a, b := slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(s.Properties))
	if !slices.Equal(a, b) {
		t.Errorf("below %q values.yaml has %q, the schema %q", path, a, b)
	}
	for name, v := range values {
		if below, ok := v.(map[string]any); ok {
			sameNames(t, path+"."+name, below, s.Properties[name])
		}
	}
}
