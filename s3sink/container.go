package s3sink

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// containerProvider asks the agent beside a container (ECS, EKS Pod Identity).
// Unlike the library's it takes the token from the file for both kinds of
// address, cuts off the line's end, and sends it to no other host.
type containerProvider struct {
	credentials.Expiry
	client    *http.Client
	url       string
	token     string // used if tokenFile is ""
	tokenFile string // read at every refresh
}

const ecsAgent = "http://169.254.170.2"

func container(client *http.Client) source {
	s := source{name: "the container's credentials agent", hint: "check the pod's identity association or the task's role"}
	p := &containerProvider{
		client:    client,
		url:       os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI"),
		token:     os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
		tokenFile: os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"),
	}
	if relative := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		p.url = ecsAgent + "/" + strings.TrimPrefix(relative, "/")
	}
	s.provider = p
	if err := checkAgent(p.url); err != nil {
		s.provider = broken{err}
	}
	return s
}

// checkAgent accepts what AWS' own libraries accept: https, this host, and the
// addresses of the ECS and EKS agents.
func checkAgent(raw string) error {
	u, err := url.Parse(raw)
	if err != nil {
		return errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL")
	}
	addr, _ := netip.ParseAddr(u.Hostname())
	agents := []netip.Addr{
		netip.AddrFrom4([4]byte{169, 254, 170, 2}), netip.AddrFrom4([4]byte{169, 254, 170, 23}),
		netip.MustParseAddr("fd00:ec2::23"),
	}
	if u.Scheme == "https" || u.Hostname() == "localhost" || addr.IsLoopback() || slices.Contains(agents, addr) {
		return nil
	}
	return fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI names %s, which is neither this host nor a known agent", u.Host)
}

func (p *containerProvider) Retrieve() (credentials.Value, error) {
	return p.RetrieveWithCredContext(nil)
}

func (p *containerProvider) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx := context.Background()
	if cc != nil && cc.Context != nil {
		ctx = cc.Context
	}
	body, err := p.ask(ctx)
	if err != nil {
		return credentials.Value{}, err
	}
	var got struct {
		AccessKeyID     string `json:"AccessKeyId"`
		SecretAccessKey string
		Token           string
		Expiration      time.Time
	}
	if json.Unmarshal(body, &got) != nil { // its error could quote a secret
		return credentials.Value{}, errors.New("the agent's answer is not JSON")
	}
	if !got.Expiration.IsZero() {
		p.SetExpiration(got.Expiration, credentials.DefaultExpiryWindow)
	}
	return credentials.Value{
		AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, SessionToken: got.Token,
		Expiration: got.Expiration, SignerType: credentials.SignatureV4,
	}, nil
}

func (p *containerProvider) ask(ctx context.Context) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return nil, err
	}
	token := p.token
	if p.tokenFile != "" {
		raw, err := os.ReadFile(p.tokenFile)
		if err != nil {
			return nil, fmt.Errorf("read token: %w", err)
		}
		token = strings.TrimSpace(string(raw))
	}
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the agent at %s answered %s", net.JoinHostPort(req.URL.Hostname(), firstOf(req.URL.Port(), "80")), res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, 64<<10))
}
