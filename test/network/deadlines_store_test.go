package network

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"korvet-offload/internal/testkit/s3server"
	"korvet-offload/s3sink"
)

// storeLimits are short ones: two attempts of half a second each.
func storeLimits() s3sink.Limits {
	return s3sink.Limits{Attempts: 2, BackoffBase: time.Millisecond, BackoffCap: 10 * time.Millisecond,
		NoProgress: 500 * time.Millisecond, Request: 500 * time.Millisecond, MinRate: 64 << 20}
}

// attempts is how long n requests may take that are never answered.
func attempts(n int) time.Duration {
	return time.Duration(n*storeLimits().Attempts) * (storeLimits().Request + storeLimits().BackoffCap)
}

// verb is a method of the store, and the time that it may take.
type verb struct {
	within time.Duration
	call   func(ctx context.Context, s s3sink.Store) error
}

// verbs calls each method that talks to the store.
func verbs() map[string]verb {
	return map[string]verb{
		"Put": {attempts(1), func(ctx context.Context, s s3sink.Store) error { _, err := s.Put(ctx, object("new", 1000)); return err }},
		"Put, a long body": {attempts(1), func(ctx context.Context, s s3sink.Store) error {
			_, err := s.Put(ctx, object("new", 9<<20))
			return err
		}},
		"Put, in parts": {attempts(2), func(ctx context.Context, s s3sink.Store) error {
			_, err := s.Put(ctx, object("new", 11<<20))
			return err
		}},
		"Put, unconditionally": {attempts(2), func(ctx context.Context, s s3sink.Store) error {
			u := object("new", 1000)
			u.Unconditional = true
			_, err := s.Put(ctx, u)
			return err
		}},
		"Stat":      {attempts(1), func(ctx context.Context, s s3sink.Store) error { _, err := s.Stat(ctx, "there"); return err }},
		"Open":      {attempts(1), func(ctx context.Context, s s3sink.Store) error { return read(s.Open(ctx, "there")) }},
		"OpenRange": {attempts(1), func(ctx context.Context, s s3sink.Store) error { return read(s.OpenRange(ctx, "there", 1, 10)) }},
		"List": {attempts(1), func(ctx context.Context, s s3sink.Store) error {
			for _, err := range s.List(ctx, "") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		"Delete": {attempts(1), func(ctx context.Context, s s3sink.Store) error { return s.Delete(ctx, []string{"there"})[0] }},
		"Delete, many": {attempts(1), func(ctx context.Context, s s3sink.Store) error {
			return errors.Join(s.Delete(ctx, []string{"there", "there too"})...)
		}},
		"CheckOwner": {attempts(1), func(ctx context.Context, s s3sink.Store) error { return s.CheckOwner(ctx) }},
		"CreateOnly": {attempts(1), func(ctx context.Context, s s3sink.Store) error { _, err := s.CreateOnly(ctx); return err }},
		"Check": {attempts(6), func(ctx context.Context, s s3sink.Store) error {
			var errs []error
			for _, p := range s.Check(ctx) {
				errs = append(errs, p.Err)
			}
			return errors.Join(errs...)
		}},
	}
}

func object(key string, size int) s3sink.Upload {
	body := bytes.Repeat([]byte("x"), size)
	sum := sha256.Sum256(body)
	return s3sink.Upload{Key: key, Body: bytes.NewReader(body), Size: int64(size), SHA256: hex.EncodeToString(sum[:])}
}

func read(body io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(io.Discard, body)
	return err
}

// Every method of the store that takes a context is in the table.
func TestEveryStoreVerbIsTried(t *testing.T) {
	store := reflect.TypeFor[s3sink.Store]()
	for i := range store.NumMethod() {
		m := store.Method(i)
		talks := m.Type.NumIn() > 0 && m.Type.In(0) == reflect.TypeFor[context.Context]()
		if _, there := verbs()[m.Name]; talks && !there {
			t.Errorf("%s is not tried in a black hole", m.Name)
		}
	}
}

// storeThrough opens a store that has an object of some bytes, and gives the
// proxy that it goes through.
func storeThrough(t *testing.T, server *s3server.Server, size int) (s3sink.Store, *proxy) {
	t.Helper()
	p := newProxy(t, server.Endpoint)
	open := func(endpoint string, lim s3sink.Limits) s3sink.Store {
		s, err := s3sink.Open(s3sink.Config{
			URL: "s3://" + server.Bucket + "/" + strings.ReplaceAll(t.Name(), " ", "-"), Endpoint: "http://" + endpoint, Region: server.Region,
			AccessKeyID: server.Access, SecretAccessKey: server.Secret, MultipartThreshold: 10 << 20, PartSize: 5 << 20,
		}, s3sink.Options{Owner: s3sink.Owner{Namespace: "korvet"}, Limits: lim})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	if _, err := open(strings.TrimPrefix(server.Endpoint, "http://"), s3sink.Limits{}).Put(t.Context(), object("there", size)); err != nil {
		t.Fatal(err)
	}
	return open(p.addr(), storeLimits()), p
}

// Every verb has a deadline, and ends at once with its context.
func TestStoreDeadlines(t *testing.T) {
	//fault:network | the store becomes a black hole under any one request | every method of the store, called while the proxy swallows requests or answers | it ends within its attempts' time with an error that is an outage, and soon when its context ends
	t.Parallel()
	server := s3server.Start(t, s3server.Options{})
	for name, v := range verbs() {
		for _, stream := range []string{"upstream", "downstream"} {
			t.Run(name+"/"+stream, func(t *testing.T) {
				t.Parallel()
				s, p := storeThrough(t, server, 1000)
				p.add(hole(stream))
				begun := time.Now()
				err := v.call(t.Context(), s)
				if took := time.Since(begun); took > v.within+slack {
					t.Errorf("it took %s, want %s at most", took, v.within)
				}
				if !isOutage(err) {
					t.Errorf("%v (class %q)", err, s3sink.ClassOf(err))
				}
			})
			t.Run(name+"/"+stream+"/ended", func(t *testing.T) {
				t.Parallel()
				s, p := storeThrough(t, server, 1000)
				p.add(hole(stream))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(100*time.Millisecond, cancel)
				begun := time.Now()
				err := v.call(ctx, s)
				if took := time.Since(begun); took > 100*time.Millisecond+slack {
					t.Errorf("it took %s, and its context ended after 100ms", took)
				}
				if !errors.Is(err, context.Canceled) && !strings.Contains(fmt.Sprint(err), "canceled") {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

func isOutage(err error) bool {
	switch s3sink.ClassOf(err) {
	case s3sink.ClassTimeout, s3sink.ClassUnavailable:
		return true
	}
	return err != nil && strings.Contains(err.Error(), "no byte moved")
}

// An object that stops coming in its middle is given up.
func TestABodyThatStops(t *testing.T) {
	//fault:network | the store stops sending in the middle of an object | the proxy swallows answers once the first bytes of a body were read | the read ends with an outage within the watchdog's time
	t.Parallel()
	s, p := storeThrough(t, s3server.Start(t, s3server.Options{}), 9<<20)
	p.add(down("bandwidth", map[string]any{"rate": 2000})) // so that it is not in our buffers before the line stops
	body, err := s.Open(t.Context(), "there")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := io.ReadFull(body, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	p.add(hole("downstream"))
	begun := time.Now()
	if _, err := io.Copy(io.Discard, body); !isOutage(err) || time.Since(begun) > storeLimits().NoProgress+slack+2*time.Second {
		t.Errorf("%v after %s", err, time.Since(begun))
	}
}
