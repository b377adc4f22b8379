package page

import "strings"

// reason is what the documentation says of a reason.
type reason struct{ means, do []span }

// span is a piece of text, perhaps one to be typed.
type span struct {
	Text string
	Code bool
}

// parseReasons reads the table of docs/reasons.md: reasons, what they mean, what
// to do.
func parseReasons(markdown string) map[string]reason {
	found := map[string]reason{}
	var above reason
	for line := range strings.Lines(markdown) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 3 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		r := reason{spans(cells[1]), spans(cells[2])}
		if strings.TrimSpace(cells[2]) == "as above" {
			r.do = above.do
		}
		above = r
		for _, s := range spans(cells[0]) {
			if s.Code {
				found[s.Text] = r
			}
		}
	}
	return found
}

// spans cuts a text of Markdown into what is code and what is not.
func spans(text string) []span {
	var all []span
	for i, part := range strings.Split(strings.TrimSpace(text), "`") {
		if part != "" {
			all = append(all, span{part, i%2 == 1})
		}
	}
	return all
}
