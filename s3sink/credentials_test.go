package s3sink

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// cleanEnv hides this machine's own AWS settings.
func cleanEnv(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION",
		"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
		"AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL",
		"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("HOME", t.TempDir())
}

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(t.TempDir(), name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// clock is a time that a test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func chosen(t *testing.T, cfg Config) (*refreshing, *clock) {
	t.Helper()
	c := &clock{time.Now()}
	transport, err := newTransport("", Limits{}.withDefaults())
	if err != nil {
		t.Fatal(err)
	}
	client := newCredentialsClient(transport)
	t.Cleanup(client.CloseIdleConnections)
	return &refreshing{source: chooseSource(cfg, "eu-west-1", client), now: c.now}, c
}

func TestSourcesInOrder(t *testing.T) {
	cleanEnv(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	step := func(cfg Config, name, key string) {
		t.Helper()
		r, _ := chosen(t, cfg)
		v, err := r.Retrieve()
		if !strings.Contains(r.name, name) || v.AccessKeyID != key || (key == "") == (err == nil) {
			t.Errorf("source %q gives %q, %v; want %q from %q", r.name, v.AccessKeyID, err, key, name)
		}
	}
	step(Config{}, "default chain", "")
	agent := httptest.NewServer(agentAnswers("CONTAINER", time.Hour, nil))
	defer agent.Close()
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL)
	step(Config{}, "container", "CONTAINER")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere")
	step(Config{}, "web identity", "")
	writeFile(t, filepath.Join(os.Getenv("HOME"), ".aws", "config"), "[default]\nregion = eu-west-1\n")
	step(Config{}, "web identity", "") // that profile has no keys
	writeFile(t, filepath.Join(os.Getenv("HOME"), ".aws", "credentials"),
		"[default]\naws_access_key_id = DEFAULT\naws_secret_access_key = s\n[other]\naws_access_key_id=OTHER\naws_secret_access_key=s\n")
	step(Config{}, "profile default", "DEFAULT")
	t.Setenv("AWS_PROFILE", "other")
	step(Config{}, "profile other", "OTHER")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", writeFile(t, "c", "[other]\naws_access_key_id=ELSEWHERE\naws_secret_access_key=s\n"))
	step(Config{}, "profile other", "ELSEWHERE")
	t.Setenv("AWS_PROFILE", "none")
	step(Config{}, "profile none", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "ENV")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	step(Config{}, "AWS_ACCESS_KEY_ID", "ENV")
	step(Config{AccessKeyID: "GIVEN", SecretAccessKey: "s"}, "s3.access-key-id", "GIVEN")
}

// agentAnswers hands out credentials; token, if it is not nil, says which token
// is good at the moment.
func agentAnswers(key string, life time.Duration, token func() string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if token != nil && r.Header.Get("Authorization") != token() {
			http.Error(w, "token is no good: "+r.Header.Get("Authorization"), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(w, `{"AccessKeyId":%q,"SecretAccessKey":"s","Token":"t","Expiration":%q}`,
			key, time.Now().Add(life).UTC().Format(time.RFC3339))
	}
}

// TestContainerTokenIsReadAgain: the token file is replaced, the old token is
// refused from then on, and the next refresh takes the new one.
//
//fault:store | The token of a container's credentials agent is rotated | A token file that changes, an agent that refuses the old one | The file is read at every refresh
func TestContainerTokenIsReadAgain(t *testing.T) {
	cleanEnv(t)
	good := "token-1"
	agent := httptest.NewServer(agentAnswers("KEY", -time.Second, func() string { return good })) // expired when it comes
	defer agent.Close()
	file := writeFile(t, "token", "token-1\n")
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", file)
	r, _ := chosen(t, Config{})
	creds := credentials.New(r)
	if _, err := creds.GetWithContext(nil); err != nil {
		t.Fatal(err)
	}
	good = "token-2"
	_, err := creds.GetWithContext(nil)
	if err == nil || !strings.Contains(err.Error(), "400") || strings.Contains(err.Error(), "token-1") {
		t.Errorf("with the old token: %v", err)
	}
	writeFile(t, file, "token-2")
	if _, err := creds.GetWithContext(nil); err != nil {
		t.Errorf("with the new token: %v", err)
	}
}

func TestContainerAgentMustBeNear(t *testing.T) {
	for raw, want := range map[string]bool{
		"http://169.254.170.23/v1/credentials": true, "http://[fd00:ec2::23]/v1": true, "http://127.0.0.1:8080/": true,
		"https://example.com/": true, "http://example.com/": false, "http://169.254.170.99/": false, "::": false,
	} {
		if err := checkAgent(raw); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestWebIdentityTokenIsReadAgain does the same with STS.
//
//fault:store | The web identity token is rotated | A token file that changes, an STS that notes what it sees | The file is read at every refresh
func TestWebIdentityTokenIsReadAgain(t *testing.T) {
	cleanEnv(t)
	var seen []string
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		seen = append(seen, r.Form.Get("WebIdentityToken")+" "+r.Form.Get("RoleArn"))
		if r.Form.Get("WebIdentityToken") == "bad" {
			w.WriteHeader(http.StatusForbidden)
			_, _ = io.WriteString(w, `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error></ErrorResponse>`)
			return
		}
		fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
			<AccessKeyId>STS</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration>
			</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(-time.Second).UTC().Format(time.RFC3339))
	}))
	defer sts.Close()
	file := writeFile(t, "token", "one")
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", file)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	r, _ := chosen(t, Config{})
	creds := credentials.New(r)
	for _, token := range []string{"one", "two"} {
		writeFile(t, file, token)
		if v, err := creds.GetWithContext(nil); err != nil || v.AccessKeyID != "STS" || v.SessionToken != "t" {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if want := "one arn:aws:iam::1:role/r two arn:aws:iam::1:role/r"; strings.Join(seen, " ") != want {
		t.Errorf("STS saw %q", seen)
	}
	writeFile(t, file, "bad")
	if _, err := creds.GetWithContext(nil); err == nil || !strings.Contains(err.Error(), "AssumeRoleWithWebIdentity") {
		t.Errorf("got %v", err)
	}
}

func TestSTSEndpointIsTheRegions(t *testing.T) {
	cleanEnv(t)
	for region, want := range map[string]string{
		"eu-west-1": "https://sts.eu-west-1.amazonaws.com", "cn-north-1": "https://sts.cn-north-1.amazonaws.com.cn", "": "https://sts.amazonaws.com",
	} {
		if got := stsEndpoint(region); got != want {
			t.Errorf("%q: %s", region, got)
		}
	}
}

func TestInstanceRole(t *testing.T) {
	cleanEnv(t)
	imds := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPut && r.URL.Path == "/latest/api/token":
			_, _ = io.WriteString(w, "session")
		case r.Header.Get("X-aws-ec2-metadata-token") != "session":
			w.WriteHeader(http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/security-credentials/"):
			_, _ = io.WriteString(w, "role")
		default:
			fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":"IMDS","SecretAccessKey":"s","Token":"t","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		}
	}))
	defer imds.Close()
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", imds.URL)
	r, _ := chosen(t, Config{})
	if v, err := r.Retrieve(); err != nil || v.AccessKeyID != "IMDS" {
		t.Errorf("%+v, %v", v, err)
	}
}

