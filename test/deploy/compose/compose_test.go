// Package compose holds compose.yml against the Compose specification, by the
// loader that docker compose itself uses. It is a module of its own, since
// nothing else needs that loader.
package compose

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

const dir = "../../../deploy/compose"

// load reads a compose file as docker compose does: by the specification's schema,
// with every reference resolved.
func load(t *testing.T, file string) (*types.Project, error) {
	t.Helper()
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv, cli.WithoutEnvironmentResolution, cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(context.Background())
}

func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, filepath.Join(dir, "compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestComposeFileIsValid(t *testing.T) {
	p := project(t)
	want := []string{"bucket", "grafana", "korvet-offload", "minio", "producer", "prometheus", "redis"}
	if names := p.ServiceNames(); !slices.Equal(names, want) {
		t.Errorf("services %q, want %q", names, want)
	}
}

// A loader that takes everything would prove nothing.
func TestWhatIsMisspeltIsRefused(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(dir, "compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	for right, wrong := range map[string]string{"depends_on:": "depend_on:", "condition: service_healthy": "condition: healthy", "minio: {condition": "minion: {condition"} {
		file := filepath.Join(t.TempDir(), "compose.yml")
		if err := os.WriteFile(file, []byte(strings.Replace(string(text), right, wrong, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(t, file); err == nil {
			t.Errorf("%s is not refused", wrong)
		}
	}
}

// What is mounted is there, and what is built has a Dockerfile.
func TestMountedFilesAreThere(t *testing.T) {
	for name, s := range project(t).Services {
		for _, v := range s.Volumes {
			if _, err := os.Stat(v.Source); v.Type == types.VolumeTypeBind && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.Build == nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(s.Build.Context, s.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Nothing is to be reached from another machine: the keys are in the file.
func TestPortsAreOnLoopback(t *testing.T) {
	for name, s := range project(t).Services {
		for _, port := range s.Ports {
			if port.HostIP != "127.0.0.1" {
				t.Errorf("%s: port %s is open to %q", name, port.Published, port.HostIP)
			}
		}
	}
}

// Several instances share a range of ports, which is on the loopback, too.
func TestPortsForSeveralInstances(t *testing.T) {
	for set, want := range map[string]string{"": "9477", "9477-9478": "9477-9478"} {
		t.Setenv("KORVET_PORTS", set)
		ports := project(t).Services["korvet-offload"].Ports
		if len(ports) != 1 || ports[0].Published != want || ports[0].Target != 9477 || ports[0].HostIP != "127.0.0.1" {
			t.Errorf("KORVET_PORTS=%s: %+v", set, ports)
		}
	}
}

// Images have a version, so that tomorrow's are not others.
func TestImagesArePinned(t *testing.T) {
	for name, s := range project(t).Services {
		if _, tag, _ := strings.Cut(s.Image, ":"); s.Build == nil && (tag == "" || tag == "latest") {
			t.Errorf("%s: image %q", name, s.Image)
		}
	}
}

// The program's container is as locked down as those of Kubernetes.
func TestTheProgramIsLockedDown(t *testing.T) {
	s := project(t).Services["korvet-offload"]
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
		t.Errorf("read-only %t, dropped %q, security %q", s.ReadOnly, s.CapDrop, s.SecurityOpt)
	}
}

// Grafana finds the data source and the dashboard where they are mounted.
func TestGrafanaIsProvisioned(t *testing.T) {
	p := project(t)
	mounts := map[string]string{}
	for _, v := range p.Services["grafana"].Volumes {
		mounts[v.Target] = v.Source
	}
	const board = "/dashboards/dashboard.json"
	if home := p.Services["grafana"].Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"]; home == nil || *home != board || filepath.Base(mounts[board]) != "dashboard.json" {
		t.Errorf("the dashboard is not mounted at %s: %v", board, mounts)
	}
	for file, want := range map[string]string{"dashboards/korvet-offload.yml": "path: /dashboards\n", "datasources/prometheus.yml": "url: http://prometheus:9090\n"} {
		text, err := os.ReadFile(filepath.Join(mounts["/etc/grafana/provisioning"], file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v, want %s in\n%s", file, err, want, text)
		}
	}
}
