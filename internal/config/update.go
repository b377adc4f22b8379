package config

import (
	"reflect"
	"strings"
)

// Update is what becomes of a running program's settings when they are read
// again.
type Update struct {
	Settings *Loaded  // to go on with: those of before, with what is new and can change while the program runs
	Changed  []string // full names of what is new in Settings
	Restart  []string // full names of what was changed too, and holds only after a restart
}

// The lists, which are no rows of the table.
const (
	topicList  = "korvet.topics"
	streamList = "korvet.streams"
)

// Update compares the settings in effect with those that were read again.
// Neither is changed.
func (l *Loaded) Update(fresh *Loaded) Update {
	u := updating{old: l, fresh: fresh, config: l.Config, taken: map[string]bool{}}
	for _, r := range table() {
		u.row(r)
	}
	u.list(topicList, true, &u.config.Topics, &fresh.Topics)
	sameKeys := l.Redis.Layout == fresh.Redis.Layout // of which no stream may be one
	u.list(streamList, sameKeys, &u.config.Streams, &fresh.Streams)
	return Update{Settings: &Loaded{Config: u.config, Warnings: fresh.Warnings, report: u.report()}, Changed: u.changed, Restart: u.restart}
}

// updating is an Update in the making.
type updating struct {
	old, fresh *Loaded
	config     Config
	taken      map[string]bool // what comes from fresh
	changed    []string
	restart    []string
}

func (u *updating) row(r row) {
	live := r.live && (r.name != tickInterval || u.fresh.Worker.TickInterval < u.old.Lease.Duration)
	from := reflect.ValueOf(r.field(&u.fresh.Config)).Elem()
	to := reflect.ValueOf(r.field(&u.config)).Elem()
	u.note(r.name, live, reflect.DeepEqual(from.Interface(), to.Interface()))
	if live {
		to.Set(from)
	}
}

func (u *updating) list(name string, live bool, to, from any) {
	into, of := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	u.note(name, live, reflect.DeepEqual(into.Interface(), of.Interface()))
	if live {
		into.Set(of)
	}
}

func (u *updating) note(name string, live, same bool) {
	u.taken[name] = live
	switch {
	case same:
	case live:
		u.changed = append(u.changed, name)
	default:
		u.restart = append(u.restart, name)
	}
}

// report lists the settings in effect, each with the place that it was taken
// from.
func (u *updating) report() []Setting {
	var report []Setting
	add := func(name string, is func(string) bool) {
		from := u.old.report
		if u.taken[name] {
			from = u.fresh.report
		}
		for _, s := range from {
			if is(s.Name) {
				report = append(report, s)
			}
		}
	}
	for _, r := range table() {
		add(r.name, func(name string) bool { return name == r.name })
	}
	for _, list := range []string{topicList, streamList} {
		add(list, func(name string) bool { return strings.HasPrefix(name, list+"[") })
	}
	return report
}
