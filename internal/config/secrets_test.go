package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// output is all that a user could get to see of a Load.
func output(l *Loaded, err error) string {
	if err != nil {
		return fmt.Sprintf("%v %+v %#v", err, err, err)
	}
	return fmt.Sprintln(l.Report(), l.Warnings, fmt.Sprintf("%v %+v %#v %v %+v %#v", l, l, l, l.Redis, l.Store, l.Config))
}

// secretPlaces are files and variables with a secret in each place where one
// may stand, by right or by mistake; %s is the secret.
func secretPlaces() []string {
	return []string{
		"korvet.redis.password: %s",
		"korvet.redis.password: {%s}",
		"korvet.redis.password: [%s]",
		"korvet.redis.password: {%s: x}",
		"korvet.redis.password: *%s",
		"korvet.redis.password: &%s",
		"korvet.redis.password: !%s",
		"korvet.redis.password: !%s x",
		"korvet.redis.password: \"%s",
		"korvet.redis.password: '%s",
		"korvet.redis.password: %%%s",
		"korvet.redis.password: @%s",
		"korvet.redis.password: `%s",
		"korvet.redis.password: a: %s",
		"korvet.redis.password: |%s",
		"korvet.redis.password: >\n  %s\n  a: b",
		"korvet.redis.password: x${UNSET:%s",
		"korvet.redis.password: ${9:%s}",
		"korvet.redis.password: ${UNSET:${9:%s}}",
		"korvet.redis.password: ${UNSET:${UNSET2}%s}",
		"korvet.redis.password: ${SECRET}",
		"korvet.redis.pasword: %s",
		"korvet.redis: {user: u, pass: %s}",
		"korvet.redis: {username: u, password: a,%s}",
		"korvet.redis: {password: a,%s,%s}",
		"korvet.redis.password: %s\nkorvet.redis.pass-word: other",
		"korvet.redis.uri: redis://user:%s@host:6379",
		"korvet.redis.uri: redis+sentinel://user:%s@a:1,b:2/m",
		"korvet.redis.uri: redis+sentinel://user:%s@a:1,b:2",
		"korvet.redis.uri: redis+sentinel://:%s@a/m/x",
		"korvet.redis.uri: rediss+sentinel://user:a/%s@a/m",
		"korvet.redis.uri: 'rediss+sentinel://user:1#%s@a/m'",
		"korvet.redis.uri: redis+sentinel://user:1?%s@a/m",
		"korvet.redis.uri: redis+sentinel://a/m?password=%s",
		"korvet.redis.sentinel.password: %s",
		"korvet.redis.sentinel: {username: u, password: [%s]}",
		"korvet.redis.uri: redis+sentinel://a/m\nkorvet.redis.sentinel.password: %s",
		"korvet.redis.uri: redis://:%s@host/x",
		"korvet.redis.uri: redis://user:%s",
		"korvet.redis.uri: redis://user:%s@host:port",
		"korvet.redis.uri: redis://user:a/%s@host",
		"korvet.redis.uri: 'redis://user:1#%s@host'",
		"korvet.redis.uri: redis://user:1?%s@host",
		"korvet.redis.uri: redis://host?password=%s",
		"korvet.redis.uri: redis://host?db=%s",
		"korvet.redis.uri: redis://user:%%zz%s@host",
		"korvet.redis.uri: http://user:%s@host",
		"korvet.redis.uri: user:%s@host",
		"korvet.redis.uri: redis://user:${SECRET}@host",
		"korvet.redis.uri: redis://user:${SECRET}@host\nkorvet.redis.host: x",
		"korvet.redis.uri: redis://user:%s@host\nkorvet.redis.URI: redis://user:%s2@host",
		"korvet.redis.uri: {redis://user:%s@host}",
		"korvet.storage.remote-path: s3://AKIA:%s@bucket",
		"korvet.storage.remote-path: s3://AKIA:12/%s@bucket",
		"korvet.storage.remote-path: ftp://a:%s@b",
		"korvet.storage.s3.endpoint: https://a:%s@host",
		"korvet.storage.s3.endpoint: a:%s@host",
		"korvet.storage.s3.secret-access-key: %s",
		"korvet.storage.s3: {access-key-id: AKIA, secret-access-key: %s}",
		"korvet.storage.s3: {access-key-id: %s, secret-access-key: %s}",
		"korvet.storage.s3.session-token: %s",
		"korvet.storage.remote.s3: {secret-access-key: %s, secretAccessKey: %s2}",
		"other.password: %s\nother.password: %s",
		"korvet.passwords: %s",
		"korvet.redis.timeout: 1x\nkorvet.redis.password: %s",
		"%s",
		"- %s",
		"KORVET_REDIS_PASSWORD=%s",
		"KORVET_REDIS_SENTINEL_PASSWORD=%s",
		"KORVET_REDIS_PASSWROD=%s",
		"KORVET_REDIS_URI=redis://user:%s@host:6379",
		"KORVET_REDIS_URI=redis://user:%s@host:6379\x00--redis-uri=redis://user:%s@host",
		"KORVET_STORAGE_S3_SECRET_ACCESS_KEY=%s",
		"KORVET_STORAGE_REMOTE_PATH=s3://a:%s@b",
		"KORVET_PASSWORD=%s",
		"--redis-uri=redis://u:%s@h",
		"--set=korvet.redis.password=%s",
		"--set=korvet.redis.passwrod=%s",
		"--set=korvet.redis.uri=redis://u:%s@h",
	}
}

