package config

// Setting is one line of the report.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`            // a secret is shown as xxxxx
	Source string `json:"source"`           // default, file, secrets, environment or flag
	From   string `json:"from,omitempty"`   // file:line, file of the secrets folder, variable or flag; "" for a default
	Secret bool   `json:"secret,omitempty"` // the value is, or has in it, a secret
}

// reportOf lists the settings of a Config and where each came from.
func (l *loader) reportOf(c Config) []Setting {
	var report []Setting
	for _, r := range l.rows {
		if c.Redis.URI != "" && (r.name == redisHost || r.name == redisPort) {
			continue // not in effect
		}
		raw := r.value(&c)
		shown := l.redact(r, raw)
		report = append(report, l.settingOf(r.name, shown, r.kind == kindSecret || shown != raw))
	}
	for _, e := range l.bound {
		report = append(report, l.elementReport(e)...)
	}
	return report
}

func (l *loader) settingOf(name, shown string, secret bool) Setting {
	g := l.used[name]
	return Setting{Name: name, Value: shown, Source: g.source.String(), From: g.at, Secret: secret}
}

func (l *loader) elementReport(e element) []Setting {
	report := []Setting{l.settingOf(e.name+"."+e.of.id, e.pattern.text, false)}
	for _, flat := range e.of.names()[1:] {
		if text, ok := e.settings[flat]; ok {
			report = append(report, l.settingOf(e.name+"."+flat, text, false))
		}
	}
	return report
}
