package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// kind says how the text of a setting is read and shown.
type kind int

const (
	kindText kind = iota
	kindSecret
	kindURL // text; a password in it is a secret
	kindPath
	kindBool
	kindNumber
	kindDuration
	kindSize
)

// String is the kind as the reference has it.
func (k kind) String() string {
	return [...]string{"text", "secret", "URL", "path", "true or false", "number", "duration", "size"}[k]
}

// row is one setting.
type row struct {
	name    string            // full name: the one that is shown
	aliases []string          // other full names
	kind    kind              // how its text is read
	flag    string            // flag without dashes; "" = only --set
	help    string            // one line for the reference and --help
	preset  string            // how the reference puts a default that depends on the machine
	live    bool              // can change while the program runs
	field   func(*Config) any // where the value goes: a pointer into the Config
}

// names are all the names of a setting, the shown one first.
func (r row) names() []string { return append([]string{r.name}, r.aliases...) }

// variable is the environment variable that the reference names.
func (r row) variable() string { return variableOf(r.name) }

// variableOf applies Spring's rule for environment variables to a name.
func variableOf(name string) string {
	return strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(name))
}

// set reads the text into the Config; the error says what would be right, and
// never repeats the text.
func (r row) set(c *Config, text string) (err error) {
	switch p := r.field(c).(type) {
	case *string:
		*p = text
	case *bool:
		*p, err = parseBool(text)
	case **bool:
		var b bool
		b, err = parseBool(text)
		*p = &b
	case *int:
		*p, err = parseNumber(text)
	case *int64:
		*p, err = parseSize(text)
	case *time.Duration:
		*p, err = parseDuration(text)
	default:
		panic(fmt.Sprintf("setting %s is bound to a %T", r.name, p))
	}
	return err
}

// value is the setting's present value as text, not redacted.
func (r row) value(c *Config) string {
	switch p := r.field(c).(type) {
	case **bool:
		if *p == nil {
			return ""
		}
		return strconv.FormatBool(**p)
	case *int64:
		return formatSize(*p)
	case *time.Duration:
		return formatDuration(*p)
	default:
		return fmt.Sprint(reflect.ValueOf(p).Elem().Interface())
	}
}

// redact is a text of this setting as it may be shown to anybody.
func (r row) redact(text string) string {
	switch {
	case r.kind == kindSecret && text != "":
		return hidden
	case r.kind == kindURL:
		return redactURL(text)
	}
	return text
}

// same says whether two texts mean the same value.
func (r row) same(a, b string) bool {
	var ca, cb Config
	if r.set(&ca, a) != nil || r.set(&cb, b) != nil {
		return a == b
	}
	return reflect.DeepEqual(r.field(&ca), r.field(&cb))
}

// defaultText is the default as the reference has it.
func (r row) defaultText() string {
	if r.preset != "" {
		return r.preset
	}
	c := DefaultConfig()
	return r.value(&c)
}
