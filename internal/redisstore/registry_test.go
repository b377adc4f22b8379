package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/segment"
)

func byTopic(topics []segment.Topic) map[string]segment.Topic {
	m := map[string]segment.Topic{}
	for _, t := range topics {
		m[t.Name] = t
	}
	return m
}

func patterns() []segment.TopicPattern {
	return []segment.TopicPattern{
		{Name: "pay*", Settings: map[string]string{"remote-storage-enabled": "true", "partitions": "4"}},
		{Name: "declared", Settings: map[string]string{"remote-storage-enabled": "true"}},
	}
}

func TestTopicsOfNoRegistry(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, _ func(...string) string) {
		s.patterns = patterns()
		if s.RegistryKind() != RegistryUnread {
			t.Errorf("kind %q before it was read", s.RegistryKind())
		}
		topics, err := s.Topics(t.Context())
		if err != nil || len(topics) != 1 || topics[0].Name != "declared" || !topics[0].Settings.RemoteStorage {
			t.Errorf("%+v, %v", topics, err)
		}
		if s.RegistryKind() != RegistryNone {
			t.Errorf("kind %q", s.RegistryKind())
		}
	})
}

func TestTopicsOfASet(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		s.patterns = patterns()
		exec("SADD", "korvet:topics", "orders", "payments", "bare", "a/b", "broken", "odd", "declared")
		exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true", "retention.ms", "5", "partitions", "2", "id", "u-1", "unknown", "x")
		exec("HSET", "korvet:topic:payments", "localRetentionTime", "7")
		exec("SET", "korvet:topic:broken", "not a hash")
		exec("HSET", "korvet:topic:odd", "retention.ms", "soon")
		topics, err := s.Topics(t.Context())
		if err != nil || len(topics) != 7 || s.RegistryKind() != RegistrySet {
			t.Fatalf("%d topics, kind %q, %v", len(topics), s.RegistryKind(), err)
		}
		got := byTopic(topics)
		if o := got["orders"]; o.Err != nil || !o.Settings.RemoteStorage || o.Settings.RetentionMs != 5 || o.Settings.Partitions != 2 || o.Settings.ID != "u-1" {
			t.Errorf("orders: %+v", o)
		}
		if p := got["payments"]; p.Err != nil || !p.Settings.RemoteStorage || p.Settings.LocalRetentionMs != 7 || p.Settings.Partitions != 4 {
			t.Errorf("payments: %+v", p)
		}
		if b := got["bare"]; b.Err != nil || b.Settings != segment.DefaultTopicSettings() {
			t.Errorf("bare: %+v", b)
		}
		if !errors.Is(got["a/b"].Err, segment.ErrTopicName) || !errors.Is(got["odd"].Err, segment.ErrTopicSetting) ||
			ClassOf(got["broken"].Err) != WrongType || errors.Is(got["broken"].Err, segment.ErrWrongType) {
			t.Errorf("a/b: %v; odd: %v; broken: %v", got["a/b"].Err, got["odd"].Err, got["broken"].Err)
		}
	})
}

func TestTopicsOfALargeSet(t *testing.T) {
	srv := redisserver.Start(t)
	s := open(t, config(srv))
	var b []byte
	for i := range 10_000 {
		name := fmt.Sprintf("t%d", i)
		b = redisserver.AppendCommand(b, "SADD", "korvet:topics", name)
		b = redisserver.AppendCommand(b, "HSET", "korvet:topic:"+name, "partitions", "3")
	}
	srv.Pipe(b)
	topics, err := s.Topics(t.Context())
	if err != nil || len(topics) != 10_000 || topics[9_999].Settings.Partitions != 3 {
		t.Errorf("%d topics, %v", len(topics), err)
	}
}

//fault:input | the topic registry is a key of another type | a Hash in its place | an error, and not an empty registry
func TestARegistryOfAnotherTypeMeansNothingIsKnown(t *testing.T) {
	backends(t, func(t *testing.T, s *Store, exec func(...string) string) {
		exec("HSET", "korvet:topics", "orders", "{}")
		topics, err := s.Topics(t.Context())
		if topics != nil || ClassOf(err) != WrongType || !strings.Contains(err.Error(), "korvet:topics") || !strings.Contains(err.Error(), "hash") {
			t.Errorf("%v, %v", topics, err)
		}
	})
}

// jsonRegistry is a miniredis whose registry is a RedisJSON document.
func jsonRegistry(t *testing.T, document string) *Store {
	m := miniredis.RunT(t)
	replies := map[string]func(c *server.Peer){
		"TYPE":     func(c *server.Peer) { c.WriteInline("ReJSON-RL") },
		"JSON.GET": func(c *server.Peer) { c.WriteBulk(document) },
	}
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		reply, ok := replies[cmd]
		if ok {
			reply(c)
		}
		return ok
	})
	return open(t, Config{URI: "redis://" + m.Addr(), Layout: segment.DefaultLayout()}, patterns()...)
}

