package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What docs/kubernetes.md says to change in an overlay can be changed like that.
func TestThePagesPatchApplies(t *testing.T) {
	block := regexp.MustCompile("(?s)```yaml\n(images:.*?)```").FindStringSubmatch(readFile(t, "docs/kubernetes.md"))
	if block == nil {
		t.Fatal("docs/kubernetes.md has no block that begins with images:")
	}
	here, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := filepath.Abs(root + "/k8s/overlays/deployment")
	if err != nil {
		t.Fatal(err)
	}
	base, err := filepath.Rel(here, overlay)
	if err != nil {
		t.Fatal(err)
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	text := "resources: [" + base + "]\n" + strings.Replace(block[1], "sha256:...", digest, 1)
	if err := os.WriteFile(filepath.Join(here, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := kustomize(t, here)
	for want, there := range map[string]bool{"image: registry.example/korvet-offload@" + digest: true, "port: 9000": true, "port: 6380": true, "port: 443\n": false, "port: 6379\n": false} {
		if strings.Contains(out, want) != there {
			t.Errorf("%s: want %t in\n%s", want, there, out)
		}
	}
}

// The commands that put an address before runbook_url find every one of them.
func TestTheRunbooksAddressIsReplaced(t *testing.T) {
	command := regexp.MustCompile("sed -i '(s#[^']*)'")
	for page, files := range map[string][]string{
		"docs/kubernetes.md":          {"k8s/components/monitoring/prometheusrule.yaml", "k8s/chart/files/rules.yml", "deploy/monitoring/rules.yml"},
		"k8s/chart/README.md":         {"k8s/chart/files/rules.yml"},
		"deploy/monitoring/README.md": {"deploy/monitoring/rules.yml"},
	} {
		m := command.FindStringSubmatch(readFile(t, page))
		if m == nil {
			t.Fatalf("%s has no such command", page)
		}
		for _, file := range files {
			all := strings.Count(readFile(t, file), "runbook_url: ")
			out := output(t, "sed", m[1], filepath.Join(root, file))
			if n := strings.Count(out, "runbook_url: https://git.example/korvet-offload/docs/runbook.md#"); n != all || n == 0 {
				t.Errorf("%s, %s: %d of %d addresses", page, file, n, all)
			}
		}
	}
}