// loadPlace loads such a place: YAML, or NAME=value and flags with NUL in
// between.
func loadPlace(place, secret string) (*Loaded, error) {
	text := strings.NewReplacer("%%", "%", "%s", secret).Replace(place)
	in := Input{File: "korvet.yml", Environ: []string{"SECRET=" + secret}, Flags: map[string]string{}}
	if !strings.HasPrefix(place, "KORVET_") && !strings.HasPrefix(place, "--") {
		return load(in, []byte(text))
	}
	for _, part := range strings.Split(text, "\x00") {
		if set, ok := strings.CutPrefix(part, "--set="); ok {
			in.Set = append(in.Set, set)
		} else if flag, ok := strings.CutPrefix(part, "--"); ok {
			name, value, _ := strings.Cut(flag, "=")
			in.Flags[name] = value
		} else {
			in.Environ = append(in.Environ, part)
		}
	}
	return load(in, nil)
}

func TestSecretsAreNeverShown(t *testing.T) {
	for _, secret := range []string{"hunter2hunter3", "hunter2:hunter3", "hunter2 hunter3", "hunter2'hunter3", "hunter2#hunter3", "hunter2%hunter3", "hunter2/hunter3"} {
		for _, place := range secretPlaces() {
			out := output(loadPlace(place, secret))
			wantHidden(t, out, place, "hunter2", "hunter3")
		}
	}
	// Texts of which no part is a setting's name.
	wantHidden(t, output(loadPlace("--set=%s", "hunter2")), "set", "hunter2")
	wantHidden(t, output(loadPlace("korvet.storage.remote-path: s3://AKIA:%s/rest@bucket", "47114711")), "s3", "4711")
	// A password in the place of the user.
	wantHidden(t, output(loadPlace("korvet.redis.uri: redis://%s@host", "hunter2")), "user", "hunter2")
}

// wantHidden shows the surroundings of what should not be there.
func wantHidden(t interface{ Errorf(string, ...any) }, out, what string, secrets ...string) {
	for _, s := range secrets {
		if i := strings.Index(out, s); i >= 0 {
			t.Errorf("%q shows the secret: ...%s...", what, out[max(0, i-80):min(len(out), i+80)])
		}
	}
}

func TestNoSecretIsEverShown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "Zq" + rapid.StringMatching(`[A-Za-z0-9+/=:@#?%&*!{}\[\]'", ~^-]{0,12}`).Draw(t, "secret") + "qZ"
		place := rapid.SampledFrom(secretPlaces()).Draw(t, "place")
		if strings.HasSuffix(place, "redis://user:%s") {
			secret = strings.ReplaceAll(secret, "@", "") // what follows an @ is the host
		}
		out := output(loadPlace(place, secret))
		wantHidden(t, out, place+" with "+secret, "Zq", "qZ")
	})
}

// Any file, variable and flag: no panic, faults of one line each, and secrets
// that were given as such stay hidden. (A secret that a file takes as the
// value of an ordinary setting can't be told from one: hence no placeholders.)
func FuzzLoad(f *testing.F) {
	for _, place := range secretPlaces() {
		f.Add(place, "KORVET_REDIS_PORT", "tcp://x", "korvet.redis.port=1")
	}
	f.Add(brokerYAML, "KORVET_TOPICS_0_NAME", "a", "korvet.topics[0].name=b")
	f.Fuzz(func(t *testing.T, yml, variable, value, set string) {
		const secret = "Zq8unlikelyZq8"
		environ := []string{variable + "=" + value, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=" + secret, "KORVET_REDIS_PASSWORD=" + secret}
		l, err := load(Input{File: "korvet.yml", Environ: environ, Set: []string{set}}, []byte(yml))
		if err != nil {
			var faults Faults
			if !errors.As(err, &faults) {
				t.Fatalf("error of type %T", err)
			}
			for _, fault := range faults {
				if fault == "" || strings.ContainsAny(fault, "\n\r") {
					t.Errorf("fault %q is not one line", fault)
				}
			}
		}
		if !strings.Contains(yml, "${") {
			wantHidden(t, output(l, err), yml, secret)
		}
	})
}
