package redisstore

import (
	"errors"
	"reflect"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestGroups(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	if groups, err := s.Groups(t.Context(), "absent"); groups == nil || len(groups) != 0 || err != nil {
		t.Errorf("absent: %v, %v", groups, err)
	}
	for _, id := range []string{"1-1", "1-2", "1-10", "2-1"} {
		server.Exec("XADD", "s", id, "f", "v")
	}
	if groups, err := s.Groups(t.Context(), "s"); groups == nil || len(groups) != 0 || err != nil {
		t.Errorf("without groups: %v, %v", groups, err)
	}
	server.Exec("XGROUP", "CREATE", "s", "new", "0")
	server.Exec("XGROUP", "CREATE", "s", "busy", "0")
	server.Exec("XGROUP", "CREATE", "s", "idle \xff", "$")
	server.Exec("XREADGROUP", "GROUP", "busy", "a", "COUNT", "2", "STREAMS", "s", ">")
	server.Exec("XREADGROUP", "GROUP", "busy", "b", "COUNT", "1", "STREAMS", "s", ">")
	server.Exec("XACK", "s", "busy", "1-1")
	want := []segment.Group{
		{Name: "busy", LastDelivered: at(1, 10), Pending: 2, OldestPending: at(1, 2)},
		{Name: "idle \xff", LastDelivered: at(2, 1)},
		{Name: "new"},
	}
	if got, err := s.Groups(t.Context(), "s"); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	server.Exec("HSET", "h", "f", "v")
	if _, err := s.Groups(t.Context(), "h"); !errors.Is(err, segment.ErrWrongType) || ClassOf(err) != WrongType {
		t.Errorf("of a hash: %v", err)
	}
}

// TestGroupsThatChangeMeanwhile: between the two questions everything was
// acknowledged, or the group was destroyed.
func TestGroupsThatChangeMeanwhile(t *testing.T) {
	server := redisserver.Start(t)
	s := open(t, config(server))
	server.Exec("XADD", "s", "1-1", "f", "v")
	server.Exec("XGROUP", "CREATE", "s", "g", "0")
	pending := func(group string) error {
		g := segment.Group{Name: group, Pending: 1}
		err := readPending(s.do(t.Context(), s.client.B().Xpending().Key("s").Group(group).Build()), &g)
		if g.Pending != 0 || !g.OldestPending.IsZero() {
			t.Errorf("%+v", g)
		}
		return err
	}
	if err := errors.Join(pending("g"), pending("gone")); err != nil {
		t.Error(err)
	}
}
