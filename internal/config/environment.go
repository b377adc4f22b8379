package config

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// readEnvironment takes the settings among the environment variables, in
// order of their names.
func (l *loader) readEnvironment(environ []string) {
	services := map[string][]string{}
	for _, e := range slices.Sorted(slices.Values(environ)) {
		variable, text, _ := strings.Cut(e, "=")
		if service := serviceOf(variable, text); service != "" {
			services[service] = append(services[service], variable)
			continue
		}
		l.readVariable(variable, text)
	}
	for _, s := range slices.Sorted(maps.Keys(services)) {
		l.warn("environment: %s and others like it (%d in all) are passed over: Kubernetes made them of the Service %s; enableServiceLinks: false in the pod keeps them away",
			printable(services[s][0]), len(services[s]), printable(strings.ToLower(strings.ReplaceAll(s, "_", "-"))))
	}
}

// noVariable is what is wrong with a variable that looks like one of ours.
const noVariable = "there is no setting of this environment variable"

func (l *loader) readVariable(variable, text string) {
	upper := strings.ToUpper(variable)
	f := leaf{text: text, at: printable(variable)}
	if n, ok := l.byEnv[upper]; ok {
		l.take(named{n.row, n.row.name}, f, sourceEnvironment, 0)
		return
	}
	section, rest, below := strings.Cut(strings.TrimPrefix(upper, "KORVET_"), "_")
	section = strings.ToLower(section)
	of := func(to *list) bool { return below && to.section == section }
	switch i := slices.IndexFunc(l.lists(), of); {
	case !strings.HasPrefix(upper, "KORVET_"):
	case i >= 0:
		l.readElementVariable(l.lists()[i], rest, f)
	case l.isBrokerVariable(upper):
	case below && slices.Contains(strictSections(), section):
		l.fault("%s: %s; %s", f.at, noVariable, proposal(nearest(upper, l.variables, func(string) int { return 4 })))
	default:
		if near := nearest(upper, l.variables, slip); near != "" {
			l.warn("environment: %s is passed over as none of this program's settings; did you mean %s?", f.at, near)
		}
	}
}

// isBrokerVariable says whether a variable sets something of the broker's.
func (l *loader) isBrokerVariable(upper string) bool {
	for _, name := range []string{
		"STORAGE_LOCAL", "STORAGE_REMOTE_ICEBERG", "STORAGE_REMOTE_METRICS", "STORAGE_REMOTE_INDEX",
		"STORAGE_REMOTE_S3_CREDENTIALS", "STORAGE_S3_CREDENTIALS", "REDIS_POOL", "REDIS_IO_THREADS", "REDIS_IOTHREADS", "REDIS_CIRCUIT_BREAKER", "REDIS_CIRCUITBREAKER", "REDIS_METRICS",
	} {
		if upper == "KORVET_"+name || strings.HasPrefix(upper, "KORVET_"+name+"_") {
			return true
		}
	}
	return false
}

// serviceLink is the family of variables by which Kubernetes tells every pod
// of the Services around it. A Service called korvet-redis gives
// KORVET_REDIS_SERVICE_HOST and, worse, KORVET_REDIS_PORT=tcp://....
var serviceLink = regexp.MustCompile(`^(KORVET_(?:STORAGE|REDIS|TOPICS|STREAMS)[A-Z0-9_]*?)_(?:SERVICE_HOST|SERVICE_PORT(?:_[A-Z0-9_]+)?|PORT|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)$`)

var serviceAddress = regexp.MustCompile(`^(?:tcp|udp|sctp)://`)

// serviceOf is the beginning of a service-link variable, "" for any other.
func serviceOf(variable, text string) string {
	m := serviceLink.FindStringSubmatch(variable)
	if m == nil || variable == m[1]+"_PORT" && !serviceAddress.MatchString(text) {
		return ""
	}
	return m[1]
}
