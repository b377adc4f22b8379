package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/segment"
)

// clientSource fetches pages with the general client: slower, and able to
// reach whatever that can reach. It has a client of its own, so that pages
// don't hold up other commands.
type clientSource struct {
	client  rueidis.Client
	primary *primary
}

func newClientSource(ctx context.Context, p *primary) (*clientSource, error) {
	o := p.clientOption()
	o.ConnWriteTimeout = pageTimeout
	client, err := connect(ctx, guard(o, maxPageReply, maxPageReply))
	if err != nil {
		return nil, err
	}
	return &clientSource{client, p}, nil
}

func (s *clientSource) session() session {
	return &clientSession{client: s.client, cluster: s.primary.cluster}
}

func (s *clientSource) close() { s.client.Close() }

type clientSession struct {
	client  rueidis.Client
	cluster bool
	origin  string // of the server, asked for before the first page
}

func (s *clientSession) close() {}

// confirm asks as often as it is called: connections change unseen.
func (s *clientSession) confirm(ctx context.Context, origin string) error {
	if s.cluster || origin == "" {
		return nil
	}
	info, err := s.info(ctx)
	if err != nil {
		return err
	}
	return sameOrigin(info, origin)
}

// begin notes which server the pages will come from.
func (s *clientSession) begin(ctx context.Context) error {
	if s.cluster || s.origin != "" {
		return nil
	}
	info, err := s.info(ctx)
	s.origin = originOf(info)
	return err
}

func (s *clientSession) info(ctx context.Context) (map[string]string, error) {
	ctx, done := limit(ctx, pageTimeout)
	defer done()
	text, err := s.client.Do(ctx, s.client.B().Info().Section("replication").Build()).ToString()
	if noSections(err) {
		text, err = s.client.Do(ctx, s.client.B().Info().Build()).ToString()
	}
	if isLost(err) {
		err = &errCut{err: err}
	}
	return infoLines(text), err
}

// fetch can't see the first byte of the reply, so wait is the time of the
// whole page: COUNT comes out smaller than it need be.
func (s *clientSession) fetch(ctx context.Context, r request, into *segment.Page) (sample, error) {
	if err := s.begin(ctx); err != nil {
		return sample{}, err
	}
	ctx, done := limit(ctx, pageTimeout)
	defer done()
	start := "-"
	if !r.from.IsZero() {
		start = r.from.String()
	}
	if r.after {
		start = "(" + start
	}
	cmd := s.client.B().Arbitrary("XRANGE").Keys(r.key).
		Args(start, r.to.String(), "COUNT", strconv.Itoa(r.count)).ReadOnly()
	sent := time.Now()
	entries, err := s.client.Do(ctx, cmd).ToArray()
	if err != nil {
		if isLost(err) {
			err = &errCut{err: err}
		}
		return sample{}, err
	}
	into.Reset()
	for i := range entries {
		if err := addEntry(into, &entries[i]); err != nil {
			return sample{}, err
		}
	}
	return sample{bytes: into.Bytes(), wait: time.Since(sent), origin: s.origin}, nil
}

// addEntry copies an entry. The library's own helpers lose the order and the
// duplicates of field names, or an odd element at the end.
func addEntry(into *segment.Page, entry *rueidis.RedisMessage) error {
	parts, err := entry.ToArray()
	if err != nil || len(parts) != 2 {
		return fmt.Errorf("%w: an entry that is not an id and its fields", errProtocol)
	}
	text, err := parts[0].ToString()
	if err != nil {
		return fmt.Errorf("%w: id: %w", errProtocol, err)
	}
	id, err := segment.ParseID(text)
	if err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	fields, err := parts[1].ToArray()
	if err != nil || len(fields)%2 != 0 {
		return fmt.Errorf("%w: entry %s: a field without value", errProtocol, id)
	}
	into.Entry(id)
	for i := 0; i < len(fields); i += 2 {
		if err := addField(into, &fields[i], &fields[i+1]); err != nil {
			return fmt.Errorf("%w: entry %s: %w", errProtocol, id, err)
		}
	}
	return nil
}

func addField(into *segment.Page, name, value *rueidis.RedisMessage) error {
	n, err := name.ToString()
	if err != nil {
		return err
	}
	v, err := value.ToString()
	if err != nil {
		return err
	}
	return into.Field([]byte(n), []byte(v))
}
