package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// The producers' load: so many clients, each with a pause between its XADDs.
const (
	producerClients = 4
	producerPause   = 2 * time.Millisecond
	producerTime    = 6 * time.Second
)

// producers measures XADD with and without the worker running flat out.
func (b *bench) producers() {
	if !b.o.only.MatchString("producers") {
		return
	}
	var without, with, ratio []float64
	for range b.o.runs {
		alone := b.produce(producerTime, nil)
		beside := b.produce(producerTime, func() { b.worker(b.redis, streams, b.o.messages, false) })
		without, with = append(without, alone), append(with, beside)
		ratio = append(ratio, beside/alone)
	}
	b.rows = append(b.rows, row{what: "producers' XADD p99, worker flat out against none", streams: streams,
		note: fmt.Sprintf("%.2fms / %.2fms = %.1fx", median(with), median(without), median(ratio)), must: "3x", aim: "1.5x"})
}

// produce runs the load, next to work done over and over, and returns the
// 99th percentile of XADD in milliseconds.
func (b *bench) produce(length time.Duration, work func()) float64 {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var all sync.WaitGroup
	results := make([][]time.Duration, producerClients)
	for i := range producerClients {
		all.Go(func() { results[i] = b.producer(ctx, i) })
	}
	end := time.Now().Add(length)
	if work == nil {
		time.Sleep(length)
	} else {
		for time.Now().Before(end) {
			work()
		}
	}
	cancel()
	all.Wait()
	var took []time.Duration
	for _, r := range results {
		took = append(took, r...)
	}
	slices.Sort(took)
	return float64(took[len(took)*99/100].Microseconds()) / 1000
}

func (b *bench) producer(ctx context.Context, n int) (took []time.Duration) {
	client := redis.NewClient(&redis.Options{Addr: b.redis.Addr, PoolSize: 1})
	defer client.Close()
	tick := time.NewTicker(producerPause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return took
		case <-tick.C:
		}
		start := time.Now()
		err := client.XAdd(b.ctx, &redis.XAddArgs{Stream: fmt.Sprint("producer:", n), MaxLen: 1000, Approx: true,
			Values: []string{"key", "k", "value", "a message of a hundred bytes, or about that many, as most of those in this benchmark are .......", "timestamp", "1"}}).Err()
		b.must(err)
		took = append(took, time.Since(start))
	}
}
