package config

import (
	"slices"
	"strings"

	"korvet-offload/internal/redisstore"
)

// bind makes a Config of what was given. Settings whose text can't be read
// keep their default and are marked as faulty.
func (l *loader) bind() Config {
	for i := range l.rows {
		if gs := l.given[l.rows[i].name]; len(gs) > 0 {
			l.used[l.rows[i].name] = l.choose(l.rows[i], gs)
		}
	}
	credentials := l.settleRedis()
	c := DefaultConfig()
	for _, r := range l.rows {
		g, ok := l.used[r.name]
		if !ok {
			continue
		}
		if err := r.set(&c, g.text); err != nil {
			l.fault("%s: %v", describe(r, g), err)
			l.faulty[r.name] = true
		}
	}
	credentials(&c)
	c.Topics = l.bindTopics()
	c.Streams = l.bindStreams(c.Redis.Layout)
	c.Lease.Key, c.Lease.Members = c.Redis.Layout.LeaseKey(), c.Redis.Layout.MembersKey()
	c.Redis.Shards = c.Lease.Shards
	return c
}

// choose picks the value in effect: that of the highest source, and within a
// file that of the last document. Two different values in one place are a
// fault.
func (l *loader) choose(r row, gs []given) given {
	for i, a := range gs {
		for _, b := range gs[i+1:] {
			if a.source == b.source && (a.doc == b.doc || a.name != b.name) && !r.same(a.text, b.text) {
				l.conflict(r, a, b)
			}
		}
	}
	best := gs[0]
	for _, g := range gs[1:] {
		if g.source > best.source || g.source == best.source && g.doc > best.doc {
			best = g
		}
	}
	return best
}

func (l *loader) conflict(r row, a, b given) {
	why := "the setting is given twice, with different values"
	if a.name != b.name {
		why = "these are two names of one setting, with different values"
	}
	l.fault("%s and %s: %s; keep one", describe(r, a), describe(r, b), why)
	l.faulty[r.name] = true
}

// describe names a given value: name = "text" (place), without secrets.
func describe(r row, g given) string {
	if r.kind == kindSecret || g.source == sourceSecrets {
		return g.name + " (" + g.at + ")"
	}
	return g.name + " = " + quote(r.redact(g.text)) + " (" + g.at + ")"
}

const (
	redisURI      = "korvet.redis.uri"
	redisHost     = "korvet.redis.host"
	redisPort     = "korvet.redis.port"
	redisUsername = "korvet.redis.username"
	redisPassword = "korvet.redis.password"
)

// settleRedis decides between the URI and its parts where both are given. In
// one source that is a fault. Otherwise the higher source wins: a URI puts all
// lower parts aside, lest a password goes to a server that it was not meant
// for; a host or port puts the URI aside; a user or password from a higher
// source, or of the secrets folder, goes into the URI, by the function that is
// returned.
func (l *loader) settleRedis() (credentials func(*Config)) {
	nothing := func(*Config) {}
	parts := []string{redisHost, redisPort, redisUsername, redisPassword}
	uri, ok := l.used[redisURI]
	if !ok {
		if slices.ContainsFunc(parts, func(p string) bool { _, given := l.used[p]; return given }) {
			return func(c *Config) { c.Redis.URI = "" }
		}
		return nothing
	}
	replaced := l.settleParts(uri, parts)
	_, user := l.used[redisUsername]
	_, password := l.used[redisPassword]
	switch {
	case replaced:
		delete(l.used, redisURI)
		return func(c *Config) { c.Redis.URI = "" }
	case user || password:
		return putCredentials
	}
	return nothing
}

// settleParts judges each part against the URI and says whether one of them
// replaces it.
func (l *loader) settleParts(uri given, parts []string) (replaced bool) {
	for _, name := range parts {
		part, ok := l.used[name]
		switch {
		case !ok:
		case part.source == uri.source:
			l.fault("%s (%s) and %s (%s): the URI takes the place of host, port, username and password; keep the URI or the others", redisURI, uri.at, name, part.at)
			l.faulty[redisURI], l.faulty[name] = true, true
		case fills(name, part, uri):
		case part.source < uri.source:
			l.warn("%s (%s) is passed over: %s (%s) takes its place", name, part.at, redisURI, uri.at)
			delete(l.used, name)
		case name != redisUsername && name != redisPassword:
			replaced = true
		}
	}
	if replaced {
		l.warn("%s (%s) is passed over: host or port of a higher source takes its place", redisURI, uri.at)
	}
	return replaced
}

// fills says whether a user or password of the secrets folder goes into a URI of
// a higher source: whoever keeps the one in a secret gives the other where it can
// be read, and without what is secret in it.
func fills(name string, part, uri given) bool {
	if part.source != sourceSecrets || part.source > uri.source {
		return false
	}
	userinfo, _, has := strings.Cut(uri.text, "@")
	_, user, _ := strings.Cut(userinfo, "://")
	switch name {
	case redisUsername:
		return !has
	case redisPassword:
		return !has || !strings.Contains(user, ":")
	}
	return false
}

// putCredentials moves user name and password into the URI, over those that
// it has.
func putCredentials(c *Config) {
	c.Redis.URI = redisstore.WithCredentials(c.Redis.URI, c.Redis.Username, c.Redis.Password)
}
