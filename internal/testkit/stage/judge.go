package stage

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/checker"
	"korvet-offload/internal/testkit/checker/loader"
	"korvet-offload/segment"
)

// ownerMarker says whose the place of the objects is.
const ownerMarker = "_korvet_offload.json"

// Judge takes the world down and has it checked against what producers were
// told. Nothing moves meanwhile.
func (s *Stage) Judge(parts []segment.Partition, rules checker.Rules) checker.Report {
	s.t.Helper()
	place := loader.Place{Redis: s.Redis, Layout: s.Layout, Parts: parts, Root: s.Root}
	world, err := place.Load(context.Background(), s.Acks)
	if err != nil {
		s.t.Fatal(err)
	}
	rules.Owner, rules.Sent = ownerMarker, s.Sent
	return checker.Examine(world, s.Acks, rules)
}

func sumOf(fields []string) string {
	sum := broker.SumOf(fields...)
	return hex.EncodeToString(sum[:])
}

// ReadObject reads a segment file as a consumer does.
func (s *Stage) ReadObject(path string) ([]checker.Message, error) {
	body, err := os.ReadFile(filepath.Join(s.Root, path))
	if err != nil {
		return nil, err
	}
	file, err := parquetfile.Open(bytes.NewReader(body), int64(len(body)))
	if err != nil {
		return nil, fmt.Errorf("read object %s: %w", path, err)
	}
	var all []checker.Message
	err = file.Read(context.Background(), func(p *segment.Page) error {
		for i := range p.Len() {
			lo, hi := p.Fields(i)
			var fields []string
			for f := lo; f < hi; f++ {
				fields = append(fields, string(p.Name(f)), string(p.Value(f)))
			}
			all = append(all, checker.Message{ID: p.ID(i).String(), Sum: sumOf(fields)})
		}
		return nil
	})
	return all, err
}

// ReadStream reads a stream from one id to another, both inclusive, as a
// consumer does. One that is not there has no messages.
func (s *Stage) ReadStream(key, from, to string) ([]checker.Message, error) {
	reply, err := s.Conn.Do("XRANGE", key, from, to)
	if err != nil {
		return nil, err
	}
	var all []checker.Message
	for _, item := range reply.([]any) {
		pair := item.([]any)
		var fields []string
		for _, f := range pair[1].([]any) {
			fields = append(fields, f.(string))
		}
		all = append(all, checker.Message{ID: pair[0].(string), Sum: sumOf(fields)})
	}
	return all, nil
}
