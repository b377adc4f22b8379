package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"korvet-offload/internal/ops"
)

// healthTime is how long the program on this host may take to answer.
const healthTime = 3 * time.Second

const healthDescription = `Asks the korvet-offload that runs on this host, at the address that the same
settings give it (korvet.storage.offload.http.address; of one that stands for
all addresses, the loopback one), and prints its answer in one line. This is
what a container's HEALTHCHECK calls, where there is no shell and no curl.

Without --ready it fails only where a restart would help. With --ready it
also fails while Redis or the store is away. No token is needed.

A server with TLS is known by the key of http.cert-file where it is asked over
loopback, else by the authorities of the system or the certificates in that
file. Exit codes: 0 healthy; 1 not, or no answer within 3 seconds.`

func (p Process) healthcheckCommand() *cli.Command {
	return &cli.Command{
		Name:        "healthcheck",
		Usage:       "ask the instance on this host whether it is alive, or ready",
		UsageText:   "korvet-offload healthcheck [--ready] [options]",
		Description: healthDescription,
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "ready", DisableDefaultText: true, Usage: "whether it can work: ask /readyz instead of /livez"},
		}, settingFlags("http-address")...),
		Action: p.healthcheck,
	}
}

func (p Process) healthcheck(c *cli.Context) error {
	cfg, err := p.settings(c, false)
	if err != nil {
		return errors.New("the settings are wrong: " + err.Error()) // not wrapped, which would be exit code 2: container engines know 0 and 1
	}
	path := "/livez"
	if c.Bool("ready") {
		path = "/readyz"
	}
	ctx, cancel := context.WithTimeout(c.Context, healthTime)
	defer cancel()
	said, err := askHealth(ctx, cfg.Ops, path)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, said)
	return err
}

// askHealth returns what the server of a configuration says of itself, or an
// error if it is not well or does not answer.
func askHealth(ctx context.Context, c ops.Config, path string) (string, error) {
	address, err := ownAddress(c.Address)
	if err != nil {
		return "", err
	}
	transport, scheme, err := healthTransport(c, address)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, scheme+"://"+address+path, nil)
	if err != nil {
		return "", fmt.Errorf("ask %s at %s: %w", path, address, err)
	}
	response, err := transport.RoundTrip(request)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "", fmt.Errorf("%s at %s: no answer within %s", path, address, healthTime)
	case err != nil:
		return "", fmt.Errorf("ask %s at %s: %w", path, address, err)
	}
	defer response.Body.Close()
	said := firstLine(response.Body)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s at %s: %d: %s", path, address, response.StatusCode, said)
	}
	return said, nil
}

// ownAddress is where the server that listens on an address can be asked from
// the same host.
func ownAddress(listen string) (string, error) {
	if listen == "" {
		return "", errors.New("there is no HTTP server to ask: korvet.storage.offload.http.address is empty")
	}
	host, port, err := net.SplitHostPort(listen)
	switch {
	case err != nil:
		return "", fmt.Errorf("korvet.storage.offload.http.address %q: %w", listen, err)
	case strings.Trim(port, "0") == "":
		return "", fmt.Errorf("korvet.storage.offload.http.address %q: name a port, so that it can be asked there", listen)
	case host == "" || host == net.IPv4zero.String():
		host = "127.0.0.1"
	case net.ParseIP(host).Equal(net.IPv6unspecified):
		host = "::1"
	}
	return net.JoinHostPort(host, port), nil
}

// healthTransport takes no detour over a proxy, and no connection outlives
// its request.
func healthTransport(c ops.Config, address string) (t *http.Transport, scheme string, err error) {
	t = &http.Transport{DisableKeepAlives: true}
	if c.CertFile == "" {
		return t, "http", nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, "", fmt.Errorf("ask %s: %w", address, err)
	}
	t.TLSClientConfig, err = ownTLS(c.CertFile, host)
	return t, "https", err
}

// firstLine is the first line of an answer, or as much as fits on one.
func firstLine(body io.Reader) string {
	const most = 1000
	line, _ := bufio.NewReader(io.LimitReader(body, most)).ReadString('\n') // what is there will do
	return strings.TrimSpace(line)
}
