package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"korvet-offload/internal/broker"
	"korvet-offload/internal/cmdline"
	"korvet-offload/internal/parquetfile"
	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/words"
	"korvet-offload/offload"
	"korvet-offload/segment"
)

// verify reads back every file that the manifests name and compares each
// message with what went in.
func (d *demo) verify(ctx context.Context, r offload.Report) error {
	took := map[string]offload.Outcome{}
	for _, o := range r.Outcomes {
		took[o.Partition.String()+"/"+o.Segment.String()] = o
	}
	for _, s := range d.segments {
		if s.Open {
			continue
		}
		row, err := d.verifySegment(ctx, s)
		if err != nil {
			return fmt.Errorf("verify segment %s/%s: %w", s.Partition, s.Number, err)
		}
		row.Rate = rate(row.Messages, took[row.Partition+"/"+row.Segment].Duration)
		d.rows = append(d.rows, row)
	}
	return nil
}

func (d *demo) verifySegment(ctx context.Context, s broker.Segment) (demoRow, error) {
	e, err := d.entry(ctx, s)
	if err != nil {
		return demoRow{}, err
	}
	usage, err := d.broker.Usage(ctx, s)
	if err != nil {
		return demoRow{}, err
	}
	same, err := d.compare(ctx, s, e.Object.Path)
	if err != nil {
		return demoRow{}, err
	}
	return demoRow{Partition: s.Partition.String(), Segment: s.Number.String(), Messages: e.Count, RedisBytes: usage,
		ParquetBytes: e.Object.Bytes, Verified: same, File: e.Object.Path}, nil
}

// entry reads a segment's entry, which must be REMOTE by now.
func (d *demo) entry(ctx context.Context, s broker.Segment) (segment.Entry, error) {
	a, err := d.session.redis.Peek(ctx, []segment.Peek{{Partition: s.Partition, Numbers: []segment.Number{s.Number}}})
	if err == nil {
		err = a[0].Err
	}
	if err != nil {
		return segment.Entry{}, err
	}
	e, err := segment.ParseEntry([]byte(a[0].Raw[0]))
	if err == nil && (e.Tier != segment.Remote || e.Object == nil) {
		err = errors.New("its entry is not REMOTE")
	}
	return e, err
}

// compare reads an object and returns how many messages it holds; the first
// one that is not what went in is an error.
func (d *demo) compare(ctx context.Context, s broker.Segment, path string) (same int64, err error) {
	body, err := d.session.store.Open(ctx, path)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	raw, err := io.ReadAll(body)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", path, err)
	}
	file, err := parquetfile.Open(bytes.NewReader(raw), int64(len(raw)))
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", path, err)
	}
	want := s.Messages()
	err = file.Read(ctx, func(p *segment.Page) error {
		for i := range p.Len() {
			if m := want.Next(); !equalMessage(p, i, m) {
				return fmt.Errorf("message %s is not what went in", m.ID)
			}
			same++
		}
		return nil
	})
	if err == nil && same != int64(s.Count) {
		err = fmt.Errorf("%s holds %d messages, and %d went in", path, same, s.Count)
	}
	return same, err
}

func equalMessage(p *segment.Page, i int, m dataset.Message) bool {
	lo, hi := p.Fields(i)
	want := m.Fields()
	if p.ID(i) != m.ID || 2*(hi-lo) != len(want) {
		return false
	}
	for j := lo; j < hi; j++ {
		if !bytes.Equal(p.Name(j), want[2*(j-lo)]) || !bytes.Equal(p.Value(j), want[2*(j-lo)+1]) {
			return false
		}
	}
	return true
}

// printDemo prints the table and where the files are.
func (p Process) printDemo(format string, d *demo, dir string) error {
	if format == outputJSON {
		return cmdline.WriteJSON(p.Stdout, map[string]any{"folder": dir, "segments": d.rows})
	}
	t := newTable("PARTITION", ">SEGMENT", ">MESSAGES", ">IN REDIS", ">IN PARQUET", ">RATIO", ">MSG/S", ">VERIFIED")
	var sum demoRow
	for i, r := range d.rows {
		if i < demoShown {
			t.add(r.Partition, r.Segment, r.Messages, words.Size(r.RedisBytes), words.Size(r.ParquetBytes), r.ratio(), r.Rate, r.Verified)
		}
		sum.Messages, sum.RedisBytes = sum.Messages+r.Messages, sum.RedisBytes+r.RedisBytes
		sum.ParquetBytes, sum.Verified = sum.ParquetBytes+r.ParquetBytes, sum.Verified+r.Verified
	}
	if more := len(d.rows) - demoShown; more > 0 {
		t.add(fmt.Sprintf("and %d more", more), "", "", "", "", "", "", "")
	}
	t.add("total", "", sum.Messages, words.Size(sum.RedisBytes), words.Size(sum.ParquetBytes), sum.ratio(), "", sum.Verified)
	if err := t.write(p.Stdout); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.Stdout, `
%d sealed segments moved and flipped to REMOTE, every message read back and compared.
%d open segments stayed in Redis. The speed is that of the Redis of this demo.
The files are in %s. They are read without Redis, by
  korvet-offload ls --from-store --namespace %s --remote-path %s
  korvet-offload cat orders:0 --from-store --limit 5 --namespace %[4]s --remote-path %[5]s
and by any Parquet reader, such as
  duckdb -c "SELECT id, fields FROM read_parquet('%[3]s/*/*.parquet') LIMIT 5"
`, len(d.rows), demoPartitions, dir, d.cfg.Redis.Layout.Namespace, shellWord(d.cfg.Store.URL))
	return err
}

// shellWord is a text as a shell takes it for one word.
func shellWord(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-./:=@%+,", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// demoShown is how many segments are printed one by one.
const demoShown = 24

func (r demoRow) ratio() string {
	return fmt.Sprintf("%.2f", float64(r.ParquetBytes)/float64(r.RedisBytes))
}
