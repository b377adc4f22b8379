package rawread

import (
	"fmt"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

func TestReadFetchesWhatThePlanHasSeen(t *testing.T) {
	s := redisserver.Start(t)
	var b []byte
	for i := range 2500 {
		b = redisserver.AppendCommand(b, "XADD", "s", fmt.Sprintf("%d-1", i+1), "f", "some value")
	}
	s.Pipe(b)
	plan, err := NewPlan(t.Context(), s.Addr, "s", 1000)
	if err != nil || plan.Entries != 2500 || len(plan.pages) != 3 {
		t.Fatalf("plan of %d entries in %d pages, %v; want 2500 in 3", plan.Entries, len(plan.pages), err)
	}
	if took, err := Read(t.Context(), s.Addr, plan, plan); err != nil || took <= 0 {
		t.Fatalf("read: %s, %v", took, err)
	}
	if _, err := NewPlan(t.Context(), s.Addr, "\r\n", 10); err != nil {
		t.Errorf("an absent stream: %v", err)
	}
	s.Exec("SET", "t", "text")
	if _, err := NewPlan(t.Context(), s.Addr, "t", 10); err == nil {
		t.Error("a key that is no stream gave a plan")
	}
}
