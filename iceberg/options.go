package main

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/apache/iceberg-go/table"
	"github.com/urfave/cli/v2"

	"korvet-offload/internal/cmdline"
	"korvet-offload/segment"
)

// options are what the command line says beside the settings.
type options struct {
	topic      string
	table      table.Identifier // namespace and name
	named      bool             // somebody has named it
	catalog    *url.URL
	name       string // of the catalog, which rows of an SQL catalog begin with
	warehouse  string // "" = the catalog knows
	properties map[string]string
	token      string // of a REST catalog; secret
	credential string // of a REST catalog, id:secret; secret
	dryRun     bool
	json       bool
}

// The environment variables of what is secret.
const (
	tokenVariable      = "KORVET_OFFLOAD_ICEBERG_TOKEN"      //nolint:gosec // a name
	credentialVariable = "KORVET_OFFLOAD_ICEBERG_CREDENTIAL" //nolint:gosec // a name
)

// The values of --output.
const (
	outputTable = "table"
	outputJSON  = "json"
)

// readOptions takes them from the command line and the environment.
func (p process) readOptions(c *cli.Context) (o options, err error) {
	if c.NArg() != 1 {
		return o, cmdline.UsageError{Err: errors.New("register: name one topic; see korvet-offload iceberg register --help")}
	}
	o = options{topic: c.Args().First(), named: c.String("table") != "", name: c.String("catalog-name"), warehouse: strings.TrimSuffix(c.String("warehouse"), "/"), dryRun: c.Bool("dry-run")}
	if err := segment.ValidateTopic(o.topic); err != nil {
		return o, cmdline.UsageError{Err: err}
	}
	if o.table, err = tableName(c.String("table"), o.topic); err != nil {
		return o, cmdline.UsageError{Err: err}
	}
	if o.catalog, err = catalogURI(c.String("catalog")); err != nil {
		return o, cmdline.UsageError{Err: err}
	}
	if o.properties, err = properties(c.StringSlice("property")); err != nil {
		return o, cmdline.UsageError{Err: err}
	}
	if o.sql() && o.warehouse == "" {
		return o, cmdline.UsageError{Err: errors.New("--warehouse: an SQL catalog needs the URL below which its tables lie, such as s3://bucket/warehouse")}
	}
	switch c.String("output") {
	case outputJSON:
		o.json = true
	case outputTable:
	default:
		return o, cmdline.UsageError{Err: fmt.Errorf("--output %s: want %s or %s", c.String("output"), outputTable, outputJSON)}
	}
	o.token, o.credential = variable(p.environ, tokenVariable), variable(p.environ, credentialVariable)
	return o, nil
}

// sql says whether the catalog is a database.
func (o options) sql() bool { return o.catalog.Scheme != "http" && o.catalog.Scheme != "https" }

// tableName reads --table; without it the table has the topic's name, in
// namespace korvet, with '_' for what many engines do not take in a name.
func tableName(text, topic string) (table.Identifier, error) {
	if text == "" {
		return table.Identifier{"korvet", strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(topic))}, nil
	}
	parts := strings.Split(text, ".")
	for _, part := range parts {
		if !namePart.MatchString(part) {
			return nil, fmt.Errorf("--table %q: want NAMESPACE.NAME of letters, digits, '_' and '-'", text)
		}
	}
	if len(parts) < 2 {
		return nil, fmt.Errorf("--table %q: want NAMESPACE.NAME", text)
	}
	return parts, nil
}

var namePart = regexp.MustCompile(`^[a-zA-Z0-9_][a-zA-Z0-9_-]*$`)

// catalogURI reads --catalog. A password in it is refused: it could be read by every
// user of the machine.
func catalogURI(text string) (*url.URL, error) {
	const want = "want https://host/path of a REST catalog, postgres://user@host/database, or sqlite:///file"
	if text == "" {
		return nil, errors.New("--catalog: " + want)
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("--catalog: it is not a URI; " + want)
	}
	if _, has := u.User.Password(); has || u.Query().Has("password") {
		return nil, errors.New("--catalog: it holds a password; for postgres use PGPASSWORD or a .pgpass file, for a REST catalog " + tokenVariable + " or " + credentialVariable)
	}
	switch u.Scheme {
	case "http", "https", "postgres", "postgresql":
		if u.Host == "" && u.Query().Get("host") == "" {
			return nil, errors.New("--catalog: it names no host; " + want)
		}
	case "sqlite":
		if u.Host != "" || len(u.Path) < 2 {
			return nil, errors.New("--catalog: want sqlite:///file, with three slashes")
		}
	default:
		return nil, fmt.Errorf("--catalog: %q is none that is known; %s", u.Scheme, want)
	}
	return u, nil
}

// properties reads --property. What looks like a secret is refused.
func properties(texts []string) (map[string]string, error) {
	all := map[string]string{}
	for _, text := range texts {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return nil, errors.New("--property: want NAME=VALUE")
		}
		for _, word := range []string{"token", "credential", "secret", "password", "access-key"} {
			if strings.Contains(strings.ToLower(name), word) && !strings.Contains(name, "uri") {
				return nil, fmt.Errorf("--property %s: a secret on the command line can be read by every user of the machine; use %s or %s, and the settings' S3 keys", name, tokenVariable, credentialVariable)
			}
		}
		all[name] = value
	}
	return all, nil
}

func variable(environ []string, name string) string {
	for _, e := range environ {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}
