package points

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"korvet-offload/offload"
	"korvet-offload/segment"
)

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func mustWrap(t *testing.T, env ...string) (offload.Ports, *int) {
	t.Helper()
	calls := new(int)
	p, err := FromEnvironment(deaf{calls}.ports(), environment(env...))
	if err != nil {
		t.Fatal(err)
	}
	return p, calls
}

func TestWithoutVariablesNothingIsWrapped(t *testing.T) {
	p, _ := mustWrap(t)
	if _, same := p.Store.(deaf); !same {
		t.Errorf("%T", p.Store)
	}
}

func TestTheNthPassingFails(t *testing.T) {
	for _, tt := range []struct {
		text  string
		which int // of three calls
		made  int
	}{
		{"fail:before:Store.Stat", 0, 2}, {"fail:after:Store.Stat", 0, 3}, {"fail:before:Store.Stat#3", 2, 2}, {"fail:before:Store.Put", -1, 3}, {"fail:after:*#2", 1, 3},
	} {
		p, calls := mustWrap(t, Fault, tt.text)
		for i := range 3 {
			_, err := p.Store.Stat(t.Context(), "a")
			if (i == tt.which) != errors.Is(err, ErrInjected) || err != nil && !errors.Is(err, offload.ErrStoreDown) {
				t.Errorf("%s: call %d: %v", tt.text, i, err)
			}
		}
		if *calls != tt.made {
			t.Errorf("%s: %d calls came through", tt.text, *calls)
		}
	}
	p, _ := mustWrap(t, Fault, "fail:before:Removals.Trim")
	if _, err := p.Removals.Trim(t.Context(), "a", segment.Piece{}); !errors.Is(err, offload.ErrRedisDown) {
		t.Errorf("%v", err)
	}
}

func TestWrongFaults(t *testing.T) {
	for _, text := range []string{"kill", "kill:before", "kill:before:", "kill:during:a B.C", "burn:before:a B.C", "kill:before:a B.C#0", "kill:before:a B.C#x"} {
		if _, err := FromEnvironment(offload.Ports{}, environment(Fault, text)); err == nil || !strings.Contains(err.Error(), "want kill|stop|fail") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestTraceListsThePoints(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace")
	p, _ := mustWrap(t, FaultTrace, file)
	for range 2 {
		if _, err := p.Store.CreateOnly(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(file); err != nil || string(text) != "Store.CreateOnly\nStore.CreateOnly\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestFailuresAtRandom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "failures")
	p, calls := mustWrap(t, FaultFail, file)
	count := func() (failed int) {
		for range 1000 {
			if _, err := p.Store.CreateOnly(t.Context()); err != nil {
				failed++
			}
		}
		return failed
	}
	if n := count(); n != 0 {
		t.Errorf("%d failed without the file", n)
	}
	write(t, file, "4:7")
	*calls = 0
	if n := count(); n < 180 || n > 300 || *calls < 1000-n || *calls == 1000-n || *calls == 1000 {
		t.Errorf("1 in 4: %d failed, %d came through", n, *calls)
	}
	write(t, file, "")
	if n := count(); n != 0 {
		t.Errorf("%d failed with an empty file", n)
	}
	write(t, file, "often")
	if _, err := p.Store.CreateOnly(t.Context()); err == nil || !strings.Contains(err.Error(), "n:seed") {
		t.Errorf("%v", err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTheClockIsShifted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "clock")
	p, _ := mustWrap(t, FaultClock, file)
	mustSay := func(want int64) {
		t.Helper()
		if now, err := p.Clock.Now(t.Context()); err != nil || !now.Equal(time.UnixMilli(want)) {
			t.Errorf("%v, %v, want %d", now, err, want)
		}
	}
	mustSay(5)
	write(t, file, "1000\n")
	mustSay(1005)
	write(t, file, "-6")
	mustSay(-1)
	write(t, file, "soon")
	if _, err := p.Clock.Now(t.Context()); err == nil {
		t.Error("a clock of no number")
	}
}
