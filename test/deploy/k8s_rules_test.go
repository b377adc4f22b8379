package deploy

import (
	"reflect"
	"testing"

	"go.yaml.in/yaml/v3"
)

// ruleGroups are the groups of a rules file, or of a PrometheusRule's spec.
type ruleGroups struct{ Groups []any }

// What reaches Kubernetes is what deploy/monitoring has: the template of the
// chart indents it, kustomize sorts it.
func TestRenderedRulesAreTheRules(t *testing.T) {
	var want ruleGroups
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/monitoring/rules.yml")), &want); err != nil || len(want.Groups) == 0 {
		t.Fatalf("%v, %v", want, err)
	}
	for name, text := range map[string]string{
		"overlay": kustomize(t, root+"/k8s/overlays/deployment"),
		"chart":   helm(t, chart+"/ci/s3-values.yaml"),
	} {
		all := ofKind(objects(t, text), "PrometheusRule")
		if len(all) != 1 {
			t.Fatalf("%s: %d PrometheusRules", name, len(all))
		}
		var got ruleGroups
		all[0].decode(t, &got)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
}