func TestTopicsOfADocument(t *testing.T) {
	s := jsonRegistry(t, `{"orders":{"remote.storage.enable":true,"retentionTime":60000}}`)
	topics, err := s.Topics(t.Context())
	if err != nil || len(topics) != 2 || s.RegistryKind() != RegistryJSON {
		t.Fatalf("%+v, kind %q, %v", topics, s.RegistryKind(), err)
	}
	if o := byTopic(topics)["orders"]; o.Err != nil || !o.Settings.RemoteStorage || o.Settings.RetentionMs != 60_000 {
		t.Errorf("orders: %+v", o)
	}
	if _, err := jsonRegistry(t, `nonsense`).Topics(t.Context()); ClassOf(err) != Protocol || !strings.Contains(err.Error(), "korvet:topics") {
		t.Errorf("nonsense: %v", err)
	}
}

func TestShapesOfADocument(t *testing.T) {
	const orders = `"remoteStorageEnabled":true,"retention.ms":"60000","partitions":3`
	for name, doc := range map[string]string{
		"object":          `{"orders":{` + orders + `}}`,
		"array":           `[{"name":"orders",` + orders + `}]`,
		"wrapped object":  `{"version":2,"topics":{"orders":{` + orders + `}}}`,
		"wrapped array":   `{"topics":[{"name":"orders",` + orders + `}]}`,
		"nested settings": `{"orders":{"remote":{"storage":{"enable":true}},"retention":{"ms":60000},"partitions":3,"x":null}}`,
		"config inside":   `{"orders":{"partitions":3,"config":{"remote.storage.enable":"true","retention":{"ms":60000}}}}`,
		"said twice":      `{"orders":{"partitions":3,"retention.ms":60000,"config":{` + orders + `}}}`,
	} {
		own, err := parseRegistry([]byte(doc))
		if err != nil || len(own) != 1 {
			t.Errorf("%s: %v, %v", name, own, err)
			continue
		}
		topic := segment.ResolveTopic("orders", own["orders"].values, nil)
		if own["orders"].err != nil || topic.Err != nil || !topic.Settings.RemoteStorage || topic.Settings.RetentionMs != 60_000 || topic.Settings.Partitions != 3 {
			t.Errorf("%s: %+v, %v", name, topic, own["orders"].err)
		}
	}
}

func TestADocumentWithFaults(t *testing.T) {
	own, err := parseRegistry([]byte(`[{"name":"a"},{"name":"a"},{"partitions":1},7,{"name":"b","config":{"retention.ms":1},"retention":{"ms":2}},
		{"name":"c","partitions":[1]},{"name":"d"}]`))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "#2", "#3", "b"} {
		if own[name].err == nil {
			t.Errorf("%s is not parked", name)
		}
	}
	if c := segment.ResolveTopic("c", own["c"].values, nil); !errors.Is(c.Err, segment.ErrTopicSetting) {
		t.Errorf("c: %v", c.Err)
	}
	if own["d"].err != nil || len(own) != 6 {
		t.Errorf("d: %v; %d topics", own["d"].err, len(own))
	}
	if own, err := parseRegistry([]byte(`{"a":1,"topics":{"remoteStorageEnabled":true}}`)); err != nil || own["a"].err == nil || own["topics"].values["remoteStorageEnabled"] != "true" {
		t.Errorf("a topic of the name topics: %+v, %v", own, err)
	}
	for _, doc := range []string{``, `{`, `7`, `null`, `"x"`, `{} {}`} {
		if _, err := parseRegistry([]byte(doc)); err == nil {
			t.Errorf("%q: no error", doc)
		}
	}
}

func FuzzParseRegistry(f *testing.F) {
	f.Add([]byte(`{"topics":[{"name":"orders","retention":{"ms":1}}]}`))
	f.Fuzz(func(t *testing.T, doc []byte) {
		own, err := parseRegistry(doc)
		if (own == nil) != (err != nil) {
			t.Fatalf("%q: %v, %v", doc, own, err)
		}
	})
}

// The codec of a topic's values comes from either kind of registry, under either name.
func TestRegistryTellsTheCodec(t *testing.T) {
	s := jsonRegistry(t, `{"a":{"storage":{"compression":{"type":"zstd"}}},"b":{"config":{"storage.compression.type":"lz4"}},"c":{}}`)
	topics, err := s.Topics(t.Context())
	if of := byTopic(topics); err != nil || of["a"].Codec != "zstd" || of["b"].Codec != "lz4" || of["c"].Codec != "" || of["a"].Err != nil {
		t.Errorf("%+v, %v", topics, err)
	}
}
