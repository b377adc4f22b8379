package s3sink

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
)

func TestURLs(t *testing.T) {
	for raw, want := range map[string]target{
		"s3://bucket":              {bucket: "bucket"},
		"s3://bucket/":             {bucket: "bucket"},
		"s3a://my.bucket/a/b/":     {bucket: "my.bucket", prefix: "a/b"},
		"s3://bucket/with%20space": {bucket: "bucket", prefix: "with space"},
		"file:///dir/sub/":         {dir: "/dir/sub"},
		"file:///dir/../other":     {dir: "/other"},
		"file://localhost/dir":     {dir: "/dir"},
	} {
		if got, err := parseURL(raw); err != nil || got != want {
			t.Errorf("%s: %+v, %v", raw, got, err)
		}
	}
	for _, raw := range []string{
		"", "bucket", "gs://bucket", "s3://", "s3:///x", "s3://B", "s3://a", "s3://a..b/x", "s3://bucket/a/../b", "s3://bucket//a//b",
		"s3://user:pw@bucket/x", "s3://bucket/x?y=z", "s3://bucket/x#y", "file://dir/x", "file:///", "file:", "file:dir", "s3://bucket/%zz",
	} {
		if got, err := parseURL(raw); err == nil {
			t.Errorf("%q is taken as %+v", raw, got)
		}
	}
	for _, raw := range []string{"s3:/foo", "s3:foo"} {
		if _, err := parseURL(raw); err == nil || err.Error() != "it names no bucket; want s3://bucket/prefix, with two slashes" {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

func TestValidate(t *testing.T) {
	yes := true
	good := Config{
		URL: "s3://bucket/p", Region: "eu-west-1", Endpoint: "https://host:9000", PathStyle: &yes, AccessKeyID: "a", SecretAccessKey: "b",
		SessionToken: "c", SSE: SSEKMS, SSEKMSKeyID: "k", StorageClass: "STANDARD_IA", MultipartThreshold: 1, PartSize: MinPartSize,
	}
	if errs := good.Validate(); len(errs) > 0 {
		t.Errorf("refused: %v", errs)
	}
	bad := Config{
		URL: "ftp://x", Region: "EU", Endpoint: "host:9000", AccessKeyID: "a", CAFile: "/nowhere", SSE: "des", SSEKMSKeyID: "k",
		StorageClass: "a b", MultipartThreshold: -1, PartSize: 1,
	}
	errs := bad.Validate()
	for i, name := range []string{
		"remote-path: ", "s3.region ", "s3.endpoint: ", "s3.access-key-id, s3.secret-access-key: ", "s3.ca-file: ",
		"s3.sse ", "s3.storage-class ", "s3.multipart-threshold ", "s3.part-size ",
	} {
		if i >= len(errs) || !strings.HasPrefix(errs[i].Error(), name) {
			t.Errorf("no error for %s: %v", name, errs)
		}
	}
	if _, err := Open(bad, Options{}); err == nil {
		t.Error("opened")
	}
	if errs := (Config{URL: "s3://bucket", Endpoint: "https://user:pw@host"}).Validate(); len(errs) != 1 || strings.Contains(errs[0].Error(), "pw") {
		t.Errorf("endpoint with a password: %v", errs)
	}
	if errs := (Config{URL: "s3://bucket", CAFile: writeFile(t, "ca.pem", "nothing")}).Validate(); len(errs) != 1 {
		t.Errorf("CA file without a certificate: %v", errs)
	}
}

func TestConfigHidesItsSecrets(t *testing.T) {
	c := Config{URL: "s3://bucket/p", AccessKeyID: "id", SecretAccessKey: "verysecret", SessionToken: "verytoken"}
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "config", c)
	for _, text := range []string{
		fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%q %x %d", c, c, c), fmt.Sprintf("%v", &c), log.String(),
	} {
		if strings.Contains(text, "very") || strings.Contains(text, fmt.Sprintf("%x", "very")) {
			t.Errorf("printed: %s", text)
		}
	}
	if raw, err := json.Marshal(c); err != nil || strings.Contains(string(raw), "very") {
		t.Errorf("marshalled: %s, %v", raw, err)
	}
}

func TestPathStyle(t *testing.T) {
	no := false
	for _, c := range []struct {
		cfg    Config
		bucket string
		want   bool
	}{
		{Config{}, "plain", false}, {Config{}, "dot.ted", true}, {Config{Endpoint: "https://minio"}, "plain", true},
		{Config{Endpoint: "https://minio", PathStyle: &no}, "plain", false}, {Config{PathStyle: &no}, "dot.ted", false},
	} {
		if got := c.cfg.pathStyle(c.bucket); got != c.want {
			t.Errorf("%+v %s: %v", c.cfg, c.bucket, got)
		}
	}
}

func TestMetadataSurvivesTheHeader(t *testing.T) {
	for _, value := range []string{"", "plain", " a ", "100%", "%41", "grün\n\x00\xff", "a b", "%", "%4"} {
		if got := unescapeMeta(escapeMeta(value)); got != value {
			t.Errorf("%q becomes %q by way of %q", value, got, escapeMeta(value))
		}
	}
	if got := unescapeMeta("50% of %zz %4"); got != "50% of %zz %4" {
		t.Errorf("foreign value becomes %q", got)
	}
}

func TestPartSize(t *testing.T) {
	for _, c := range []struct{ total, want int64 }{{1, 16 << 20}, {100 << 30, 16 << 20}, {1 << 40, (1<<40 + maxParts - 1) / maxParts}} {
		if got := partSize(c.total, DefaultPartSize); got != c.want || (c.total+got-1)/got > maxParts {
			t.Errorf("%d: %d", c.total, got)
		}
	}
}
