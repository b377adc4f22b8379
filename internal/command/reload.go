package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/urfave/cli/v2"
	"go.uber.org/zap"

	"korvet-offload/internal/config"
	"korvet-offload/internal/redisstore"
)

// settingsAgain reads the settings of a program that runs. A settings file that is
// a pipe was used up at the start, and reading it again might never end.
func (p Process) settingsAgain(c *cli.Context) (*config.Loaded, error) {
	if file := config.FromFlags(c, p.Environ).File; file != "" {
		if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
			return nil, config.Faults{fmt.Sprintf("read settings file: %q is no plain file, and can't be read again", file)}
		}
	}
	return p.settings(c, true)
}

// reloading reads the settings of a daemon again while it runs, and applies
// those that can change.
type reloading struct {
	log   *zap.Logger
	level zap.AtomicLevel
	asked <-chan os.Signal               // nil = nobody ever asks
	load  func() (*config.Loaded, error) // as at the start
	tell  func(*config.Loaded)           // told what is in effect, when it has changed
	begin func() (over func())           // told that it begins

	mu      sync.Mutex
	now     *config.Loaded // that hold, or will hold from the next pass on
	changed bool           // since the start
	session *session       // nil until there is one
}

// follow reads the settings each time it is asked to, until ctx ends.
func (r *reloading) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.asked:
			over := r.begin()
			r.reload()
			over()
		}
	}
}

// reload reads the settings once. If anything is wrong with them, nothing
// changes.
func (r *reloading) reload() {
	fresh, err := r.load()
	if err != nil {
		r.refuse(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	u := r.now.Update(fresh)
	if level, err := fresh.Ops.Level(); err == nil && level < r.level.Level() { // what is said now is to be heard
		r.level.SetLevel(level)
	}
	r.say(u)
	r.now = u.Settings
	if len(u.Changed) > 0 {
		r.changed = true
		r.apply()
	}
}

// refuse writes down each thing that is wrong.
func (r *reloading) refuse(err error) {
	faults := config.Faults{err.Error()}
	errors.As(err, &faults)
	for _, f := range faults {
		r.log.Error("the settings have a fault, so nothing is changed", zap.String("fault", f))
	}
}

// say writes down what has changed. What is secret is not among it.
func (r *reloading) say(u config.Update) {
	for _, w := range u.Settings.Warnings {
		if !slices.Contains(r.now.Warnings, w) {
			r.log.Warn(w)
		}
	}
	for _, name := range u.Changed {
		r.log.Info("setting has changed", zap.String("setting", name), zap.String("value", u.Settings.Shown(name)))
	}
	if len(u.Restart) > 0 {
		r.log.Warn("changed, and needs a restart", zap.Strings("settings", u.Restart))
	}
	if len(u.Changed)+len(u.Restart) == 0 {
		r.log.Info("the settings were read again, and have not changed")
	}
}

// attach gives the session to which all is applied, and on which no pass works
// yet.
func (r *reloading) attach(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.session = s
	if r.changed {
		r.apply()
	}
}

// apply has the settings hold: what is said in the log and how fast uploads are
// at once, all else together between two passes.
func (r *reloading) apply() {
	now, s := r.now, r.session
	if level, err := now.Ops.Level(); err == nil { // it was validated
		r.level.SetLevel(level)
	}
	if s == nil { // attach goes on
		r.tell(now)
		return
	}
	s.limit.set(now.Worker.UploadRate)
	s.worker.Configure(now.Worker, func() {
		reconfigure(s.redis, now.Config)
		r.tell(now)
	})
}

func reconfigure(s *redisstore.Store, c config.Config) {
	s.Reconfigure(c.Topics, c.Streams, c.Redis.PageSize)
}

// retold tells whoever shows settings which are in effect.
func (d *daemon) retold(now *config.Loaded) {
	sla := now.Worker.TickInterval + now.Worker.SLA
	d.board.SetSettings(shownSettings(now.Report()))
	d.board.SetSLA(sla)
	d.site.SetTick(now.Worker.TickInterval)
	d.metrics.SetSLA(sla)
	d.metrics.SetUploadRate(now.Worker.UploadRate)
}
