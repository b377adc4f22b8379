package tieredlog

import (
	"errors"

	"korvet-offload/segment"
)

// errEnough ends a reading from inside: the limit is reached, or the caller has
// had enough.
var errEnough = errors.New("enough was read")

// output hands messages to the caller: it leaves out, counts and remembers.
type output struct {
	query  Query
	fn     func(*segment.Page, int) error
	skip   int64 // messages still to be left out
	given  int64
	failed error // what fn has returned

	key   string     // of the stream of this segment
	last  segment.ID // the last message of it that was given or left out
	begun bool       // there is such a one
}

// begin begins a segment. Ranges of one stream share their ids: one that was
// sealed while it was read may end before the message that was given last.
func (o *output) begin(s Segment) {
	if !s.Entry.Shared() || s.Key != o.key {
		o.last, o.begun = segment.ID{}, false
	}
	o.key = s.Key
}

// rest is what of a range is still to be read: what lies in the query, and
// behind the last message that has come. False: nothing.
func (o *output) rest(from, to segment.ID) (segment.ID, segment.ID, bool) {
	if o.query.From.Compare(from) > 0 {
		from = o.query.From
	}
	if end := o.query.to(); end.Compare(to) < 0 {
		to = end
	}
	if o.begun && o.query.Reverse {
		before, ok := previous(o.last)
		if !ok {
			return from, to, false
		}
		if before.Compare(to) < 0 {
			to = before
		}
	} else if o.begun {
		behind, ok := o.last.Next()
		if !ok {
			return from, to, false
		}
		if behind.Compare(from) > 0 {
			from = behind
		}
	}
	return from, to, from.Compare(to) <= 0
}

// give hands over the messages lo to hi of a page, hi not included. All that are
// given lie in what rest has said.
func (o *output) give(p *segment.Page, lo, hi int) error {
	for k := lo; k < hi; k++ {
		i := k
		if o.query.Reverse {
			i = hi - 1 - (k - lo)
		}
		o.last, o.begun = p.ID(i), true
		if o.skip > 0 {
			o.skip--
			continue
		}
		if err := o.fn(p, i); err != nil {
			o.failed = err
			return errEnough
		}
		if o.given++; o.given == o.query.Limit {
			return errEnough
		}
	}
	return nil
}

// ended is the error that Read returns.
func (o *output) ended(err error) error {
	switch {
	case !errors.Is(err, errEnough):
		return err
	case errors.Is(o.failed, Stop):
		return nil
	}
	return o.failed
}

// previous is the largest id below id; false when there is none.
func previous(id segment.ID) (segment.ID, bool) {
	switch {
	case id.Seq > 0:
		return segment.ID{Ms: id.Ms, Seq: id.Seq - 1}, true
	case id.Ms > 0:
		return segment.ID{Ms: id.Ms - 1, Seq: segment.MaxID().Seq}, true
	}
	return segment.ID{}, false
}
