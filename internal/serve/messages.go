package serve

import (
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"korvet-offload/segment"
)

// lineBuffer is how many bytes of messages are sent at once.
const lineBuffer = 64 << 10

// messages streams messages, one line each.
func (s *server) messages(w *reply, r *http.Request, p segment.Partition) error {
	if !r.ProtoAtLeast(1, 1) {
		return refused{http.StatusHTTPVersionNotSupported, "messages need HTTP/1.1: in HTTP/1.0 an answer that was cut off looks like a whole one (nginx: proxy_http_version 1.1)"}
	}
	v, err := parameters(r, "from", "after", "to", "skip", "limit", "reverse", "tier", "envelope", "decompress")
	if err != nil {
		return err
	}
	q, err := queryOf(v)
	if err != nil {
		return err
	}
	leave, err := s.readings.take(r.Context(), w)
	if err != nil {
		return err
	}
	defer leave()
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.Header().Set("Cache-Control", "no-store")
	if r.Method == http.MethodHead {
		q.Limit = 1 // to see whether they can be read
	}
	buffer := make([]byte, 0, lineBuffer)
	send := func(b []byte) error {
		if _, err := w.Write(b); err != nil {
			return fmt.Errorf("%w: %w", errStop, err)
		}
		return nil
	}
	flush := func() error {
		if r.Method == http.MethodHead || len(buffer) == 0 {
			return nil
		}
		defer func() { buffer = buffer[:0] }()
		return send(buffer)
	}
	err = s.parts.Messages.Read(r.Context(), p, q, func(line []byte) error {
		if len(buffer)+len(line) > lineBuffer {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(line) > lineBuffer && r.Method != http.MethodHead { // not to have it twice
			return send(line)
		}
		buffer = append(buffer, line...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the messages of %s: %w", p, err)
	}
	if err := flush(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// queryOf reads what was asked for.
func queryOf(v url.Values) (q Query, err error) {
	if q.From, q.To, err = bounds(v); err != nil {
		return q, err
	}
	if q.Skip, err = number(v, "skip", 0, 0, math.MaxInt64); err != nil {
		return q, err
	}
	if q.Limit, err = number(v, "limit", 0, 1, math.MaxInt64); err != nil {
		return q, err
	}
	if q.Reverse, err = truth(v, "reverse"); err != nil {
		return q, err
	}
	if q.Envelope, err = truth(v, "envelope"); err != nil {
		return q, err
	}
	q.Decompress = v.Get("decompress")
	q.Tier = firstOf(v, "tier", tierRemote)
	if q.Tier != tierRemote && q.Tier != tierBoth && q.Tier != tierLocal {
		return q, refused{http.StatusBadRequest, "tier: want remote, both or local"}
	}
	return q, nil
}

// bounds are the first and the last id that are wanted.
func bounds(v url.Values) (from, to segment.ID, err error) {
	if text := v.Get("from"); text != "" {
		if from, err = bound("from", text, segment.ParseFrom); err != nil {
			return from, to, err
		}
	}
	if text := v.Get("after"); text != "" {
		after, err := bound("after", text, lastOf)
		if err != nil {
			return from, to, err
		}
		next, ok := after.Next()
		switch {
		case v.Get("from") != "":
			return from, to, refused{http.StatusBadRequest, "after: it stands beside from"}
		case !ok:
			return from, to, refused{http.StatusBadRequest, "after: no id follows it"}
		}
		from = next
	}
	if text := v.Get("to"); text != "" {
		if to, err = bound("to", text, segment.ParseTo); err != nil {
			return from, to, err
		}
	}
	return from, to, nil
}

// bound reads an id, or a time, as cat does. In a query + stands for a space.
func bound(name, text string, parse func(string) (segment.ID, error)) (segment.ID, error) {
	id, err := parse(strings.ReplaceAll(text, " ", "+"))
	if err != nil {
		return id, refused{http.StatusBadRequest, name + ": " + err.Error()}
	}
	return id, nil
}

// lastOf reads an id, or a time, which stands for the last id of its millisecond.
func lastOf(text string) (segment.ID, error) {
	id, err := segment.ParseFrom(text)
	if _, none := segment.ParseID(text); err == nil && none != nil {
		id.Seq = math.MaxUint64
	}
	return id, err
}

// parameters are those of a request. Those that do not exist, or stand twice, are
// refused: one that is misspelt would give other messages than were asked for.
func parameters(r *http.Request, names ...string) (url.Values, error) {
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refused{http.StatusBadRequest, "the parameters behind the question mark can't be read"}
	}
	for name, values := range v {
		if !slices.Contains(names, name) {
			return nil, refused{http.StatusBadRequest, fmt.Sprintf("there is no parameter %q; there are %s", name, strings.Join(names, ", "))}
		}
		if len(values) > 1 {
			return nil, refused{http.StatusBadRequest, name + ": it stands there twice"}
		}
	}
	return v, nil
}

func firstOf(v url.Values, name, preset string) string {
	if text := v.Get(name); text != "" {
		return text
	}
	return preset
}

func number(v url.Values, name string, preset, least, most int64) (int64, error) {
	text := v.Get(name)
	if text == "" {
		return preset, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > most {
		return 0, refused{http.StatusBadRequest, fmt.Sprintf("%s: want a number from %d to %d", name, least, most)}
	}
	return n, nil
}

func truth(v url.Values, name string) (bool, error) {
	switch v.Get(name) {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	}
	return false, refused{http.StatusBadRequest, name + ": want true or false"}
}
