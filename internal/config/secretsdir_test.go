package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// secretsDir makes a folder of files, each as name=content.
func secretsDir(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		name, content, _ := strings.Cut(f, "=")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSecretsFolder(t *testing.T) {
	dir := secretsDir(t, "korvet.redis.password=hunter2\n", "korvet.redis.username=u\r\n", "korvet.storage.remote.s3.secretAccessKey=${HOME}\n\n",
		"korvet.storage.s3.access-key-id=", "korvet.storage.offload.http.token= a=b, of 16 and more ", "korvet.storage.offload.concurrency=3")
	for what, in := range map[string]Input{
		"named":   {SecretsDir: dir, Environ: []string{"CREDENTIALS_DIRECTORY=/nowhere"}},
		"systemd": {Environ: []string{"CREDENTIALS_DIRECTORY=" + dir}},
	} {
		l := newLoader(in.Environ)
		l.readSecretsDir(in.SecretsDir)
		c := l.bind()
		if len(l.faults) > 0 || len(l.warnings) > 0 {
			t.Fatalf("%s: %q %q", what, l.faults, l.warnings)
		}
		if c.Redis.Password != "hunter2" || c.Redis.Username != "u" || c.Store.SecretAccessKey != "${HOME}\n" ||
			c.Store.AccessKeyID != "" || c.Ops.Token != " a=b, of 16 and more " || c.Worker.Concurrency != 3 {
			t.Errorf("%s: %q %q %q %q %q %d", what, c.Redis.Password, c.Redis.Username, c.Store.SecretAccessKey, c.Store.AccessKeyID, c.Ops.Token, c.Worker.Concurrency)
		}
	}
}

func TestReportOfSecretsFolder(t *testing.T) {
	dir := secretsDir(t, "korvet.redis.username=hunter2", "korvet.redis.timeout=7s", "korvet.redis.cert-file=")
	l, err := load(Input{File: "korvet.yml", SecretsDir: dir}, []byte("korvet.redis.uri: redis://h"))
	if err != nil {
		t.Fatal(err)
	}
	wantHidden(t, output(l, nil), "report", "hunter2")
	for name, value := range map[string]string{"korvet.redis.timeout": hidden, "korvet.redis.username": hidden, "korvet.redis.cert-file": ""} {
		want := Setting{Name: name, Value: value, Source: "secrets", From: filepath.Join(dir, name), Secret: value != ""}
		if s := l.setting(t, name); s != want {
			t.Errorf("%+v, want %+v", s, want)
		}
	}
	if s := l.setting(t, "korvet.redis.uri"); s.Value != hidden || !s.Secret || l.Redis.URI != "redis://hunter2@h" {
		t.Errorf("%+v", s)
	}
}

// The folder stands between the file and the environment.
func TestPrecedenceOfSecretsFolder(t *testing.T) {
	in := Input{File: "korvet.yml", SecretsDir: secretsDir(t, "korvet.redis.password=folder", "korvet.namespace=folder"), Environ: []string{"KORVET_NAMESPACE=variable"}}
	l, err := load(in, []byte("korvet.redis.uri: redis://u:file@h\nkorvet.namespace: file"))
	if err != nil {
		t.Fatal(err)
	}
	if l.Redis.URI != "redis://u:folder@h" || l.Redis.Layout.Namespace != "variable" {
		t.Errorf("uri %q, namespace %q", l.Redis.URI, l.Redis.Layout.Namespace)
	}
	if s := l.setting(t, "korvet.redis.password"); s.Value != hidden || !s.Secret || s.Source != "secrets" {
		t.Errorf("%+v", s)
	}
}

// A password of the folder goes into a URI that stands in the open, in whichever
// source, but never over what that has.
func TestSecretsFolderFillsTheURI(t *testing.T) {
	dir := secretsDir(t, "korvet.redis.username=u", "korvet.redis.password=p")
	for uri, want := range map[string]string{
		"redis://h":                "redis://u:p@h",
		"redis://v@h":              "redis://v:p@h",
		"redis://v:q@h":            "redis://v:q@h",
		"redis://:q@h":             "redis://:q@h",
		"redis+sentinel://a,b/m":   "redis+sentinel://u:p@a,b/m",
		"redis+sentinel://v@a,b/m": "redis+sentinel://v:p@a,b/m",
	} {
		for _, in := range []Input{{Environ: []string{"KORVET_REDIS_URI=" + uri}}, {Flags: map[string]string{"redis-uri": uri}}} {
			in.SecretsDir = dir
			l, err := load(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if l.Redis.URI != want {
				t.Errorf("%s becomes %s, want %s", uri, l.Redis.URI, want)
			}
		}
	}
	l, err := load(Input{SecretsDir: dir, Environ: []string{"KORVET_REDIS_HOST=h"}}, nil)
	if err != nil || l.Redis.Password != "p" || l.Redis.URI != "" {
		t.Errorf("%v %s", err, l.Redis.Host)
	}
}

func TestFaultsOfSecretsFolder(t *testing.T) {
	dir := secretsDir(t, "korvet.redis.pasword=hunter2", "korvet.storage.s3.secret-access-key=hunter2", "korvet.storage.remote.s3.secret-access-key=hunter3",
		"korvet.server.password=hunter2", "korvet.redis.timeout=hunter2", "korvet.storage.offload.page-size=-47114711", "korvet.topics[0].name=hunter2", "korvet.storage.local.path=/x", "korvet.redis.uri=redis://:hunter2@h/x")
	if err := os.Mkdir(filepath.Join(dir, "korvet.redis.port"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "korvet.redis.ca-file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("gone", filepath.Join(dir, "korvet.redis.host")); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(dir, "korvet.redis.cert-file")
	if err := os.WriteFile(large, make([]byte, maxSecret+1), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	got := faultsOf(t, Input{SecretsDir: dir}, "")
	wantHidden(t, got.Error(), "faults", "hunter2", "hunter3", "4711")
	for _, want := range []string{
		"read secret: " + at("korvet.redis.ca-file") + " is no file",
		"read secret: " + large + " has more than 1048576 bytes: want one value",
		"read secret: stat " + at("korvet.redis.host") + ": no such file or directory",
		"korvet.redis.pasword (" + at("korvet.redis.pasword") + "): there is no such setting; did you mean korvet.redis.password?",
		"read secret: " + at("korvet.redis.port") + " is no file",
		"korvet.topics[0].name (" + at("korvet.topics[0].name") + "): want it in the settings file: a file of a secrets folder is one setting, and none of a list",
		"korvet.storage.offload.page-size (" + at("korvet.storage.offload.page-size") + "): want 1 to 1000000",
		"korvet.server.password (" + at("korvet.server.password") + "): there is no such setting; did you mean korvet.redis.password?",
		"korvet.storage.remote.s3.secret-access-key (" + at("korvet.storage.remote.s3.secret-access-key") + ") and korvet.storage.s3.secret-access-key (" +
			at("korvet.storage.s3.secret-access-key") + "): these are two names of one setting, with different values; keep one",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestSecretsFolderThatIsNotThere(t *testing.T) {
	wantFaults(t, faultsOf(t, Input{SecretsDir: "/nowhere"}, ""), "read secrets folder: open /nowhere: no such file or directory")
	l := loadYAML(t, "", "CREDENTIALS_DIRECTORY=/nowhere")
	if len(l.Warnings) > 0 {
		t.Errorf("%q", l.Warnings)
	}
}

// Others' files are none of our business, unless somebody seems to have meant
// a setting.
func TestForeignFilesOfSecretsFolder(t *testing.T) {
	dir := secretsDir(t, "tls.crt=x", "notes=x", "password=hunter2", "KORVET_STORAGE_S3_SECRET_ACCESS_KEY=hunter2")
	l, err := load(Input{SecretsDir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	const passed = " is passed over: it has no setting's name; did you mean "
	want := []string{
		filepath.Join(dir, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY") + passed + "korvet.storage.s3.secret-access-key?",
		filepath.Join(dir, "password") + passed + "korvet.redis.password?",
	}
	if !slices.Equal(l.Warnings, want) {
		t.Errorf("%q, want %q", l.Warnings, want)
	}
	if l := loadYAML(t, "", "CREDENTIALS_DIRECTORY="+dir); len(l.Warnings) > 0 || l.Redis.Password != "" {
		t.Errorf("%q", l.Warnings)
	}
}

// Kubernetes makes each file a link by way of ..data, so that all of them
// change at once.
func TestSecretsFolderOfKubernetes(t *testing.T) {
	dir := t.TempDir()
	version := filepath.Join(dir, "..2026_01_02_03_04_05.678")
	if err := os.Mkdir(version, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(version, "korvet.redis.password"), []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"..data": filepath.Base(version), "korvet.redis.password": "..data/korvet.redis.password", ".korvet.redis.port": "nowhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := load(Input{SecretsDir: dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Redis.Password != "hunter2" || len(l.Warnings) > 0 {
		t.Errorf("%q %q", l.Redis.Password, l.Warnings)
	}
}