// failing is a provider that works as long as a test lets it.
type failing struct {
	credentials.Expiry
	value credentials.Value
	err   error
	calls int
}

func (f *failing) Retrieve() (credentials.Value, error) { return f.RetrieveWithCredContext(nil) }

func (f *failing) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	f.calls++
	if f.err == nil {
		f.SetExpiration(f.value.Expiration, credentials.DefaultExpiryWindow)
	}
	return f.value, f.err
}

//fault:store | The source of credentials is away when they are to be refreshed | A source that fails on a clock of its own | Those that are good serve until they expire, and the source is not asked each time
func TestRefreshBeforeTheEndAndThroughAnOutage(t *testing.T) {
	c := &clock{time.Now()}
	f := &failing{value: credentials.Value{AccessKeyID: "K", SecretAccessKey: "s", Expiration: c.t.Add(time.Hour)}}
	f.CurrentTime = c.now
	creds := credentials.New(&refreshing{source: source{name: "test", provider: f}, now: c.now})
	get := func() (credentials.Value, error) { return creds.GetWithContext(nil) }
	at := func(d time.Duration, calls int, good bool) {
		t.Helper()
		c.t = c.t.Add(d)
		if _, err := get(); (err == nil) != good || f.calls != calls {
			t.Errorf("after %d calls: %v; want %d", f.calls, err, calls)
		}
	}
	at(0, 1, true)
	at(40*time.Minute, 1, true) // still good
	f.err = errors.New("the agent is away")
	at(10*time.Minute, 2, true)                 // due, fails, and the old ones serve
	at(10*time.Second, 2, true)                 // without asking each time
	at(refreshRetry, 3, true)                   //
	at(10*time.Minute, 4, false)                // now they have expired
	f.err = nil                                 //
	f.value.Expiration = c.t.Add(2 * time.Hour) //
	at(0, 5, true)
}

//fault:store | There are no credentials at all | An empty environment | The error says which settings there are
func TestNoCredentialsIsAnError(t *testing.T) {
	cleanEnv(t)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	store, err := Open(Config{URL: "s3://bucket", Endpoint: "http://127.0.0.1:1", Region: "r"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	_, err = store.Stat(t.Context(), "k")
	if ClassOf(err) != ClassCredentials || !strings.Contains(err.Error(), "AWS_PROFILE") {
		t.Errorf("got %v", err)
	}
}

// TestExpiredTokenIsRenewedOnce: S3 refuses a token that the source believes to
// be good; what the source then gives is tried at once, but not for ever.
//
//fault:store | The store says ExpiredToken of a token that should be good | A stub that says so once, and always | Renewed and repeated once, not for ever
func TestExpiredTokenIsRenewedOnce(t *testing.T) {
	b := newBench(t, Limits{}, s3Error(400, "ExpiredToken", "The provided token has expired."), ok)
	if _, err := b.Put(t.Context(), upload("k", nil)); err != nil {
		t.Error(err)
	}
	b = newBench(t, Limits{}, s3Error(400, "ExpiredToken", "The provided token has expired."))
	if _, err := b.Put(t.Context(), upload("k", nil)); ClassOf(err) != ClassCredentials || len(b.stub.requests()) != 2 {
		t.Errorf("%v after %d requests", err, len(b.stub.requests()))
	}
}
