package s3sink

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// Defaults and limits of the sizes in a Config, in bytes.
const (
	DefaultMultipartThreshold = 64 << 20
	DefaultPartSize           = 16 << 20
	MinPartSize               = 5 << 20 // smaller parts are refused by S3
	MaxPartSize               = 5 << 30 // the largest single put, too
	maxParts                  = 10_000
)

// Encryption that a bucket can be asked for (Config.SSE).
const (
	SSES3  = "AES256"
	SSEKMS = "aws:kms"
)

// Config says where the objects go and how to get there. Zero values mean
// the defaults named below. However it is printed, its secrets are not.
type Config struct {
	URL                string // s3://bucket/prefix or file:///dir; required
	Region             string // "" = AWS_REGION, else asked of the bucket, else us-east-1
	Endpoint           string // https://host[:port], http://... ; "" = AWS
	PathStyle          *bool  // nil = path style for custom endpoints and dotted buckets
	AccessKeyID        string // both keys or none; none = the AWS default chain
	SecretAccessKey    string
	SessionToken       string
	CAFile             string // PEM file of further certificate authorities
	SSE                string // "", "AES256" or "aws:kms"
	SSEKMSKeyID        string // only with aws:kms; "" = the bucket's key
	StorageClass       string // "" = the bucket's default
	MultipartThreshold int64  // bytes; larger objects go in parts; DefaultMultipartThreshold
	PartSize           int64  // bytes per part; DefaultPartSize
}

// target is a parsed Config.URL: a bucket and a prefix (without slashes at its
// ends), or a folder.
type target struct {
	bucket string
	prefix string
	dir    string
}

