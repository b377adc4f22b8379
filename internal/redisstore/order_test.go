package redisstore

import (
	"context"
	"strings"
	"testing"

	"korvet-offload/segment"
)

// shuffled is a session whose pages hold whatever ids it is given.
type shuffled struct{ pages [][]segment.ID }

func (s *shuffled) session() session { return s }
func (s *shuffled) close()           {}

func (s *shuffled) confirm(context.Context, string) error { return nil }

func (s *shuffled) fetch(_ context.Context, _ request, into *segment.Page) (sample, error) {
	into.Reset()
	if len(s.pages) == 0 {
		return sample{}, nil
	}
	for _, id := range s.pages[0] {
		into.Entry(id)
	}
	s.pages = s.pages[1:]
	return sample{bytes: 1}, nil
}

// A server, or a proxy before it, that hands out an entry twice or in another
// order must not get it into a file.
//
//fault:redis | a page with ids that do not ascend or lie outside | pages told to the reader | an error
func TestIdsMustAscend(t *testing.T) {
	id := func(seq uint64) segment.ID { return segment.ID{Ms: 1, Seq: seq} }
	for name, pages := range map[string][][]segment.ID{
		"twice in a page":             {{id(1), id(1)}},
		"out of order in a page":      {{id(2), id(1)}},
		"again on the next page":      {{id(1), id(2)}, {id(2), id(3)}},
		"from before, on a next page": {{id(5)}, {id(3)}},
		"beyond the end":              {{id(1), {Ms: 9}}},
	} {
		r := newPages(&shuffled{pages}, "s", segment.ID{}, segment.ID{Ms: 8}, 10)
		var err error
		for range pages {
			if err == nil {
				err = r.Next(t.Context(), new(segment.Page))
			}
		}
		if err == nil || ClassOf(err) != Protocol || !strings.Contains(err.Error(), "s") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
