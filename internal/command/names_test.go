package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"korvet-offload/internal/cmdline"
	"korvet-offload/segment"
)

const anyForm = formTopic | formPartition | formSegments

// text is what was understood, for comparison.
func (all names) text() string {
	var parts []string
	for _, n := range all {
		text := n.String()
		if n.segments != nil {
			text += " segments " + n.segments.String()
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func TestNames(t *testing.T) {
	all := grammar{takes: anyForm, none: true, many: true, streams: true}
	one := grammar{takes: formPartition | formSegments, streams: true}
	few := grammar{takes: formSegments, many: true, streams: true, hint: "ls lists them"}
	topics := grammar{takes: formTopic, none: true}
	for _, tt := range []struct {
		grammar grammar
		args    string
		stream  string
		want    string
		wrong   string
	}{
		{grammar: all, args: "", want: ""},
		{grammar: all, args: "orders", want: "topic orders"},
		{grammar: all, args: "orders:0", want: "partition orders:0"},
		{grammar: all, args: "orders:0/7", want: "partition orders:0 segments 7"},
		{grammar: all, args: "orders:0/7,1-3,2,4", want: "partition orders:0 segments 1-4,7"},
		{grammar: all, args: "orders:0/1 orders:0/2 orders:1 payments", want: "partition orders:0 segments 1-2; partition orders:1; topic payments"},
		{grammar: all, args: "orders:0/1 orders:0", want: "partition orders:0"},
		{grammar: all, stream: "a b/c:1", want: `stream "a b/c:1"`},
		{grammar: all, stream: "events", args: "7 1-3", want: "stream events segments 1-3,7"},
		{grammar: one, args: "orders:0/0-9223372036854775807", want: "partition orders:0 segments 0-9223372036854775807"},
		{grammar: few, stream: "events", args: "7", want: "stream events segments 7"},
		{grammar: topics, args: "orders", want: "topic orders"},

		{grammar: one, args: "", wrong: "nothing is named: want one of TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7"},
		{grammar: one, args: "orders", wrong: `"orders" names a topic: want one of TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7`},
		{grammar: one, args: "orders:0 orders:1", wrong: `"orders:1" is one too many: want one of TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7`},
		{grammar: few, args: "orders:0", wrong: `"orders:0" names a partition: want TOPIC:N/SEGMENTS, --stream KEY SEGMENTS, SEGMENTS as in 7 or 1-3,7; ls lists them`},
		{grammar: few, stream: "events", wrong: "--stream events names no segment: want TOPIC:N/SEGMENTS, --stream KEY SEGMENTS, SEGMENTS as in 7 or 1-3,7; ls lists them"},
		{grammar: topics, args: "orders:0/7", wrong: `"orders:0/7" names segments: want one of TOPIC`},
		{grammar: topics, args: "orders:0", wrong: `"orders:0" names a partition: want one of TOPIC`},
		{grammar: all, args: "orders/7", wrong: `"orders/7": segments are those of a partition: want TOPIC, `},
		{grammar: all, args: "orders:0/", wrong: `"orders:0/": segment id "": want a decimal number up to 9223372036854775807: want TOPIC, `},
		{grammar: all, args: "orders:0/x", wrong: `"orders:0/x": segment id "x": `},
		{grammar: all, args: "orders:0/1,,2", wrong: `"orders:0/1,,2": segment id "": `},
		{grammar: all, args: "orders:0/3-1", wrong: `"orders:0/3-1": segments 3-1: 3 is above 1: `},
		{grammar: all, args: "orders:0/1/2", wrong: `"orders:0/1/2": segment id "1/2": `},
		{grammar: all, args: "or$ders", wrong: `"or$ders": illegal topic name: `},
		{grammar: all, args: "orders:x", wrong: `"orders:x": partition "x" is no number below 1000000: want TOPIC, `},
		{grammar: all, args: "orders:1000000", wrong: `"orders:1000000": partition "1000000" is no number below 1000000: `},
		{grammar: all, stream: "events", args: "orders:0", wrong: `--stream and "orders:0": want TOPIC, TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY [SEGMENTS], SEGMENTS as in 7 or 1-3,7`},
		{grammar: grammar{takes: formPartition, streams: true}, stream: "events", args: "7", wrong: `--stream and "7": want one of TOPIC:N, --stream KEY`},
	} {
		got, err := tt.grammar.parse(strings.Fields(tt.args), tt.stream, tt.stream != "")
		if tt.wrong != "" {
			if _, usage := err.(cmdline.UsageError); !usage || !strings.HasPrefix(err.Error(), tt.wrong) { //nolint:errorlint // it is not wrapped
				t.Errorf("%q %q: %v, want %s", tt.stream, tt.args, err, tt.wrong)
			}
			continue
		}
		if err != nil || got.text() != tt.want {
			t.Errorf("%q %q: %s, %v, want %s", tt.stream, tt.args, got.text(), err, tt.want)
		}
	}
	if _, err := all.parse(nil, "", true); err == nil || !strings.HasPrefix(err.Error(), "--stream: ") {
		t.Errorf("--stream without a key: %v", err)
	}
}

// The help of every verb that takes names of segments explains them alike.
func TestTheHelpOfNames(t *testing.T) {
	app := Process{}.app()
	for verb, g := range map[string]grammar{"ls": lsNames(), "describe": describeNames(), "cat": catNames(), "verify": verifyNames(), "repair": verifyNames(), "gc": gcNames(), "restore": restoreNames(false)} {
		c := app.Command(verb)
		if !strings.Contains(c.Description, namesHelp) || !strings.Contains(c.UsageText, g.forms()) {
			t.Errorf("%s: %s\n%s", verb, c.UsageText, c.Description)
		}
	}
}

func TestWhatNamesMean(t *testing.T) {
	all := grammar{takes: anyForm, none: true, many: true, streams: true}
	orders, payments := segment.Partition{Topic: "orders"}, segment.Partition{Topic: "payments", Number: 3}
	parse := func(args ...string) names {
		n, err := all.parse(args, "", false)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tt := range []struct {
		names names
		want  string // covers orders:0, payments:3; has orders:0/1, orders:0/2; some segments of orders:0; the scope
	}{
		{nil, "true true true true false everything"},
		{parse("orders"), "true false true true false topic orders"},
		{parse("orders:0/1"), "true false true false true topic orders"},
		{parse("orders:0/1", "orders"), "true false true true false topic orders"},
		{parse("payments", "orders:0/2-9"), "true true false true true everything"},
		{parse("orders:1"), "false false false false true topic orders"},
	} {
		n := tt.names
		got := fmt.Sprint(n.covers(orders), n.covers(payments), n.has(orders, 1), n.has(orders, 2), n.some(orders), " ", n.scope())
		if strings.Join(strings.Fields(got), " ") != tt.want {
			t.Errorf("%s: %s, want %s", n.text(), got, tt.want)
		}
	}
	if got := parse("orders", "payments:3/1", "orders:1").partitions(); !slices.Equal(got, []segment.Partition{payments, {Topic: "orders", Number: 1}}) {
		t.Errorf("%v", got)
	}
}
