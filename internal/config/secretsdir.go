package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxSecret bounds the file of one setting: systemd and Kubernetes allow no
// larger ones.
const maxSecret = 1 << 20

// credentialsVariable names the folder in which systemd puts the credentials
// of a service.
const credentialsVariable = "CREDENTIALS_DIRECTORY"

// readSecretsDir takes the settings of a folder with one file for each. Without
// a folder of ours it is the one that systemd gives to a service: others' files
// may be in there, too, and it need not be there at all.
func (l *loader) readSecretsDir(dir string) {
	own := dir != ""
	if !own {
		dir = l.environ[credentialsVariable]
	}
	if dir == "" {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil && (own || !errors.Is(err, fs.ErrNotExist)) {
		l.fault("%s", oneLine("read secrets folder: "+err.Error()))
	}
	for _, e := range entries {
		// Kubernetes keeps the files themselves below ..data and others like it.
		if !strings.HasPrefix(e.Name(), ".") {
			l.readSecretFile(dir, e.Name(), own)
		}
	}
}

// readSecretFile takes one file, which is one value.
func (l *loader) readSecretFile(dir, name string, own bool) {
	if !strings.HasPrefix(fold(name), "korvet.") {
		if near := l.nearestFile(name); own && near != "" {
			l.warn("%s is passed over: it has no setting's name; did you mean %s?", printable(filepath.Join(dir, name)), near)
		}
		return
	}
	file := filepath.Join(dir, name)
	text, err := readSecret(file)
	if err != nil {
		l.fault("%s", oneLine("read secret: "+err.Error()))
		return
	}
	f := leaf{path: splitPath(name), text: text, at: printable(file)}
	if slices.ContainsFunc(l.lists(), func(to *list) bool { return to.has(foldPath(f.path)) }) {
		l.fault("%s (%s): want it in the settings file: a file of a secrets folder is one setting, and none of a list", printable(name), f.at)
		return
	}
	l.assign(f, sourceSecrets, 0)
}

// redact is the value of a setting as it may be shown. What came from the
// secrets folder is a secret, whatever it is otherwise, and so is a URI that a
// user name from there went into.
func (l *loader) redact(r row, value string) string {
	secret := func(name string) bool { return l.used[name].source == sourceSecrets }
	if value != "" && (secret(r.name) || r.name == redisURI && secret(redisUsername)) {
		return hidden
	}
	return r.redact(value)
}

// nearestFile proposes a setting for the name of a file that is none, such as
// the name of its variable.
func (l *loader) nearestFile(name string) string {
	if n, ok := l.byEnv[strings.ToUpper(name)]; ok {
		return n.name
	}
	return l.nearestName(splitPath(name))
}

// readSecret is the text of a file without the newline at its end.
func readSecret(file string) (string, error) {
	// Opening what is no file, such as a pipe, might never return.
	if info, err := os.Stat(file); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no file", file)
	}
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecret {
		return "", fmt.Errorf("%s has more than %d bytes: want one value", file, maxSecret)
	}
	if text, ok := strings.CutSuffix(string(content), "\r\n"); ok {
		return text, nil
	}
	return strings.TrimSuffix(string(content), "\n"), nil
}
