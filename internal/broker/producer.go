package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/segment"
)

// Producer appends messages with ids of the server's choice to the OPEN
// segment of a partition, as its manifest names it, or to a plain stream. It
// sends one batch after the other and waits for each to be acknowledged.
type Producer struct {
	Broker    *Broker
	Ledger    *Ledger
	Partition segment.Partition
	Seed      uint64        // of the messages, and of everything left to chance
	Batch     int           // messages in a batch
	Pace      time.Duration // from batch to batch
	Reread    int           // batches from one look at the manifest to the next
	Replicas  int           // that must have a batch, within half a second, before it counts
	// HoldsOn is how long at most the producer goes on with a segment after it
	// has seen that another one is open.
	HoldsOn time.Duration
	// Base: where there is no manifest, it appends to the partition's own key, as
	// a broker does for which the partition is one stream.
	Base bool
	// Silent: meanwhile it sends nothing, but for one batch in the end.
	Silent bool
}

// Connect makes a broker for a Redis server at host:port. Its owner closes it.
func Connect(addr string, layout segment.Layout) (*Broker, error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true, ForceSingleClient: true})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return New(client, layout), nil
}

// Close ends the connections.
func (b *Broker) Close() { b.client.Close() }

// Run appends until the context ends, which is no error.
func (p *Producer) Run(ctx context.Context) error {
	r := &production{Producer: p, messages: dataset.New(p.Seed, 40), random: rand.New(rand.NewPCG(p.Seed, 1))}
	pace := time.NewTicker(p.Pace)
	defer pace.Stop()
	for batch := 0; ; batch++ {
		if batch%max(1, p.Reread) == 0 {
			if err := r.look(ctx); err != nil {
				return ended(ctx, err)
			}
		}
		if !r.waits() {
			if err := r.append(ctx); err != nil {
				return ended(ctx, err)
			}
			r.goOn()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pace.C:
		}
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the caller has ended it
	}
	return err
}

// production is a producer at work.
type production struct {
	*Producer
	messages *dataset.Generator
	random   *rand.Rand

	at    Source // where it appends; no key = nowhere yet
	next  Source // where it will
	until time.Time
}

// look finds the segment to append to.
func (r *production) look(ctx context.Context) error {
	if r.Partition.Plain {
		r.at = Source{Partition: r.Partition, Key: r.Partition.Topic}
		return nil
	}
	entries, err := r.Broker.Entries(ctx, r.Partition)
	if err != nil {
		return err
	}
	if len(entries) == 0 && r.Base {
		r.turn(Source{Partition: r.Partition, Key: r.Broker.layout.StreamKey(r.Partition)})
	}
	for _, s := range entries {
		if s.Entry.State == segment.Open {
			r.turn(Source{Partition: r.Partition, Number: s.Number, Key: r.Broker.Key(r.Partition, s)})
		}
	}
	return nil
}

// turn goes on to another segment, now or a little later.
func (r *production) turn(to Source) {
	switch {
	case to == r.at || to == r.next:
		return
	case r.at.Key == "" || r.HoldsOn == 0:
		r.at = to
	case r.next.Key != "":
		r.next = to
	default:
		r.next, r.until = to, time.Now().Add(time.Duration(r.random.Int64N(int64(r.HoldsOn))))
	}
}

// waits says whether there is nothing to append to, or not yet.
func (r *production) waits() bool {
	return r.at.Key == "" || r.Silent && r.next.Key != "" && time.Now().Before(r.until)
}

// goOn ends the holding on, when it is time.
func (r *production) goOn() {
	if r.next.Key != "" && !time.Now().Before(r.until) {
		r.at, r.next = r.next, Source{}
	}
}

// append sends one batch. What was acknowledged goes into the ledger.
func (r *production) append(ctx context.Context) error {
	var cmds []rueidis.Completed
	var sums []Sum
	for range max(1, r.Batch) {
		m := r.messages.Next()
		fields := m.Fields()
		cmd := r.Broker.client.B().Xadd().Key(r.at.Key).Id("*").FieldValue()
		for i := 0; i+1 < len(fields); i += 2 {
			cmd = cmd.FieldValue(string(fields[i]), string(fields[i+1]))
		}
		cmds, sums = append(cmds, cmd.Build()), append(sums, SumOf(fields[:]...))
	}
	if r.Replicas > 0 {
		cmds = append(cmds, r.Broker.client.B().Arbitrary("WAIT", strconv.Itoa(r.Replicas), "500").Build())
	}
	// Sent whole even when ctx ends: an answer that is not waited for would
	// leave a message of which nobody knows whether it was acknowledged.
	replies := r.Broker.client.DoMulti(context.WithoutCancel(ctx), cmds...)
	if r.Replicas > 0 {
		if have, err := replies[len(sums)].AsInt64(); err != nil || have < int64(r.Replicas) {
			return err // a batch that is not safe does not count
		}
	}
	var errs []error
	for i, reply := range replies[:len(sums)] {
		id, err := acked(reply)
		if err != nil {
			errs = append(errs, fmt.Errorf("append to %s: %w", r.at.Key, err))
			continue
		}
		r.Ledger.add(r.at, id, sums[i])
	}
	return errors.Join(errs...)
}

func acked(reply rueidis.RedisResult) (segment.ID, error) {
	text, err := reply.ToString()
	if err != nil {
		return segment.ID{}, err
	}
	return segment.ParseID(text)
}
