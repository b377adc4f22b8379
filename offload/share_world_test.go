package offload

import "sync"

// shardTable is the shards of several instances without Redis.
type shardTable struct {
	mu     sync.Mutex
	owners []string
	terms  []int
	gained map[string]chan struct{}
	inside map[int]int
}

func newShards(owners ...string) *shardTable {
	s := &shardTable{owners: owners, terms: make([]int, len(owners)), gained: map[string]chan struct{}{}, inside: map[int]int{}}
	for i := range owners {
		s.terms[i] = 1
	}
	return s
}

// give makes a shard another instance's.
func (s *shardTable) give(shard int, to string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[shard] = to
	s.terms[shard]++
	select {
	case s.channel(to) <- struct{}{}:
	default:
	}
}

func (s *shardTable) channel(who string) chan struct{} {
	if s.gained[who] == nil {
		s.gained[who] = make(chan struct{}, 1)
	}
	return s.gained[who]
}

// seatAt is the share of one instance.
type seatAt struct {
	*shardTable
	who string
}

func (s seatAt) Terms() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.channel(s.who):
	default:
	}
	terms := make([]int, len(s.owners))
	for i, o := range s.owners {
		if o == s.who {
			terms[i] = s.terms[i]
		}
	}
	return terms
}

func (s seatAt) Enter(i int) (func(), bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owners[i] != s.who {
		return nil, false
	}
	s.inside[i]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.inside[i]--
	}, true
}

func (s seatAt) Gained() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.channel(s.who)
}

// sharing is a worker with a share of a world.
func (w *world) sharing(s *shardTable, who string, change ...func(*Config)) *Worker {
	worker := w.worker(change...)
	worker.ports.Share = seatAt{s, who}
	return worker
}
