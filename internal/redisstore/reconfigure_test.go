package redisstore

import (
	"fmt"
	"sync"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func TestReconfigure(t *testing.T) {
	server := redisserver.Start(t)
	server.Pipe(messages("korvet:storage:local:orders:0:7", 100))
	s := open(t, config(server), segment.TopicPattern{Name: "first"})
	for range 2 {
		want := "first"
		if s.PageSize() == 10 {
			want = "second, a"
		}
		topics, err := s.Topics(t.Context())
		var got string
		for _, topic := range topics {
			got += fmt.Sprintf(", %s", topic.Name)
		}
		if err != nil || got != ", "+want {
			t.Errorf("%q, %v, want %s", got, err, want)
		}
		s.Reconfigure([]segment.TopicPattern{{Name: "second"}}, []segment.StreamPattern{{Key: "a"}}, 10)
	}
	if _, pages, err := readAll(t.Context(), s, "korvet:storage:local:orders:0:7"); err != nil || pages < 10 {
		t.Errorf("%d pages of 100 entries, %v", pages, err)
	}
}

// It may happen while others ask; the race detector looks on.
func TestReconfigureAtAnyTime(t *testing.T) {
	s := open(t, config(redisserver.Start(t)))
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 20 {
				if _, err := s.Topics(t.Context()); err != nil {
					t.Error(err)
				}
				s.Lacks(t.Context(), checkTopic)
			}
		})
	}
	for i := range 100 {
		s.Reconfigure([]segment.TopicPattern{{Name: "x"}}, []segment.StreamPattern{{Key: "y"}}, i+1)
	}
	asking.Wait()
}
