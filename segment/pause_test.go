package segment

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPauseIsReadAsItWasWritten(t *testing.T) {
	for _, scope := range []Scope{{}, {Topic: "orders"}, {Stream: "a b:*"}} {
		want := Pause{Scope: scope, Since: time.UnixMilli(1_700_000_000_123), By: "ada@host", Reason: "a \"reason\""}
		got, err := ParsePause(scope.Field(), want.Encode())
		if err != nil || got != want {
			t.Errorf("%+v, %v, want %+v", got, err, want)
		}
	}
	if got, want := (Pause{Since: time.UnixMilli(7), By: "a", Reason: "b"}).Encode(), `{"v":1,"since":7,"by":"a","reason":"b"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestScopeCovers(t *testing.T) {
	orders, plain := Partition{Topic: "orders", Number: 3}, Partition{Topic: "orders", Plain: true}
	for _, tt := range []struct {
		scope         Scope
		topic, stream bool
		field, text   string
	}{
		{Scope{}, true, true, "*", "everything"},
		{Scope{Topic: "orders"}, true, false, "topic:orders", "topic orders"},
		{Scope{Stream: "orders"}, false, true, "stream:orders", "stream orders"},
		{Scope{Topic: "order"}, false, false, "topic:order", "topic order"},
		{Scope{Stream: "or ders"}, false, false, "stream:or ders", `stream "or ders"`},
	} {
		if tt.scope.Covers(orders) != tt.topic || tt.scope.Covers(plain) != tt.stream {
			t.Errorf("%s covers the topic %t, the stream %t", tt.scope, tt.scope.Covers(orders), tt.scope.Covers(plain))
		}
		if tt.scope.Field() != tt.field || tt.scope.String() != tt.text {
			t.Errorf("field %q, text %q", tt.scope.Field(), tt.scope)
		}
	}
}

// TestAnUnreadablePauseIsOne: whoever has written it meant something.
func TestAnUnreadablePauseIsOne(t *testing.T) {
	for _, value := range []string{"", "1", "null", "{}", `{"v":2,"since":1}`, `{"v":1,"since":-1}`, `{"v":1,"since":253402300800000}`, `{"v":1,"since":"x"}`, "\xff"} {
		p, err := ParsePause("topic:orders", value)
		if err != nil || p.Scope != (Scope{Topic: "orders"}) || !errors.Is(p.Err, ErrPause) || strings.Contains(p.Err.Error(), "\n") {
			t.Errorf("%q: %+v, %v", value, p, err)
		}
	}
}

func TestAFieldThatNamesNothingPausesNothing(t *testing.T) {
	all := ParsePauses(map[string]string{"orders": "x", "topic:": "x", "topic:..": "x", "stream:": "x", "": "x", "topic:a": Pause{}.Encode(), "*": "x",
		"stream:s": Pause{}.Encode(), "topic:b": Pause{}.Encode()})
	var scopes []string
	for _, p := range all.List {
		scopes = append(scopes, p.Scope.String())
	}
	if got, want := strings.Join(scopes, ", "), "everything, topic a, topic b, stream s"; got != want || len(all.Errs) != 5 {
		t.Errorf("%s; %v", got, all.Errs)
	}
	for _, err := range all.Errs {
		if !errors.Is(err, ErrPause) {
			t.Error(err)
		}
	}
	if _, ok := all.Of(Scope{Topic: "c"}); ok {
		t.Error("the pause of everything is taken for that of a topic")
	}
	if p, ok := all.Of(Scope{Topic: "a"}); !ok || !p.Since.IsZero() || p.Err != nil {
		t.Errorf("%+v", p)
	}
	if !all.Covers(Partition{Topic: "c"}) || (Pauses{}).Covers(Partition{Topic: "c"}) {
		t.Error("what is covered")
	}
}

// TestManyPauses: each is found among many, and nothing else is.
func TestManyPauses(t *testing.T) {
	fields := map[string]string{}
	for n := range 100 {
		fields[fmt.Sprintf("topic:t%d", 2*n)], fields[fmt.Sprintf("stream:t%d", 3*n)] = Pause{}.Encode(), "unreadable"
	}
	for _, everything := range []bool{false, true} {
		if everything {
			fields["*"] = Pause{}.Encode()
		}
		all := ParsePauses(fields)
		for n := range 310 {
			name := fmt.Sprintf("t%d", n)
			_, topic := fields["topic:"+name]
			_, stream := fields["stream:"+name]
			if all.Covers(Partition{Topic: name}) != (topic || everything) || all.Covers(Partition{Topic: name, Plain: true}) != (stream || everything) {
				t.Errorf("%s with everything %t: topic %t, stream %t", name, everything, topic, stream)
			}
		}
	}
}
