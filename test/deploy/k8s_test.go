package deploy

import (
	"encoding/base64"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// kubeconform judges manifests by the schemas of a Kubernetes release.
func kubeconform(t *testing.T, manifests string) (report string, err error) {
	t.Helper()
	schemas, err := filepath.Abs(filepath.Join(root, ".tools", "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(schemas); err != nil {
		t.Fatal("the schemas of Kubernetes are not there: run make setup-deploy")
	}
	cmd := exec.Command(tool(t, "kubeconform"), "-strict", "-summary", "-schema-location", schemas+"/{{.ResourceKind}}{{.KindSuffix}}.json")
	cmd.Stdin = strings.NewReader(manifests)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestEveryManifestIsValid(t *testing.T) {
	all := rendered(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		report, err := kubeconform(t, all[name])
		if err != nil || !strings.Contains(report, "Invalid: 0, Errors: 0, Skipped: 0") || strings.Contains(report, "Valid: 0") {
			t.Errorf("%s: %v\n%s", name, err, report)
		}
	}
}

// The judge is not a rubber stamp.
func TestWhatIsMisspeltIsInvalid(t *testing.T) {
	good := kustomize(t, root+"/k8s/overlays/deployment")
	for right, wrong := range map[string]string{
		"failureThreshold: 30":           "failureTreshold: 30",
		"replicas: 2":                    `replicas: "2"`,
		"podMetricsEndpoints:":           "podMetricEndpoints:",
		"unhealthyPodEvictionPolicy":     "unhealthyPodEvictionPolcy",
		"automountServiceAccountToken: ": "automountToken: ",
		"sizeLimit: 2Gi":                 "sizeLimt: 2Gi",
	} {
		bad := strings.ReplaceAll(good, right, wrong)
		if bad == good {
			t.Errorf("%q is nowhere", right)
		}
		if report, err := kubeconform(t, bad); err == nil {
			t.Errorf("%s passes:\n%s", wrong, report)
		}
	}
}

// settingsDir writes the files that a container finds below
// /etc/korvet-offload: the settings, and the Secret where there is one.
func settingsDir(t *testing.T, all []object) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(sub, name, text string) {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, sub, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		for name, value := range o.Data {
			switch {
			case o.Kind == "ConfigMap":
				// A certificate that is there, for those of the volumes.
				write("settings", name, strings.ReplaceAll(value, "/etc/ca/ca.crt", "/etc/ssl/certs/ca-certificates.crt"))
			case o.Kind == "Secret" && strings.HasPrefix(o.Metadata.Name, "korvet-offload"):
				text, err := base64.StdEncoding.DecodeString(value)
				if err != nil {
					t.Fatal(err)
				}
				write("secrets", name, string(text))
			}
		}
	}
	return dir
}

// environ is the environment of a container, with its files below a folder
// of the test.
func (c container) environ(dir string) (vars []string) {
	for _, e := range c.Env {
		value := strings.ReplaceAll(e.Value, "/etc/korvet-offload", dir)
		if e.ValueFrom.Kind != 0 {
			value = "1000000000" // whatever it is: the test knows the name
		}
		vars = append(vars, e.Name+"="+value)
	}
	return vars
}

func TestTheProgramKnowsEverySettingOfTheManifests(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		dir := settingsDir(t, all)
		for _, c := range ours(t, all) {
			for _, e := range c.Env {
				known := []string{"KORVET_OFFLOAD_CONFIG", "KORVET_OFFLOAD_SECRETS_DIR", "GOMEMLIMIT"}
				if !slices.Contains(known, e.Name) && !strings.HasPrefix(e.Name, "KORVET_STORAGE_") && e.Name != "KORVET_NAMESPACE" {
					t.Errorf("nobody reads %s", e.Name)
				}
			}
			environ := c.environ(dir)
			if !slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, "KORVET_OFFLOAD_CONFIG="+dir) }) {
				t.Errorf("%q: no settings file", environ)
			}
			cmd := exec.Command(program(t), "config", "check", "--set", "korvet.storage.remote-path=s3://for/sure")
			cmd.Env = environ
			out, err := cmd.CombinedOutput()
			if err != nil || strings.Contains(string(out), "warning") {
				t.Errorf("config check: %v\n%s", err, out)
			}
			if !strings.Contains(string(out), "korvet.storage.offload.http.address  ") {
				t.Errorf("config check says nothing of the address:\n%s", out)
			}
		}
	})
}

// Nobody starts without being told where the files go.
func TestOverlaysSayWhereTheFilesGo(t *testing.T) {
	for _, dir := range overlays(t) {
		text := readFile(t, "k8s/overlays/"+filepath.Base(dir)+"/korvet-offload.yml")
		if !strings.Contains(text, "remote-path: s3://") || !strings.Contains(text, "uri: redis") {
			t.Errorf("%s:\n%s", dir, text)
		}
	}
}
