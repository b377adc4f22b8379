package ops

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config of the HTTP server and the logger.
type Config struct {
	Address   string // host:port of the HTTP server; "" = off
	Token     string // bearer token for all but the probes, 16 characters or more; "" = none is asked for, and nothing can be changed
	CertFile  string // PEM file of the server's certificate; "" = no TLS
	KeyFile   string // PEM file of its key
	Pprof     bool   // serve /debug/pprof
	Yield     bool   // let everything else on the CPUs go first
	LogLevel  string // debug, info, warn, error
	LogFormat string // auto (console on a terminal, else JSON), console, json

	TopicMetrics bool // metrics have a topic label
	MaxTopics    int  // topics with a label of their own, 1 or more

	StallTimeout time.Duration // a pass in which nothing moves for so long hangs
}

// DefaultConfig is the configuration when nothing is said.
func DefaultConfig() Config {
	return Config{Address: "127.0.0.1:9477", Yield: true, LogLevel: "info", LogFormat: "auto",
		TopicMetrics: true, MaxTopics: 200, StallTimeout: 5 * time.Minute}
}

// Levels are the log levels, from the most to the least talkative.
func Levels() []string { return []string{"debug", "info", "warn", "error"} }

// Formats are the log formats.
func Formats() []string { return []string{"auto", "console", "json"} }

// leastToken is how many characters a token has at least.
const leastToken = 16

// Validate returns one error per setting that makes no sense; each begins
// with the setting's last parts.
func (c Config) Validate() []error {
	var errs []error
	if c.Address != "" {
		if err := checkAddress(c.Address); err != nil {
			errs = append(errs, fmt.Errorf("http.address %q: %w", c.Address, err))
		}
	}
	if c.Pprof && c.Address == "" {
		errs = append(errs, errors.New("http.pprof: it needs http.address, which is empty"))
	}
	if c.Token != "" && len(c.Token) < leastToken {
		errs = append(errs, fmt.Errorf("http.token: it is shorter than %d characters, and can be guessed; `openssl rand -hex 24` makes a good one", leastToken))
	}
	switch {
	case c.CertFile != "" && c.KeyFile == "":
		errs = append(errs, errors.New("http.key-file: it belongs to http.cert-file, and is missing: want the PEM file of the certificate's key"))
	case c.CertFile == "" && c.KeyFile != "":
		errs = append(errs, errors.New("http.cert-file: it belongs to http.key-file, and is missing: want the PEM file of the certificate"))
	}
	if c.MaxTopics < 1 {
		errs = append(errs, fmt.Errorf("metrics.max-topics %d: want 1 or more", c.MaxTopics))
	}
	if !slices.Contains(Levels(), c.LogLevel) {
		errs = append(errs, fmt.Errorf("log.level %q: want one of %s", c.LogLevel, strings.Join(Levels(), ", ")))
	}
	if !slices.Contains(Formats(), c.LogFormat) {
		errs = append(errs, fmt.Errorf("log.format %q: want one of %s", c.LogFormat, strings.Join(Formats(), ", ")))
	}
	return errs
}

// checkAddress takes host:port and :port; port 0 is any free one.
func checkAddress(address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return errors.New("want host:port, such as 127.0.0.1:9477 or :9477, or nothing to turn the server off")
	}
	return nil
}
