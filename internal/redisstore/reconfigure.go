package redisstore

import "korvet-offload/segment"

// Reconfigure changes, for all calls that begin later, the patterns that Open
// was given, and the most entries of one XRANGE.
func (s *Store) Reconfigure(topics []segment.TopicPattern, streams []segment.StreamPattern, pageSize int) {
	s.changing.Lock()
	defer s.changing.Unlock()
	s.patterns, s.streams, s.most = topics, streams, pageSize
}

func (s *Store) topicPatterns() []segment.TopicPattern {
	s.changing.RLock()
	defer s.changing.RUnlock()
	return s.patterns
}

func (s *Store) streamPatterns() []segment.StreamPattern {
	s.changing.RLock()
	defer s.changing.RUnlock()
	return s.streams
}

// PageSize is how many entries one XRANGE has at most.
func (s *Store) PageSize() int {
	s.changing.RLock()
	defer s.changing.RUnlock()
	return s.most
}
