package deploy

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// selects says whether a selector picks a Pod.
func (l labelled) selects(p pod) bool {
	for name, value := range l.MatchLabels {
		if p.labels[name] != value {
			return false
		}
	}
	return true
}

// Whatever is meant for the Pods of the program finds them: a selector that
// matches nothing is no error to anybody.
func TestSelectorsFindTheirPods(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		var p pod
		for _, found := range pods(t, all) {
			if slices.ContainsFunc(found.all(), container.runsOurs) {
				p = found
			}
		}
		policies := 0
		for _, o := range all {
			var spec struct {
				Selector labelled
				Pods     struct {
					MatchLabels map[string]string `yaml:"matchLabels"`
					Expressions []any             `yaml:"matchExpressions"`
				} `yaml:"podSelector"`
			}
			switch o.Kind {
			case "Deployment", "StatefulSet":
				if strings.HasSuffix(p.from, " "+o.Metadata.Name) {
					o.decode(t, &spec)
					if len(spec.Selector.MatchLabels) == 0 || !spec.Selector.selects(p) {
						t.Errorf("%s selects %v", o.Kind, spec.Selector)
					}
				}
			case "PodDisruptionBudget", "PodMonitor":
				o.decode(t, &spec)
				if len(spec.Selector.MatchLabels) == 0 || !spec.Selector.selects(p) {
					t.Errorf("%s selects %v, not %v", o.Kind, spec.Selector, p.labels)
				}
			case "NetworkPolicy":
				o.decode(t, &spec)
				if l := (labelled{spec.Pods.MatchLabels}); len(l.MatchLabels) > 0 && l.selects(p) {
					policies++
				}
				if len(spec.Pods.MatchLabels)+len(spec.Pods.Expressions) == 0 {
					t.Errorf("%s is for every Pod of the namespace", o.Metadata.Name)
				}
			}
		}
		if want := len(ofKind(all, "NetworkPolicy")); policies == 0 && want > 0 {
			t.Errorf("no NetworkPolicy is for %s", p.from)
		}
		for _, s := range p.Spread {
			if !s.LabelSelector.selects(p) {
				t.Errorf("%s spreads %v", p.from, s)
			}
		}
	})
}

// The sidecar is the container of the base, but for what its place asks for.
func TestTheSidecarIsTheSameContainer(t *testing.T) {
	sidecar := ours(t, objects(t, kustomize(t, root+"/k8s/overlays/sidecar")))[0]
	alone := ours(t, objects(t, kustomize(t, root+"/k8s/overlays/deployment")))[0]
	if sidecar.RestartPolicy != "Always" || sidecar.SecurityContext.User != 65532 {
		t.Errorf("%+v", sidecar)
	}
	for _, c := range []*container{&sidecar, &alone} {
		c.RestartPolicy, c.Readiness, c.SecurityContext.User = "", nil, 0
		for i := range c.Env {
			c.Env[i].ValueFrom = yaml.Node{}
		}
	}
	if !reflect.DeepEqual(sidecar, alone) {
		t.Errorf("%+v\n%+v", sidecar, alone)
	}
}

// policy is what the tests read of a NetworkPolicy.
type policy struct {
	Egress []struct {
		Ports []struct{ Port string }
		To    []struct {
			Pods labelled `yaml:"podSelector"`
		}
	}
}

// outward are the rules for what goes out: by port, the labels of the Pods
// that it may go to. What goes to no Pods has none.
func outward(t *testing.T, all []object) map[string]map[string]string {
	t.Helper()
	found := map[string]map[string]string{}
	for _, o := range ofKind(all, "NetworkPolicy") {
		var spec policy
		o.decode(t, &spec)
		for _, rule := range spec.Egress {
			if len(rule.Ports) == 0 {
				t.Errorf("%s lets everything out", o.Metadata.Name)
			}
			for _, p := range rule.Ports {
				found[p.Port] = map[string]string{}
				for _, to := range rule.To {
					maps.Copy(found[p.Port], to.Pods.MatchLabels)
				}
			}
		}
	}
	return found
}

func TestWhatGoesOutIsNamed(t *testing.T) {
	const name = "app.kubernetes.io/name"
	dns, anywhere := map[string]string{"k8s-app": "kube-dns"}, map[string]string{}
	redis, minio := map[string]string{name: "redis"}, map[string]string{name: "minio"}
	for overlay, want := range map[string]map[string]map[string]string{
		"deployment": {"53": dns, "6379": redis, "443": anywhere},
		"eks":        {"53": dns, "6379": anywhere, "443": anywhere},
		"minio":      {"53": dns, "6379": redis, "443": anywhere, "9000": minio},
		"sidecar":    {"53": dns, "443": anywhere},
	} {
		if got := outward(t, objects(t, kustomize(t, root+"/k8s/overlays/"+overlay))); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v goes out, want %v", overlay, got, want)
		}
	}
	want := map[string]map[string]string{"53": dns, "6379": anywhere, "443": anywhere}
	if got := outward(t, objects(t, helm(t, chart+"/ci/s3-values.yaml"))); !reflect.DeepEqual(got, want) {
		t.Errorf("the chart: %v goes out, want %v", got, want)
	}
}
