package config

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"korvet-offload/s3sink"
)

const (
	remotePath    = "korvet.storage.remote-path"
	tickInterval  = workerFamily + "tick-interval"
	leaseDuration = workerFamily + "lease-duration"
	stallTimeout  = workerFamily + "stall-timeout"
	uploadRate    = workerFamily + "upload-rate"
	concurrency   = workerFamily + "concurrency"
)

// check runs the packages' own checks, and those between packages, over
// settings that have no fault so far.
func (l *loader) check(c Config, needStore bool) {
	l.adopt(c, c.Redis.Validate(), "korvet.redis.", "korvet.storage.", workerFamily, "korvet.")
	l.checkStore(c, needStore)
	l.adopt(c, c.Worker.Validate(), workerFamily)
	l.adopt(c, c.Lease.Validate(), workerFamily, "korvet.storage.layout.")
	l.adopt(c, c.Ops.Validate(), workerFamily)
	l.adopt(c, c.Scrub.Validate(), workerFamily)
	l.adopt(c, c.Serve.Validate(), workerFamily)
	l.adopt(c, c.Cache.Validate(), workerFamily)
	l.checkLease(c)
	l.checkStall(c)
	l.checkRate(c)
}

// partsOfSegment is how many parts of a segment go to the store at once.
const partsOfSegment = 2

// checkRate speaks up where the uploads get so little each that stores may close
// their connections.
func (l *loader) checkRate(c Config) {
	const enough = 8 << 10
	if c.Worker.UploadRate == 0 || l.faulty[uploadRate] || l.faulty[concurrency] {
		return
	}
	if each := c.Worker.UploadRate / int64(partsOfSegment*c.Worker.Concurrency); each < enough {
		l.warn("%s leaves each of %d uploads %s per second, so that a store may close its connection; raise it, or lower %s",
			l.present(&c, uploadRate), partsOfSegment*c.Worker.Concurrency, formatSize(each), concurrency)
	}
}

// checkStore checks where the files go; commands that need no store may leave
// it out.
func (l *loader) checkStore(c Config, need bool) {
	if c.Store.URL == "" {
		if need && !l.faulty[remotePath] {
			l.fault("%s: it is required: s3://bucket/prefix or file:///dir, in the settings file, as KORVET_STORAGE_REMOTE_PATH or as --remote-path", remotePath)
		}
		l.faulty[remotePath] = true
	}
	l.adopt(c, c.Store.Validate(), "korvet.storage.", "korvet.storage.s3.")
}

// checkLease holds the lease against the tick: a lease that ends before the
// next pass would change hands at every pass.
func (l *loader) checkLease(c Config) {
	if l.faulty[tickInterval] || l.faulty[leaseDuration] || c.Lease.Duration > c.Worker.TickInterval {
		return
	}
	l.fault("%s: must be longer than %s", l.present(&c, leaseDuration), l.present(&c, tickInterval))
}

// checkStall holds the watchdog against the waits that have a limit of their
// own: a server that is slow to fail must not pass for a program that hangs.
func (l *loader) checkStall(c Config) {
	if l.faulty[stallTimeout] {
		return
	}
	longest, of := c.Redis.LongestSilence(), "Redis"
	if store := s3sink.LongestSilence(); strings.HasPrefix(c.Store.URL, "s3") && store > longest {
		longest, of = store, "the object store"
	}
	if c.Ops.StallTimeout <= longest {
		l.fault("%s: must be longer than %s, which %s may take to answer", l.present(&c, stallTimeout), formatDuration(longest), of)
	}
}

// present describes a setting as it is in effect, given or not.
func (l *loader) present(c *Config, name string) string {
	n := l.byName[fold(name)]
	g, ok := l.used[name]
	if !ok {
		if g = (given{name: name, text: n.row.value(c), at: "default"}); g.text == "" {
			return name + " (not set)"
		}
	}
	return describe(*n.row, g)
}

// adopt makes faults of a package's errors. Each begins with the last part of
// a setting's name, which is looked for in the families.
func (l *loader) adopt(c Config, errs []error, families ...string) {
	reported := map[string]bool{}
	defer func() { maps.Copy(l.faulty, reported) }() // the next package need not say it again
	for _, err := range errs {
		text := oneLine(err.Error())
		last := text[:len(text)-len(strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz0123456789-."))]
		r, ok := l.rowIn(families, strings.TrimRight(last, "."))
		switch {
		case !ok:
			l.fault("%s: %s", families[0]+last, l.scrub(&c, text))
		case !l.faulty[r.name]:
			rest := trimValue(strings.TrimPrefix(text, last), reflect.ValueOf(r.field(&c)).Elem().Interface())
			l.fault("%s%s", l.present(&c, r.name), l.scrub(&c, rest))
			reported[r.name] = true
		}
	}
}

func (l *loader) rowIn(families []string, last string) (row, bool) {
	for _, f := range families {
		if n, ok := l.byName[fold(f+last)]; ok {
			return *n.row, true
		}
	}
	return row{}, false
}

// trimValue takes the value off the rest of a package's error, since the
// fault names it already: " 5: want 1" and " = 5: want 1" become ": want 1".
func trimValue(rest string, value any) string {
	v := fmt.Sprint(value)
	for _, form := range []string{" " + v, " = " + v, " " + strconv.Quote(v), " = " + strconv.Quote(v)} {
		if trimmed, ok := strings.CutPrefix(rest, form+": "); ok {
			return ": " + trimmed
		}
	}
	return rest
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// scrub is the last guard before a package's words are shown: packages name
// no secrets, and should one slip, it ends here.
func (l *loader) scrub(c *Config, text string) string {
	for _, r := range l.rows {
		raw := r.value(c)
		if len(raw) < 4 || l.redact(r, raw) == raw {
			continue
		}
		text = strings.ReplaceAll(text, raw, hidden)
		text = quoted.ReplaceAllStringFunc(text, func(q string) string {
			if part := strings.Trim(q, `"`); part != "" && strings.Contains(raw, part) {
				return "it" // a part of what is hidden
			}
			return q
		})
	}
	return text
}
