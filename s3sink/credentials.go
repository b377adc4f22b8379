package s3sink

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// credentialsError says that no credentials could be had.
type credentialsError struct {
	source string
	hint   string
	err    error
}

func (e *credentialsError) Error() string {
	return "get credentials from " + e.source + ": " + redact(e.err.Error())
}

// source is one place where credentials come from.
type source struct {
	name     string
	hint     string
	provider credentials.Provider
}

// chooseSource picks the first place of the chain that is set up. It looks at
// settings, the environment and the profile files, and asks nobody: which
// source is used must not depend on what answers at the moment.
func chooseSource(cfg Config, region string, client *http.Client) source {
	env := os.Getenv
	switch {
	case cfg.AccessKeyID != "":
		return source{"s3.access-key-id and s3.secret-access-key", "", static(cfg.AccessKeyID, cfg.SecretAccessKey, cfg.SessionToken)}
	case env("AWS_ACCESS_KEY_ID") != "" && env("AWS_SECRET_ACCESS_KEY") != "":
		return source{"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "",
			static(env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN"))}
	case env("AWS_PROFILE") != "" || hasProfile("default"):
		profile := firstOf(env("AWS_PROFILE"), "default")
		return source{"profile " + profile, "check AWS_PROFILE and the shared credentials file",
			&credentials.FileAWSCredentials{Profile: profile}}
	case env("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return webIdentity(region, client)
	case env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || env("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return container(client)
	case strings.EqualFold(env("AWS_EC2_METADATA_DISABLED"), "true"):
		return source{"the default chain", noCredentialsHint, broken{errors.New("there are none")}}
	}
	return source{"the instance's metadata service", noCredentialsHint,
		&credentials.IAM{Client: client, Endpoint: env("AWS_EC2_METADATA_SERVICE_ENDPOINT")}}
}

const noCredentialsHint = "set s3.access-key-id and s3.secret-access-key, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the pod or the instance a role"

func static(id, secret, token string) credentials.Provider {
	return &credentials.Static{Value: credentials.Value{
		AccessKeyID: id, SecretAccessKey: secret, SessionToken: token, SignerType: credentials.SignatureV4,
	}}
}

// webIdentity exchanges a token for credentials at the region's STS. The
// library reads the token file and the role's name at every refresh.
func webIdentity(region string, client *http.Client) source {
	s := source{name: "web identity (AWS_WEB_IDENTITY_TOKEN_FILE)", hint: "check the role's trust policy and the service account's annotation"}
	if os.Getenv("AWS_ROLE_ARN") == "" {
		s.provider = broken{errors.New("AWS_ROLE_ARN is not set")}
		return s
	}
	s.provider = &credentials.IAM{Client: client, Endpoint: stsEndpoint(region)}
	return s
}

func stsEndpoint(region string) string {
	if own := firstOf(os.Getenv("AWS_ENDPOINT_URL_STS"), os.Getenv("AWS_ENDPOINT_URL")); own != "" {
		return own
	}
	switch {
	case region == "":
		return credentials.DefaultSTSRoleEndpoint
	case strings.HasPrefix(region, "cn-"):
		return "https://sts." + region + ".amazonaws.com.cn"
	}
	return "https://sts." + region + ".amazonaws.com"
}

// hasProfile says whether one of the shared files has a section of that name.
func hasProfile(name string) bool {
	home, _ := os.UserHomeDir()
	for _, file := range []string{
		firstOf(os.Getenv("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")),
		firstOf(os.Getenv("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
	} {
		if fileHasKeys(file, name) {
			return true
		}
	}
	return false
}

// fileHasKeys says whether a section of a profile file has a way to get
// credentials. A section that only names a region has none.
func fileHasKeys(file, section string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	in := false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			name := strings.TrimSpace(strings.Trim(line, "[]"))
			in = strings.TrimPrefix(name, "profile ") == section
			continue
		}
		key, _, _ := strings.Cut(line, "=")
		switch strings.TrimSpace(key) {
		case "aws_access_key_id", "credential_process", "sso_role_name":
			if in {
				return true
			}
		}
	}
	return false
}

// broken is a provider that can only say why.
type broken struct{ err error }

func (b broken) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return credentials.Value{}, b.err
}
func (b broken) Retrieve() (credentials.Value, error) { return credentials.Value{}, b.err }
func (b broken) IsExpired() bool                      { return true }

// refreshRetry is how long credentials that could not be refreshed, but are
// still good, are used before the next try.
const refreshRetry = 30 * time.Second

// refreshing adds to a provider what the library leaves out: credentials that
// are still good outlive a refresh that failed, and anonymous or half ones are
// an error. The library's lock around a provider is its lock, too.
type refreshing struct {
	source
	now       func() time.Time
	last      credentials.Value
	holdUntil time.Time
}

func (r *refreshing) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := r.provider.RetrieveWithCredContext(cc)
	if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") {
		err = errors.New("it holds no keys")
	}
	if err == nil {
		r.last, r.holdUntil = v, time.Time{}
		return v, nil
	}
	if now := r.now(); r.last.Expiration.After(now) {
		r.holdUntil = now.Add(min(refreshRetry, r.last.Expiration.Sub(now)))
		return r.last, nil
	}
	return credentials.Value{}, &credentialsError{source: r.name, hint: r.hint, err: withoutURL(err)}
}

func (r *refreshing) Retrieve() (credentials.Value, error) { return r.RetrieveWithCredContext(nil) }

func (r *refreshing) IsExpired() bool {
	return !r.now().Before(r.holdUntil) && r.provider.IsExpired()
}

// newCredentialsClient is for the services that hand out credentials. They are
// near, and must not hold up an upload for long.
func newCredentialsClient(t *http.Transport) *http.Client {
	t = t.Clone()
	t.DialContext = (&net.Dialer{Timeout: 3 * time.Second}).DialContext
	t.Proxy = func(req *http.Request) (*url.URL, error) {
		if addr, err := netip.ParseAddr(req.URL.Hostname()); err == nil && addr.IsLinkLocalUnicast() {
			return nil, nil //nolint:nilnil // net/http: no proxy; the host's own services are not behind a proxy
		}
		return http.ProxyFromEnvironment(req)
	}
	return &http.Client{Transport: t, Timeout: 15 * time.Second}
}

func withoutURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