// Validate returns one error per setting that makes no sense; each begins with
// the setting's name below korvet.storage. It looks at nothing but the Config
// and the CA file.
func (c Config) Validate() []error {
	var errs []error
	t, err := parseURL(c.URL)
	if err != nil {
		errs = append(errs, fmt.Errorf("remote-path: %w", err))
	}
	if err == nil && t.dir != "" {
		return errs // the S3 settings are not used
	}
	for _, check := range []func(Config) error{
		checkRegion, checkEndpoint, checkKeys, checkCA, checkSSE, checkStorageClass, checkThreshold, checkPartSize,
	} {
		if err := check(c); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// String names the target and nothing secret.
func (c Config) String() string {
	if u, err := url.Parse(c.URL); err == nil {
		return u.Redacted()
	}
	return "(unreadable remote-path)"
}

// Format prints what String says, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, c.String()) }

// MarshalText writes what String says, into JSON as well.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue logs what String says.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func parseURL(raw string) (target, error) {
	if raw == "" {
		return target{}, errors.New("it is not set; want s3://bucket/prefix or file:///folder")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return target{}, errors.New("it is not a URL; want s3://bucket/prefix or file:///folder")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return target{}, errors.New("want s3://bucket/prefix or file:///folder and nothing else: no user, no query, no fragment")
	}
	switch u.Scheme {
	case "s3", "s3a":
		return parseS3URL(u)
	case "file":
		return parseFileURL(u)
	}
	return target{}, fmt.Errorf("%q is neither s3://bucket/prefix nor file:///folder", raw)
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

func parseS3URL(u *url.URL) (target, error) {
	if u.Host == "" {
		return target{}, fmt.Errorf("it names no bucket; want %s://bucket/prefix, with two slashes", u.Scheme)
	}
	if !bucketName.MatchString(u.Host) || strings.Contains(u.Host, "..") {
		return target{}, fmt.Errorf("%q is no bucket name; want 3 to 63 of a-z, 0-9, '-' and '.'", u.Host)
	}
	prefix := strings.Trim(u.Path, "/")
	if prefix == "" {
		return target{bucket: u.Host}, nil
	}
	if err := checkKey(prefix); err != nil {
		return target{}, fmt.Errorf("prefix %w", err)
	}
	return target{bucket: u.Host, prefix: prefix}, nil
}

func parseFileURL(u *url.URL) (target, error) {
	if u.Host != "" && u.Host != "localhost" {
		return target{}, fmt.Errorf("file://%s%s: the folder must be absolute, with three slashes: file:///folder", u.Host, u.Path)
	}
	dir := path.Clean(u.Path)
	if !path.IsAbs(dir) || dir == "/" || strings.ContainsRune(dir, 0) {
		return target{}, errors.New("the folder must be an absolute path below /: file:///folder")
	}
	return target{dir: filepath.FromSlash(dir)}, nil
}

var regionName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)

func checkRegion(c Config) error {
	if c.Region != "" && !regionName.MatchString(c.Region) {
		return fmt.Errorf("s3.region %q: want a name like eu-west-1", c.Region)
	}
	return nil
}

func checkEndpoint(c Config) error {
	if c.Endpoint == "" {
		return nil
	}
	u, err := url.Parse(c.Endpoint)
	switch {
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return errors.New("s3.endpoint: want https://host, https://host:port, or the same with http://")
	case u.User != nil:
		return errors.New("s3.endpoint: it holds a user or a password; use s3.access-key-id and s3.secret-access-key")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("s3.endpoint %s://%s: want no path after the host; the bucket stands in remote-path", u.Scheme, u.Host)
	}
	return nil
}

func checkKeys(c Config) error {
	switch {
	case (c.AccessKeyID == "") != (c.SecretAccessKey == ""):
		return errors.New("s3.access-key-id, s3.secret-access-key: want both or none")
	case c.SessionToken != "" && c.AccessKeyID == "":
		return errors.New("s3.session-token: it needs s3.access-key-id and s3.secret-access-key")
	}
	return nil
}

func checkCA(c Config) error {
	if c.CAFile == "" {
		return nil
	}
	_, err := loadCAs(c.CAFile)
	return err
}

func checkSSE(c Config) error {
	switch {
	case c.SSE != "" && c.SSE != SSES3 && c.SSE != SSEKMS:
		return fmt.Errorf("s3.sse %q: want %s, %s or nothing", c.SSE, SSES3, SSEKMS)
	case c.SSEKMSKeyID != "" && c.SSE != SSEKMS:
		return fmt.Errorf("s3.sse-kms-key-id: it needs s3.sse %s", SSEKMS)
	}
	return nil
}

var storageClassName = regexp.MustCompile(`^[A-Z0-9_-]{0,64}$`)

func checkStorageClass(c Config) error {
	if !storageClassName.MatchString(c.StorageClass) {
		return fmt.Errorf("s3.storage-class %q: want a name like STANDARD_IA", c.StorageClass)
	}
	return nil
}

func checkThreshold(c Config) error {
	if c.MultipartThreshold < 0 || c.MultipartThreshold > MaxPartSize {
		return fmt.Errorf("s3.multipart-threshold %d: want 1 to %d bytes, 0 for the default", c.MultipartThreshold, int64(MaxPartSize))
	}
	return nil
}

func checkPartSize(c Config) error {
	if c.PartSize != 0 && (c.PartSize < MinPartSize || c.PartSize > MaxPartSize) {
		return fmt.Errorf("s3.part-size %d: want %d to %d bytes, 0 for the default", c.PartSize, MinPartSize, int64(MaxPartSize))
	}
	return nil
}

// withDefaults fills in the sizes that are not set.
func (c Config) withDefaults() Config {
	if c.MultipartThreshold == 0 {
		c.MultipartThreshold = DefaultMultipartThreshold
	}
	if c.PartSize == 0 {
		c.PartSize = DefaultPartSize
	}
	return c
}

// pathStyle says whether the bucket goes into the path (true) or into the
// host's name. A certificate for *.s3.amazonaws.com does not cover a bucket
// name with a dot in it.
func (c Config) pathStyle(bucket string) bool {
	if c.PathStyle != nil {
		return *c.PathStyle
	}
	return c.Endpoint != "" || strings.Contains(bucket, ".")
}

func readCAFile(name string) ([]byte, error) {
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("s3.ca-file: %w", err)
	}
	return pem, nil
}
