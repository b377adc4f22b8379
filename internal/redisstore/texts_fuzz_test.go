package redisstore

import (
	"reflect"
	"strings"
	"testing"

	"korvet-offload/segment"
)

// What INFO says becomes lines of text for people, and the advice of what to do.
//
//fault:input | INFO of a server that is none, or of another product | fuzzing of its text | each finding is one line and says what to do where something is wrong, and a memory limit that makes no sense counts as one
func FuzzInfo(f *testing.F) {
	f.Add("# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", true)
	f.Add("redis_version:6.2\nvalkey_version:8\nrole:slave\nmaster_host:a:b\ncluster_enabled:1\nloading:1\nrdb_last_bgsave_status:err\n", false)
	f.Add("maxmemory:1e9\nmaxmemory_policy:allkeys-lru\n:\n:x\nx:\n", true)
	f.Fuzz(func(t *testing.T, text string, cluster bool) {
		info := infoLines(text)
		for _, finding := range []Finding{checkVersion(info), checkMode(info, cluster), checkRole(info), checkDisk(info)} {
			if finding.OK == (finding.Advice != "") || strings.Contains(finding.String(), "\n") {
				t.Fatalf("%q gives %+v", text, finding)
			}
		}
		e := readEviction(info)
		if e.MaxMemory < -1 && e.Risk() == EvictionRisk("") && info["maxmemory"] != "" {
			t.Fatalf("%q gives %+v", text, e)
		}
		if strings.Contains(e.String()+e.Advice(), "\n") {
			t.Fatalf("%q gives %q, %q", text, e, e.Advice())
		}
	})
}

// A URI is shown in errors, logs and the status page.
//
//fault:input | URIs of any text with a password in them | fuzzing | no password is shown, and what is taken as a URI of sentinels names a master and whole addresses
func FuzzURI(f *testing.F) {
	for _, uri := range []string{"redis://u:%s@h:6379/1", "redis+sentinel://u:%s@h1:1,h2/m/3?skip_verify=true", "rediss+sentinel://%s@[::1]/m", "unix://u:%s@/run/s?db=1",
		"redis://h?password=%s", "redis+sentinel://u:a/%s@h/m", "redis://u:x#%s@h", "%s", "redis://[%s", "http://u:%s@h"} {
		f.Add(strings.Replace(uri, "%s", "", 1), uint16(strings.Index(uri, "%s")), uint8(0))
	}
	f.Fuzz(func(t *testing.T, uri string, at uint16, kind uint8) {
		const secret = "Zq8hiddenZq8"
		i := int(at) % (len(uri) + 1)
		before, after := uri[:i], uri[i:]
		whole := before + secret + after
		if isPassword(before, after) {
			shown := RedactURI(whole)
			if err := checkURI(whole); err != nil {
				shown += err.Error()
			}
			if strings.Contains(shown, secret) {
				t.Fatalf("%q is shown as %q", whole, shown)
			}
		}
		u, err := parseSentinelURI(uri)
		if err != nil {
			return
		}
		again := strings.Replace(u.plain, "://", "+sentinel://", 1)
		again = strings.Replace(again, "primary", strings.Join(u.sentinels, ",")+"/"+u.master, 1)
		if back, err := parseSentinelURI(again); len(u.sentinels) == 0 || u.master == "" || !strings.Contains(u.plain, "@") && (err != nil || !reflect.DeepEqual(back, u)) {
			t.Fatalf("%q is %+v, and that written again %+v, %v", uri, u, back, err)
		}
		user, password := "u"+string(rune('a'+kind%26)), "p:@/"
		if with := WithCredentials(uri, user, password); checkURI(with) != nil || strings.Contains(RedactURI(with), "p:@") || strings.Contains(RedactURI(with), "p%3A") {
			t.Fatalf("%q with credentials is %q, shown as %q", uri, with, RedactURI(with))
		}
	})
}

// isPassword says whether what stands between two parts of a URI is where a
// password is: behind the scheme and a user's name, and before the last @.
func isPassword(before, after string) bool {
	scheme, user, ok := strings.Cut(before, "://")
	return ok && strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+") == "" && strings.Contains(user, ":") && !strings.ContainsAny(user, "@/?#[]") && strings.Contains(after, "@")
}

// The registry's document, as the topics that are made of it: the same again,
// and each parked or fit to work with.
//
//fault:input | A registry that is no registry | fuzzing of the document | refused as a whole, or each topic is parked or has settings in their range, the same each time it is read
func FuzzRegistryTopics(f *testing.F) {
	for _, doc := range []string{`{"topics":[{"name":"orders","retention":{"ms":1}}]}`, `{"a":{"retention.ms":1,"retention":{"ms":2}}}`, `[{"name":"a"},{"name":"a"},7,{}]`,
		`{"a":{"config":{"settings":{"x":1}},"retentionTime":"5","partitions":1e3}}`, `{"..":{},"a b":null,"c":[],"topics":{"remoteStorageEnabled":true}}`, `{"a":{"retention.ms":9007199254740993}}`} {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, doc []byte) {
		own, err := parseRegistry(doc)
		again, errAgain := parseRegistry(doc)
		if (err == nil) != (errAgain == nil) || len(own) != len(again) {
			t.Fatalf("%q: %v and %v", doc, err, errAgain)
		}
		for name, s := range own {
			if (s.err == nil) != (again[name].err == nil) || s.err == nil && !reflect.DeepEqual(s.values, again[name].values) {
				t.Fatalf("%q: topic %q is %+v and then %+v", doc, name, s, again[name])
			}
			if topic := segment.ResolveTopic(name, s.values, nil); s.err == nil && topic.Err == nil && topic.Settings.Check() != nil {
				t.Fatalf("%q: topic %q goes on with %+v", doc, name, topic.Settings)
			}
		}
	})
}
