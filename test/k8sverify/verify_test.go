package k8sverify

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// manifests are what can be applied, by what it is made of.
func manifests(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range glob(t, "k8s/overlays/*") {
		all["overlay "+filepath.Base(dir)] = c.must(t, "", "kustomize", dir)
	}
	for _, values := range glob(t, "k8s/chart/ci/*-values.yaml") {
		cmd := exec.Command(filepath.Join(root, ".tools", "helm"), "template", "try", filepath.Join(root, "k8s/chart"), "--namespace", "korvet", "--values", values)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("helm template (make setup-deploy installs it): %v", err)
		}
		all["chart with "+filepath.Base(values)] = string(out)
	}
	return all
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil || len(found) < 3 {
		t.Fatalf("%s: %q, %v", pattern, found, err)
	}
	return found
}

const operatorVersion = "v0.85.0"

// definitions are those of the Prometheus operator.
func definitions(t *testing.T) (files []string) {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator@"+operatorVersion)
	cmd.Dir = t.TempDir() // it is no part of this module
	out, err := cmd.Output()
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &module)
	}
	if err != nil {
		t.Fatalf("download the Prometheus operator: %v", err)
	}
	dir := filepath.Join(module.Dir, "example", "prometheus-operator-crd")
	return []string{dir + "/monitoring.coreos.com_podmonitors.yaml", dir + "/monitoring.coreos.com_prometheusrules.yaml"}
}

// prepare makes what a cluster has before anything is applied: the namespaces,
// which take restricted Pods only, and the Prometheus operator's kinds.
func prepare(t *testing.T, c *cluster) {
	t.Helper()
	for _, file := range definitions(t) {
		c.must(t, "", "create", "-f", file)
	}
	c.must(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/podmonitors.monitoring.coreos.com", "crd/prometheusrules.monitoring.coreos.com")
	for _, name := range []string{"korvet", "korvet-try"} {
		c.must(t, "", "create", "namespace", name)
		c.must(t, "", "create", "serviceaccount", "default", "--namespace", name) // a controller's work, elsewhere
		c.must(t, "", "label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted", "pod-security.kubernetes.io/warn=restricted")
	}
}

func TestAClusterTakesEverything(t *testing.T) {
	c := newCluster(t)
	prepare(t, c)
	all := manifests(t, c)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) {
			namespace := "korvet"
			if strings.HasSuffix(name, "minio") {
				namespace = "korvet-try"
			}
			// Pods are admitted with the account that is there.
			if account := ofKind(t, c, namespace, all[name], "ServiceAccount"); len(account) == 1 {
				c.must(t, account[0], "apply", "--server-side", "--namespace", namespace, "-f", "-")
			}
			out, err := c.kubectl(all[name], "apply", "--server-side", "--dry-run=server", "--validate=strict", "--namespace", namespace, "-f", "-")
			if err != nil || strings.Contains(out, "Warning") {
				t.Fatalf("%v\n%s", err, out)
			}
			podsAreAdmitted(t, c, all[name], namespace)
		})
	}
	t.Run("the account may do nothing", func(t *testing.T) { mayDoNothing(t, c) })
	t.Run("nonsense is refused", func(t *testing.T) {
		bad := strings.ReplaceAll(all["overlay deployment"], "sizeLimit: 2Gi", "sizeLimit: -2Gi")
		if out, err := c.kubectl(bad, "apply", "--server-side", "--dry-run=server", "--namespace", "korvet", "-f", "-"); err == nil {
			t.Errorf("a spool of less than nothing is taken:\n%s", out)
		}
	})
}

// ofKind are the objects of a kind, as JSON.
func ofKind(t *testing.T, c *cluster, namespace, text, kind string) (found []string) {
	t.Helper()
	out := c.must(t, text, "create", "--namespace", namespace, "--dry-run=client", "--validate=false", "-o", "json", "-f", "-")
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var o struct {
			Kind  string
			Items []json.RawMessage
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(raw, &o); err != nil {
			t.Fatal(err)
		}
		if o.Kind == kind {
			found = append(found, string(raw))
		}
	}
	return found
}

// podsAreAdmitted makes the Pods that a controller would make: only of Pods
// does the server say whether they may run.
func podsAreAdmitted(t *testing.T, c *cluster, text, namespace string) {
	t.Helper()
	n := 0
	for _, kind := range []string{"Deployment", "StatefulSet", "Job"} {
		for _, o := range ofKind(t, c, namespace, text, kind) {
			var w struct {
				Spec struct {
					Template struct{ Metadata, Spec map[string]any }
				}
			}
			if err := json.Unmarshal([]byte(o), &w); err != nil {
				t.Fatal(err)
			}
			n++
			template := w.Spec.Template
			template.Metadata["name"] = fmt.Sprintf("pod-%d", n)
			if kind == "StatefulSet" { // its controller adds the volumes of the claims
				volumes, _ := template.Spec["volumes"].([]any)
				template.Spec["volumes"] = append(volumes, map[string]any{"name": "data", "emptyDir": map[string]any{}})
			}
			pod, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": template.Metadata, "spec": template.Spec})
			if err != nil {
				t.Fatal(err)
			}
			if out, err := c.kubectl(string(pod), "create", "--dry-run=server", "--namespace", namespace, "-f", "-"); err != nil || strings.Contains(out, "Warning") {
				t.Errorf("a Pod of %s: %v\n%s", kind, err, out)
			}
		}
	}
	if n == 0 {
		t.Error("nothing makes a Pod")
	}
}

// mayDoNothing asks, as the ServiceAccount, for what matters.
func mayDoNothing(t *testing.T, c *cluster) {
	as := "--as=system:serviceaccount:korvet:korvet-offload"
	for _, what := range [][]string{{"*", "*"}, {"get", "secrets"}, {"list", "pods"}, {"create", "pods"}, {"update", "leases.coordination.k8s.io"}, {"get", "configmaps"}} {
		out, err := c.kubectl("", append([]string{"auth", "can-i", "--all-namespaces", as}, what...)...)
		if err == nil || !strings.HasPrefix(strings.TrimSpace(lastLine(out)), "no") {
			t.Errorf("%q: %v, %s", what, err, out)
		}
	}
	if out := c.must(t, "", "auth", "can-i", "get", "secrets", "--namespace", "korvet"); lastLine(out) != "yes" {
		t.Errorf("the administrator may not either, so the above says nothing: %s", out)
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
