package page

import (
	"fmt"
	"html/template"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"korvet-offload/internal/board"
	"korvet-offload/segment"
)

// functions are what the templates use.
func functions() template.FuncMap {
	return template.FuncMap{
		"ago":  since,
		"bars": bars, "bytes": size, "whole": whole, "words": words, "segments": segments,
		"stateName": stateName, "duration": func(s float64) string { return board.Ago(seconds(s)) }, "clock": clock, "did": did,
		"partitionLink": partitionLink, "partitionName": partitionName, "levelName": levelName, "level": levelOf,
		"problemLink": problemLink, "headroom": headroom, "numbers": numbers, "until": func(t *time.Time, now time.Time) string { return board.Ago(t.Sub(now)) },
		"due":  func(t *time.Time, now time.Time) bool { return t == nil || !t.After(now) },
		"long": func(name string) bool { return len(name) > longName }, "plural": plural, "pluralOf": func(n int64, noun string) string { return plural(int(min(n, 2)), noun) },
		"messages": messages, "lastAt": lastAt, "sorts": sorts, "phases": phases,
	}
}

// since is how long ago something was.
func since(t, now time.Time) string {
	if d := now.Sub(t); d >= time.Second {
		return board.Ago(d)
	}
	return "a moment"
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// clock is a time as a machine and as a person reads it.
func clock(t time.Time) struct{ Machine, Person string } {
	t = t.UTC()
	return struct{ Machine, Person string }{t.Format(time.RFC3339), t.Format("2006-01-02 15:04:05") + " UTC"}
}

// longName is from how many bytes on a name may be broken anywhere.
const longName = 32

func plural(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// messages is how many a run has. Those of an open segment are counted only where
// a limit of size wants it.
func messages(r board.Run) string {
	if r.State == "open" && r.Messages == 0 {
		return "?"
	}
	return whole(r.Messages)
}

// lastAt is the time of a run's last segment; nil = it is not known, or that of
// the only open one, which has not ended.
func lastAt(r board.Run) *time.Time {
	if r.State == "open" && r.Count == 1 {
		return nil
	}
	return r.LastAt
}

// whole is a number with its thousands apart.
func whole(n any) string {
	text := fmt.Sprint(n)
	from := 0
	if strings.HasPrefix(text, "-") {
		from = 1
	}
	for i := len(text) - 3; i > from; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return text
}

// size is a number of bytes as a person says it.
func size(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return strconv.FormatInt(n, 10) + " B"
	}
	value, unit := float64(n)/1024, 0
	for value >= 999.5 && unit < len(units)-1 {
		value /= 1024
		unit++
	}
	digits := 1
	if value >= 99.5 {
		digits = 0
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " " + units[unit:unit+1] + "iB"
}

// did is what a pass has done, in the order of a segment's life.
func did(p board.Pass) string {
	var parts []string
	for _, r := range []string{"created", "rolled", "copied", "adopted", "dropped", "held", "reopened", "returned", "hidden", "expired", "expired_unuploaded", "lost_race"} {
		if n := p.Did[r]; n > 0 {
			parts = append(parts, whole(n)+" "+strings.ReplaceAll(r, "_", " "))
		}
	}
	if len(parts) == 0 {
		return "nothing to do"
	}
	return strings.Join(parts, ", ")
}

func levelName(l board.Level) string {
	switch l {
	case board.LevelGood:
		return "Healthy"
	case board.LevelWaiting:
		return "Waiting"
	case board.LevelWarning:
		return "Attention"
	}
	return "Trouble"
}

// levelOf is how bad an SLA is.
func levelOf(sla string) string {
	switch sla {
	case board.SLAMet:
		return "good"
	case board.SLABroken:
		return "bad"
	}
	return "waiting"
}

func partitionLink(topic string, n int, plain bool) string {
	if plain {
		return "/partition?stream=" + url.QueryEscape(topic)
	}
	return "/partition?topic=" + url.QueryEscape(topic) + "&n=" + strconv.Itoa(n)
}

func partitionName(topic string, n int, plain bool) string {
	return segment.Partition{Topic: topic, Number: n, Plain: plain}.String()
}

// problemLink leads to the partition of a problem; "" where there is none.
func problemLink(p board.Problem) string {
	if p.Topic == "" || p.Partition == nil {
		return ""
	}
	return partitionLink(p.Topic, *p.Partition, p.Plain)
}

// headroom says how long it is until retention reaches what is not copied.
func headroom(s *float64) string {
	switch {
	case s == nil:
		return "no limit near"
	case *s <= 0:
		return "none left"
	}
	return board.Ago(seconds(*s))
}

// numbers lists shards.
func numbers(list []int) string {
	text := make([]string, len(list))
	for i, n := range list {
		text[i] = strconv.Itoa(n)
	}
	return strings.Join(text, ", ")
}

// memberView is an instance and where its page is.
type memberView struct {
	board.Member
	Page string // "" = nobody else can reach it, or it has none
}

// pageOf is the address of an instance's page. What an instance says of itself
// is no more than text: only a host and a port are taken from it. One that
// listens on every address is at its host's name.
func pageOf(m board.Member, tls bool) string {
	scheme := "http"
	if tls {
		scheme = "https"
	}
	address := m.Address
	if u, err := url.Parse(address); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
		scheme, address = u.Scheme, u.Host
	}
	host, port, err := net.SplitHostPort(address)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		return ""
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err == nil && ip.IsLoopback() || host == "localhost":
		return ""
	case host == "" || err == nil && ip.IsUnspecified():
		host = m.Host
	}
	if host == "" || strings.ContainsAny(host, "/\\@?#%[] \"'<>") {
		return ""
	}
	return (&url.URL{Scheme: scheme, Host: net.JoinHostPort(host, port), Path: "/"}).String()
}
