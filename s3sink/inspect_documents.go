package s3sink

import (
	"strings"
	"time"
	"unicode"
)

// lifecycleDocument is a LifecycleConfiguration, as far as it matters here.
type lifecycleDocument struct {
	Rule []struct {
		ID     string
		Status string
		Prefix string // where old rules have it
		Filter struct {
			scopeDocument
			And scopeDocument
		}
		Expiration                     struct{ Days, Date string }
		NoncurrentVersionExpiration    struct{ NoncurrentDays string }
		AbortIncompleteMultipartUpload struct{ DaysAfterInitiation string }
		Transition                     []struct{ Days, StorageClass string }
	}
}

// scopeDocument says which keys a rule is for.
type scopeDocument struct {
	Prefix                string
	Tag                   []struct{ Key string }
	ObjectSizeGreaterThan string
	ObjectSizeLessThan    string
}

func (s scopeDocument) narrow() bool {
	return len(s.Tag) > 0 || s.ObjectSizeGreaterThan != "" || s.ObjectSizeLessThan != ""
}

// rules are those that are in force.
func (d lifecycleDocument) rules() []LifecycleRule {
	var rules []LifecycleRule
	for _, r := range d.Rule {
		if r.Status != "Enabled" {
			continue
		}
		rule := LifecycleRule{
			ID:     printable(r.ID),
			Prefix: firstOf(r.Filter.And.Prefix, r.Filter.Prefix, r.Prefix),
			Narrow: r.Filter.narrow() || r.Filter.And.narrow(),

			ExpireDays:     days(r.Expiration.Days),
			ExpireDate:     date(r.Expiration.Date),
			NoncurrentDays: days(r.NoncurrentVersionExpiration.NoncurrentDays),
			AbortDays:      days(r.AbortIncompleteMultipartUpload.DaysAfterInitiation),
		}
		for _, t := range r.Transition {
			rule.Transitions = append(rule.Transitions, Transition{Class: printable(t.StorageClass), Days: days(t.Days)})
		}
		rules = append(rules, rule)
	}
	return rules
}

type lockDocument struct {
	ObjectLockEnabled string
	Rule              struct {
		DefaultRetention struct{ Mode, Days, Years string }
	}
}

func (d lockDocument) lock() Lock {
	r := d.Rule.DefaultRetention
	return Lock{Enabled: d.ObjectLockEnabled == "Enabled", Mode: printable(r.Mode),
		Period: time.Duration(min(days(r.Days)+365*days(r.Years), maxDays)) * day}
}

type encryptionDocument struct {
	Rule []struct {
		ApplyServerSideEncryptionByDefault struct{ SSEAlgorithm, KMSMasterKeyID string }
	}
}

func (d encryptionDocument) encryption() Encryption {
	if len(d.Rule) == 0 {
		return Encryption{}
	}
	apply := d.Rule[0].ApplyServerSideEncryptionByDefault
	return Encryption{Algorithm: printable(apply.SSEAlgorithm), KeyID: printable(apply.KMSMasterKeyID)}
}

type uploadsDocument struct {
	IsTruncated bool
	Upload      []struct{ Key, Initiated string }
}

// uploads are those whose keys begin with prefix; not every store asks that of
// what it lists.
func (d uploadsDocument) uploads(prefix string) Uploads {
	u := Uploads{More: d.IsTruncated}
	for _, one := range d.Upload {
		if !strings.HasPrefix(one.Key, prefix) {
			continue
		}
		u.Count++
		if begun := date(one.Initiated); !begun.IsZero() && (u.Oldest.IsZero() || begun.Before(u.Oldest)) {
			u.Oldest = begun
		}
	}
	return u
}

const (
	day     = 24 * time.Hour
	maxDays = 100_000 // which a time.Duration can hold
)

// days reads a number of days; what is none, or not above 0, is 0.
func days(text string) int {
	n := 0
	for _, r := range strings.TrimSpace(text) {
		if r < '0' || r > '9' {
			return 0
		}
		n = min(n*10+int(r-'0'), maxDays)
	}
	return n
}

// date reads a point in time; zero is what can't be read.
func date(text string) time.Time {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return time.Time{}
	}
	return at
}

// maxShown is how much of a name that a store tells is shown, in bytes.
const maxShown = 128

// printable is a name that a store tells as it may be shown.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}
