package command

import (
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// part is something without which no work can be done. The program is ready
// when none of them is down.
type part string

const (
	partRedis part = "redis"
	partLease part = "lease"
	partOwner part = "owner" // the store says whom it belongs to
	partStore part = "store" // objects can be put
	partPass  part = "pass"  // it goes on

	partAnswer part = "store's answer" // it comes, while a pass is under way
	partData   part = "redis' data"    // it is what was there before
)

// outage is why a part is down.
type outage struct {
	text, cause string
	since       time.Time // by this host's clock
	what        string    // that was written down
	fields      []zap.Field
	said        time.Time // when it was, last
}

// outageReminder is how often an outage that lasts is written down again.
const outageReminder = 5 * time.Minute

// works ends the outages of parts, if there were any.
func (j *journal) works(parts ...part) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range parts {
		if was, down := j.down[p]; down {
			delete(j.down, p)
			j.log.Info("works again", zap.String("what", string(p)), zap.String("was", was.text))
		}
	}
	j.settle()
}

// fails writes down why no work can be done: once for each cause, and again
// while it lasts.
func (j *journal) fails(p part, what string, err error, fields ...zap.Field) {
	j.mu.Lock()
	defer j.mu.Unlock()
	before, lasts := j.down[p]
	now := outage{text: err.Error(), cause: sameCause(err), since: j.now(), what: what, fields: fields}
	if lasts {
		now.since, now.said = before.since, before.said
	}
	if before.cause != now.cause {
		now.said = j.now()
		j.log.Error(what, append(slices.Clone(fields), zap.Error(err))...)
	}
	j.down[p] = now
	j.settle()
	j.remind()
}

// reminds writes down again what has been down for long.
func (j *journal) reminds() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.remind()
}

func (j *journal) remind() {
	now := j.now()
	for _, p := range parts() {
		o, down := j.down[p]
		if !down || now.Sub(o.said) < outageReminder {
			continue
		}
		o.said = now
		j.down[p] = o
		j.log.Error(o.what, append(slices.Clone(o.fields), zap.Duration("for", now.Sub(o.since).Round(time.Second)), zap.String("error", o.text))...)
	}
}

// settle makes the health of the outages.
func (j *journal) settle() {
	if why := j.downBecause(); why != "" {
		j.health.NotReady(why)
		return
	}
	j.health.Ready()
}

// parts are all parts, in the order in which they are looked at.
func parts() []part {
	return []part{partPass, partRedis, partLease, partOwner, partStore, partAnswer, partData}
}

// downBecause is why no work can be done; "" if it can.
func (j *journal) downBecause() string {
	for _, p := range parts() {
		if o, down := j.down[p]; down {
			return o.text
		}
	}
	return ""
}

// isDown says whether a part is down.
func (j *journal) isDown(p part) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	_, down := j.down[p]
	return down
}

// sameCause is an error's text without its numbers: the local port of a
// connection is another one each time.
func sameCause(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}
