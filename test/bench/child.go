package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/xitongsys/parquet-go-source/local"
	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/writer"

	"korvet-offload/internal/command"
)

// child is a part of the benchmark that needs a process of its own.
func child(args []string) {
	var v any
	var err error
	switch args[0] {
	case "script":
		v, err = script(context.Background(), args[1], args[2], args[3:])
	case "allocations":
		v, err = allocations(args[1], args[2])
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(v)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// allocations runs the worker in this process and counts.
func allocations(uri, dir string) (float64, error) {
	out, err := os.Create(filepath.Join(dir, "report.json"))
	if err != nil {
		return 0, err
	}
	defer out.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code := command.Main(context.Background(), command.Process{
		Args:   []string{"korvet-offload", "run", "--once", "--output", "json", "--redis-uri", uri, "--remote-path", "file://" + filepath.Join(dir, "root")},
		Stdout: out, Stderr: os.Stderr,
	})
	runtime.ReadMemStats(&after)
	if code != 0 {
		return 0, fmt.Errorf("exit code %d", code)
	}
	raw, err := os.ReadFile(out.Name())
	if err != nil {
		return 0, err
	}
	var report struct{ Segments []struct{ Messages int64 } }
	if err := json.Unmarshal(raw, &report); err != nil {
		return 0, err
	}
	return float64(after.Mallocs-before.Mallocs) / float64(report.Segments[0].Messages), nil
}

// The afternoon script: the client's maps, the library's usual writer.

type record struct {
	ID     string            `parquet:"name=id, type=BYTE_ARRAY, convertedtype=UTF8"`
	Fields map[string]string `parquet:"name=fields, type=MAP, convertedtype=MAP, keytype=BYTE_ARRAY, keyconvertedtype=UTF8, valuetype=BYTE_ARRAY"`
}

type scriptResult struct {
	Messages int64
	Seconds  float64
	Out      int64
}

func script(ctx context.Context, addr, dir string, keys []string) (scriptResult, error) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	var mu sync.Mutex
	var total scriptResult
	var failed error
	var all sync.WaitGroup
	start := time.Now()
	for i, key := range keys {
		all.Go(func() {
			messages, size, err := scriptOne(ctx, client, key, filepath.Join(dir, fmt.Sprint(i, ".parquet")))
			mu.Lock()
			defer mu.Unlock()
			total.Messages += messages
			total.Out += size
			if err != nil {
				failed = err
			}
		})
	}
	all.Wait()
	total.Seconds = time.Since(start).Seconds()
	return total, failed
}

func scriptOne(ctx context.Context, client *redis.Client, key, path string) (messages, size int64, err error) {
	f, err := local.NewLocalFileWriter(path)
	if err != nil {
		return 0, 0, err
	}
	w, err := writer.NewParquetWriter(f, new(record), 1)
	if err != nil {
		return 0, 0, err
	}
	w.CompressionType = parquet.CompressionCodec_SNAPPY
	for from := "-"; ; {
		page, err := client.XRangeN(ctx, key, from, "+", 1000).Result()
		if err != nil {
			return 0, 0, err
		}
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			fields := make(map[string]string, len(m.Values))
			for name, value := range m.Values {
				fields[name] = value.(string)
			}
			if err := w.Write(record{m.ID, fields}); err != nil {
				return 0, 0, err
			}
		}
		messages += int64(len(page))
		from = "(" + page[len(page)-1].ID
	}
	if err := w.WriteStop(); err != nil {
		return 0, 0, err
	}
	if err := f.Close(); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return messages, info.Size(), nil
}
