package offload

import (
	"sync"
	"time"
)

// news is a configuration that waits for the next pass.
type news struct {
	mu   sync.Mutex // guards the configuration in effect, too, for those who ask
	next *Config
	also func()
	came chan struct{} // holds one element while there may be news
}

func newNews() *news { return &news{came: make(chan struct{}, 1)} }

// Configure has the worker go on with another configuration, which has been
// validated, from its next pass on; a Loop makes that at once, or as soon as the
// pass that is under way is over. also is called right before, while no pass
// works, for what else is to change together with it; it must be quick, and call
// nothing of the worker. Of several calls before a pass the last one holds. Where
// files grow, and how much of them is kept in memory, stays as it was. Safe for
// concurrent use.
func (w *Worker) Configure(c Config, also func()) {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	w.news.next, w.news.also = &c, also
	select {
	case w.news.came <- struct{}{}:
	default:
	}
}

// Config is the configuration in effect. Safe for concurrent use.
func (w *Worker) Config() Config {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	return w.cfg
}

// adopt takes what Configure has left. No pass is running.
func (w *Worker) adopt() {
	w.news.mu.Lock()
	defer w.news.mu.Unlock()
	if w.news.next == nil {
		return
	}
	next := *w.news.next
	next.SpoolDir, next.SpoolMemory = w.cfg.SpoolDir, w.cfg.SpoolMemory
	w.cfg, w.news.next = next, nil
	w.parked.rebase(next.TickInterval)
	w.news.also()
}

// retune is adopt for a Loop, whose ticker it sets anew where the tick is another
// one from now on.
func (w *Worker) retune(ticker *time.Ticker, tick time.Duration) time.Duration {
	select {
	case <-w.news.came:
	default:
	}
	w.adopt()
	if w.cfg.TickInterval != tick {
		ticker.Reset(w.cfg.TickInterval)
	}
	return w.cfg.TickInterval
}
