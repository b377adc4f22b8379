package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const monitoringDir = "deploy/monitoring/"

// alert is one alert of the rules.
type alert struct {
	Alert       string            `yaml:"alert"`
	Record      string            `yaml:"record"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func alerts(t *testing.T) (all []alert) {
	t.Helper()
	var file struct {
		Groups []struct{ Rules []alert } `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(readFile(t, monitoringDir+"rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	if len(all) < 12 {
		t.Fatalf("%d rules", len(all))
	}
	return all
}

// promtool runs the tool in the folder of the rules.
func promtool(t *testing.T, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(tool(t, "promtool"), args...)
	cmd.Dir, cmd.Stdin = filepath.Join(root, monitoringDir), strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, out)
	}
}

func TestRulesAreValid(t *testing.T) { promtool(t, "", "check", "rules", "--lint-fatal", "rules.yml") }

func TestAlertsFireAndDoNot(t *testing.T) { promtool(t, "", "test", "rules", "rules_test.yml") }

// Each alert has a test in which it fires and one in which it does not.
func TestEveryAlertIsTested(t *testing.T) {
	text := readFile(t, monitoringDir+"rules_test.yml")
	for _, a := range alerts(t) {
		for _, what := range []string{"fires", "does not fire"} {
			if name := fmt.Sprintf("- name: %s (%s) %s\n", a.Alert, a.Labels["severity"], what); !strings.Contains(text, name) {
				t.Errorf("there is no %s", name)
			}
		}
	}
}

func TestAlertsSayWhatTheyMean(t *testing.T) {
	for _, a := range alerts(t) {
		if s := a.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", a.Alert, s)
		}
		if a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: no summary or description", a.Alert)
		}
		if want := "docs/runbook.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
	}
}

// The runbook begins with what happened, and then has a section for each alert, and
// for nothing else, and each says what it means, what to look at and what to do.
func TestTheRunbookHasEveryAlert(t *testing.T) {
	var named, sections []string
	for _, a := range alerts(t) {
		named = append(named, a.Alert)
	}
	all := strings.Split(readFile(t, "docs/runbook.md"), "\n## ")[1:]
	if !strings.HasPrefix(all[0], "What happened, and what to type\n") {
		t.Errorf("the first section is %.40q", all[0])
	}
	for _, s := range all[1:] {
		title, text, _ := strings.Cut(s, "\n")
		sections = append(sections, title)
		for _, part := range []string{"\n**Means**: ", "\n**Look at**: ", "\n**Do**: "} {
			if strings.Count(text, part) != 1 {
				t.Errorf("%s: want one %s", title, strings.TrimSpace(part))
			}
		}
	}
	if named = slices.Compact(named); !slices.Equal(named, sections) {
		t.Errorf("alerts  %q\nrunbook %q", named, sections)
	}
}

func TestRulesNameWhatThereIs(t *testing.T) {
	c := readCatalogue(t)
	for _, a := range alerts(t) {
		for _, wrong := range c.check(a.Expr) {
			t.Errorf("%s: %s", a.Alert, wrong)
		}
	}
}

// Kubernetes gets the same rules: as a PrometheusRule, and in the chart.
func TestTheRulesOfKubernetesAreTheSame(t *testing.T) {
	rules := readFile(t, monitoringDir+"rules.yml")
	mustBeCurrent(t, "k8s/chart/files/rules.yml", rules)
	const manifest = "k8s/components/monitoring/prometheusrule.yaml"
	head, _, ok := strings.Cut(readFile(t, manifest), "\nspec:\n")
	if !ok {
		t.Fatalf("%s has no spec", manifest)
	}
	var spec strings.Builder
	for line := range strings.Lines(rules) {
		if line != "\n" {
			line = "  " + line
		}
		spec.WriteString(line)
	}
	mustBeCurrent(t, manifest, head+"\nspec:\n"+spec.String())
}

// dashboard is what of a dashboard is checked.
type dashboard struct {
	UID           string `json:"uid"`
	Title         string `json:"title"`
	SchemaVersion int    `json:"schemaVersion"`
	Templating    struct {
		List []struct{ Name, Type, Definition string } `json:"list"`
	} `json:"templating"`
	Panels []panel `json:"panels"`
}

type panel struct {
	ID          int                            `json:"id"`
	Type        string                         `json:"type"`
	Title       string                         `json:"title"`
	Description string                         `json:"description"`
	GridPos     struct{ H, W, X, Y int }       `json:"gridPos"`
	Targets     []struct{ Expr, RefID string } `json:"targets"`
	FieldConfig struct {
		Defaults struct {
			Unit       string `json:"unit"`
			NoValue    string `json:"noValue"`
			Thresholds *struct {
				Steps []struct {
					Color string   `json:"color"`
					Value *float64 `json:"value"`
				} `json:"steps"`
			} `json:"thresholds"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(readFile(t, monitoringDir+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDashboardNamesWhatThereIs(t *testing.T) {
	c, d := readCatalogue(t), readDashboard(t)
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			for _, wrong := range c.check(q.Expr) {
				t.Errorf("panel %q: %s", p.Title, wrong)
			}
		}
	}
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
		if v.Type == "query" {
			for _, wrong := range c.check(v.Definition) {
				t.Errorf("variable %s: %s", v.Name, wrong)
			}
		}
	}
	if want := []string{"datasource", "job", "topic"}; !slices.Equal(names, want) {
		t.Errorf("variables %q, want %q", names, want)
	}
}

func TestDashboardIsSound(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || d.SchemaVersion < 30 {
		t.Errorf("%s %s %d", d.UID, d.Title, d.SchemaVersion)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for i, p := range d.Panels {
		if ids[p.ID] || titles[p.Title] || p.Title == "" || p.ID == 0 {
			t.Errorf("panel %d %q: id and title are to be its own", p.ID, p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		for _, other := range d.Panels[:i] {
			if overlap(p, other) {
				t.Errorf("panels %q and %q overlap", p.Title, other.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		def := p.FieldConfig.Defaults
		if p.Description == "" || def.Unit == "" || def.NoValue == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q: want a description, a unit, a text for no value, and a query", p.Title)
		}
		if p.Type != "timeseries" && def.Thresholds == nil {
			t.Errorf("panel %q: want thresholds", p.Title)
		}
		if s := def.Thresholds; s != nil && (len(s.Steps) == 0 || s.Steps[0].Value != nil) {
			t.Errorf("panel %q: its first threshold has to be without value", p.Title)
		}
	}
}

func overlap(a, b panel) bool {
	p, q := a.GridPos, b.GridPos
	return p.X < q.X+q.W && q.X < p.X+p.W && p.Y < q.Y+q.H && q.Y < p.Y+p.H || p.X+p.W > 24
}
