package points

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"korvet-offload/offload"
)

// The variables of a program that was built with faultpoints.
const (
	// Fault is kill|stop|fail:before|after:POINT[#n]: what happens at a point, on
	// which side, when it is passed for the n-th time. The point * is any.
	Fault = "KORVET_FAULT"
	// FaultClock names a file with a number of ms, which are added to what the
	// Redis clock says. It is read at each call; without the file nothing is added.
	FaultClock = "KORVET_FAULT_CLOCK"
	// FaultFail is n:seed, or a file in which that stands: of n calls to Redis or
	// the store one fails, at random, half of those after they were done. The
	// file is read at each call; without it nothing fails.
	FaultFail = "KORVET_FAULT_FAIL"
	// FaultTrace names a file to which each point is appended that is passed.
	FaultTrace = "KORVET_FAULT_TRACE"
)

// ErrInjected is in every error that a hook has made up.
var ErrInjected = errors.New("a fault that a test wanted")

// FromEnvironment wraps the ports in what the environment asks for.
func FromEnvironment(p offload.Ports, getenv func(string) string) (offload.Ports, error) {
	var hooks []Hook
	if file := getenv(FaultTrace); file != "" {
		hooks = append(hooks, trace(file))
	}
	if text := getenv(FaultFail); text != "" {
		hooks = append(hooks, failures(text))
	}
	if text := getenv(Fault); text != "" {
		f, err := parseFault(text)
		if err != nil {
			return p, err
		}
		hooks = append(hooks, f.hook)
	}
	if file := getenv(FaultClock); file != "" {
		p.Clock = shifted{p.Clock, file}
	}
	if len(hooks) == 0 {
		return p, nil
	}
	return Wrap(p, all(hooks)), nil
}

func all(hooks []Hook) Hook {
	return func(point string, side Side) error {
		for _, h := range hooks {
			if err := h(point, side); err != nil {
				return err
			}
		}
		return nil
	}
}

// fault is what happens at one point.
type fault struct {
	act   func(point string) error
	side  Side
	point string
	nth   int

	mu     sync.Mutex
	passed int
}

func parseFault(text string) (*fault, error) {
	verb, rest, _ := strings.Cut(text, ":")
	side, point, _ := strings.Cut(rest, ":")
	f := &fault{side: Side(side), nth: 1}
	f.act = map[string]func(string) error{"kill": kill, "stop": stop, "fail": injected}[verb]
	var nth string
	var counted bool
	var err error
	if f.point, nth, counted = strings.Cut(point, "#"); counted {
		f.nth, err = strconv.Atoi(nth)
	}
	if f.act == nil || f.side != Before && f.side != After || f.point == "" || err != nil || f.nth < 1 {
		return nil, fmt.Errorf("%s %q: want kill|stop|fail:before|after:POINT[#n]", Fault, text)
	}
	return f, nil
}

func (f *fault) hook(point string, side Side) error {
	if point != f.point && f.point != "*" || side != f.side {
		return nil
	}
	f.mu.Lock()
	f.passed++
	now := f.passed == f.nth
	f.mu.Unlock()
	if !now {
		return nil
	}
	return f.act(point)
}

// injected is an outage of what the point speaks to.
func injected(point string) error {
	switch port, _, _ := strings.Cut(Call(point), "."); port {
	case "Store":
		return fmt.Errorf("%w: %w at %s", offload.ErrStoreDown, ErrInjected, point)
	case "Encoding", "Encoder":
		return fmt.Errorf("%w at %s", ErrInjected, point)
	}
	return fmt.Errorf("%w: %w at %s", offload.ErrRedisDown, ErrInjected, point)
}

// trace appends the points to a file, each before it is passed.
func trace(file string) Hook {
	var mu sync.Mutex
	return func(point string, side Side) error {
		if side != Before {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(point + "\n")
		return errors.Join(err, f.Close())
	}
}

// failures is a hook that fails at random as text, or the file of that name, says.
func failures(text string) Hook {
	var mu sync.Mutex
	var random *rand.Rand
	seeded := ""
	return func(point string, _ Side) error {
		if strings.HasPrefix(Call(point), "Enc") {
			return nil
		}
		n, seed, err := readFailures(text)
		if n == 0 || err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		if now := fmt.Sprint(n, seed); seeded != now {
			random, seeded = rand.New(rand.NewPCG(seed, uint64(n))), now //nolint:gosec // it is to be the same every time
		}
		if random.IntN(2*n) != 0 { // each call has two sides
			return nil
		}
		return injected(point)
	}
}

// readFailures reads n:seed; n is 0 where nothing is to fail.
func readFailures(text string) (n int, seed uint64, err error) {
	if strings.Contains(text, "/") {
		b, err := os.ReadFile(text)
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(b) == 0 {
			return 0, 0, nil
		}
		if err != nil {
			return 0, 0, err
		}
		text = strings.TrimSpace(string(b))
	}
	if _, err = fmt.Sscanf(text, "%d:%d", &n, &seed); err != nil || n < 1 {
		return 0, 0, fmt.Errorf("%s %q: want n:seed, n being 1 or more", FaultFail, text)
	}
	return n, seed, nil
}

// shifted is a clock that runs apart by what a file says.
type shifted struct {
	offload.Clock
	file string
}

func (s shifted) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Clock.Now(ctx)
	if err != nil {
		return now, err
	}
	text, err := os.ReadFile(s.file)
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	if err != nil {
		return now, err
	}
	ms, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return now, fmt.Errorf("%s %s: %w", FaultClock, s.file, err)
	}
	return now.Add(time.Duration(ms) * time.Millisecond), nil
}
