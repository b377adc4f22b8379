package deploy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// podSpec is what the tests read of a Pod.
type podSpec struct {
	Automount       *bool    `yaml:"automountServiceAccountToken"`
	ServiceLinks    *bool    `yaml:"enableServiceLinks"`
	Grace           int      `yaml:"terminationGracePeriodSeconds"`
	RestartPolicy   string   `yaml:"restartPolicy"`
	HostNetwork     bool     `yaml:"hostNetwork"`
	HostPID         bool     `yaml:"hostPID"`
	SecurityContext security `yaml:"securityContext"`
	Spread          []struct {
		LabelSelector labelled `yaml:"labelSelector"`
	} `yaml:"topologySpreadConstraints"`
	InitContainers []container `yaml:"initContainers"`
	Containers     []container
	Volumes        []struct {
		Name     string
		HostPath map[string]any `yaml:"hostPath"`
		EmptyDir struct {
			SizeLimit string `yaml:"sizeLimit"`
		} `yaml:"emptyDir"`
	}
}

// security is a securityContext, of a Pod or of a container.
type security struct {
	NonRoot    bool  `yaml:"runAsNonRoot"`
	User       int   `yaml:"runAsUser"`
	Escalation *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnly   bool  `yaml:"readOnlyRootFilesystem"`
	Privileged bool
	Seccomp    struct{ Type string }        `yaml:"seccompProfile"`
	Caps       struct{ Add, Drop []string } `yaml:"capabilities"`
}

type container struct {
	Name, Image   string
	Args          []string
	RestartPolicy string `yaml:"restartPolicy"`
	Env           []struct {
		Name, Value string
		ValueFrom   yaml.Node `yaml:"valueFrom"`
	}
	Ports []struct {
		Name string
		Port int `yaml:"containerPort"`
	}
	Resources       struct{ Requests, Limits map[string]string }
	SecurityContext security                `yaml:"securityContext"`
	Startup         *probe                  `yaml:"startupProbe"`
	Readiness       *probe                  `yaml:"readinessProbe"`
	Liveness        *probe                  `yaml:"livenessProbe"`
	Mounts          []struct{ Name string } `yaml:"volumeMounts"`
}

type probe struct {
	HTTP struct{ Path, Port, Scheme string } `yaml:"httpGet"`
	Exec yaml.Node                           `yaml:"exec"`
	TCP  yaml.Node                           `yaml:"tcpSocket"`
}

// pod is a Pod that something rendered makes.
type pod struct {
	from   string // kind and name
	kind   string
	labels map[string]string
	podSpec
}

// pods are the Pods of all objects that make any.
func pods(t *testing.T, all []object) (found []pod) {
	t.Helper()
	for _, o := range all {
		p := pod{from: o.Kind + " " + o.Metadata.Name, kind: o.Kind}
		switch o.Kind {
		case "Pod":
			o.decode(t, &p.podSpec)
			p.labels = o.Metadata.Labels
		case "Deployment", "StatefulSet", "Job", "DaemonSet", "CronJob":
			var w workload
			o.decode(t, &w)
			p.podSpec, p.labels = w.Template.Spec, w.Template.Metadata.Labels
		default:
			continue
		}
		found = append(found, p)
	}
	return found
}

// all are the containers of a Pod.
func (p pod) all() []container { return slices.Concat(p.InitContainers, p.Containers) }

// runsOurs says whether a container is the program as a daemon.
func (c container) runsOurs() bool { return c.Name == "korvet-offload" }

// ours are the containers that run the program as a daemon.
func ours(t *testing.T, all []object) (found []container) {
	t.Helper()
	for _, p := range pods(t, all) {
		for _, c := range p.all() {
			if c.runsOurs() {
				found = append(found, c)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d containers of the program, want 1", len(found))
	}
	return found
}

func TestEveryPodIsLockedDown(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		for _, p := range pods(t, all) {
			if p.Automount == nil || *p.Automount || p.ServiceLinks == nil || *p.ServiceLinks || p.HostNetwork || p.HostPID ||
				p.SecurityContext.Seccomp.Type != "RuntimeDefault" || !p.SecurityContext.NonRoot || p.SecurityContext.User == 0 {
				t.Errorf("%s: token %v, links %v, host %v %v, %+v", p.from, p.Automount, p.ServiceLinks, p.HostNetwork, p.HostPID, p.SecurityContext)
			}
			for _, v := range p.Volumes {
				if v.HostPath != nil {
					t.Errorf("%s: volume %s is a folder of the node", p.from, v.Name)
				}
			}
			for _, c := range p.all() {
				lockedDown(t, p.from, c)
			}
		}
	})
}

func lockedDown(t *testing.T, where string, c container) {
	t.Helper()
	s := c.SecurityContext
	if s.Escalation == nil || *s.Escalation || !s.ReadOnly || s.Privileged || len(s.Caps.Add) > 0 || !slices.Equal(s.Caps.Drop, []string{"ALL"}) {
		t.Errorf("%s, %s: %+v", where, c.Name, s)
	}
	for _, resource := range []string{"cpu", "memory"} {
		if c.Resources.Limits[resource] == "" || c.Resources.Requests[resource] == "" {
			t.Errorf("%s, %s: no bounds of %s: %+v", where, c.Name, resource, c.Resources)
		}
	}
	if ok, _ := regexp.MatchString(`(:[A-Za-z0-9][\w.-]*|@sha256:[0-9a-f]{64})$`, c.Image); !ok || strings.HasSuffix(c.Image, ":latest") {
		t.Errorf("%s, %s: image %s is whatever is there today", where, c.Name, c.Image)
	}
}

func TestProbes(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		for _, p := range pods(t, all) {
			for _, c := range p.all() {
				switch {
				case c.runsOurs():
					probesOfOurs(t, p, c)
				case p.kind != "Job" && p.kind != "Pod" && (c.Readiness == nil || c.Liveness == nil):
					t.Errorf("%s, %s has no probes", p.from, c.Name)
				}
			}
		}
	})
}

func probesOfOurs(t *testing.T, p pod, c container) {
	t.Helper()
	tls := slices.ContainsFunc(c.Mounts, func(m struct{ Name string }) bool { return m.Name == "tls" })
	asks := func(x *probe, path string) bool {
		return x != nil && x.HTTP.Path == path && x.HTTP.Port == "http" && (x.HTTP.Scheme == "HTTPS") == tls
	}
	sidecar := c.RestartPolicy == "Always"
	ready := asks(c.Readiness, "/readyz")
	if sidecar { // it would take Redis out of its Service
		ready = c.Readiness == nil
	}
	if !asks(c.Startup, "/livez") || !asks(c.Liveness, "/livez") || !ready {
		t.Errorf("%s: %+v %+v %+v", p.from, c.Startup, c.Readiness, c.Liveness)
	}
	if p.Grace <= 20 {
		t.Errorf("%s: it may take 20 seconds to stop, and has %d", p.from, p.Grace)
	}
}

// quantityUnits are those of quantities that are in use here.
var quantityUnits = map[string]float64{"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}

// quantity reads bytes as Kubernetes writes them.
func quantity(t *testing.T, text string) float64 {
	t.Helper()
	number := strings.TrimRight(text, "kKMGi")
	n, err := strconv.ParseFloat(number, 64)
	unit, ok := quantityUnits[strings.TrimPrefix(text, number)]
	if err != nil || !ok {
		t.Fatalf("%q is no size", text)
	}
	return n * unit
}

// peak is the most memory that the worker was measured to take with two CPUs
// (docs/performance.md).
const peak = 171 << 20

func TestGoKnowsItsMemoryLimit(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		for _, c := range ours(t, all) {
			limit, soft := quantity(t, c.Resources.Limits["memory"]), 0.0
			for _, e := range c.Env {
				switch {
				case e.Name != "GOMEMLIMIT":
				case e.Value != "":
					soft = quantity(t, e.Value)
				default:
					var from struct {
						Ref struct{ Resource string } `yaml:"resourceFieldRef"`
					}
					if err := e.ValueFrom.Decode(&from); err != nil || from.Ref.Resource != "requests.memory" {
						t.Fatalf("%+v, %v", from, err)
					}
					soft = quantity(t, c.Resources.Requests["memory"])
				}
			}
			if share := soft / limit; share < 0.85 || share > 0.90 || soft < 1.5*peak {
				t.Errorf("GOMEMLIMIT is %.0f of %.0f bytes; what is live can be %d", soft, limit, peak)
			}
		}
	})
}

func TestTheSpoolIsBounded(t *testing.T) {
	eachRendered(t, func(t *testing.T, all []object) {
		for _, p := range pods(t, all) {
			for _, v := range p.Volumes {
				if v.Name != "spool" {
					continue
				}
				c := ours(t, all)[0]
				if size, most := quantity(t, v.EmptyDir.SizeLimit), quantity(t, c.Resources.Limits["ephemeral-storage"]); size > most {
					t.Errorf("%s: a spool of %.0f bytes, and storage of %.0f", p.from, size, most)
				}
			}
		}
	})
}
