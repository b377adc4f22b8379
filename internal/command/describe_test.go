package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	r, folder := movedRig(t)
	mustRead(t, call(t, r.environ, "describe", "orders:0/1"), exitDone, "",
		"segment   orders:0/1\nwhere     both tiers\nentry     SEALED REMOTE PRESENT, revision 1, copy 0, in korvet:storage:manifest:orders:0\nmessages  10\n",
		"\nstream    korvet:storage:local:orders:0:1: 10 entries, from ", "\nobject    korvet:storage:local:orders:0/1.parquet: 2.1 KiB, put ", ", same, SHA-256 ",
		"\nfile      schema version 1, 10 messages, ")
	mustRead(t, call(t, r.environ, "describe", "orders:0/2"), exitDone, "", "where     open\n", "\nstream    korvet:storage:local:orders:0:2: 10 entries")
	got := call(t, withoutRedis(r.environ), "describe", "orders:0/0", "--from-store", "-o", "json")
	var v describeView
	if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || got.code != exitDone || v.Entry != nil || v.Stream != nil || len(v.Objects) != 1 || v.File.Messages != 10 || v.Objects[0].Verdict != "current" {
		t.Errorf("%v in %+v", err, got)
	}
	if none := call(t, r.environ, "describe", "orders:0/7"); none.code != exitFault || none.stdout != "" || !strings.Contains(none.stderr, "segment orders:0/7: there is neither an entry nor an object of it") {
		t.Errorf("%+v", none)
	}
	bare := call(t, r.environ[:1], "describe", "orders:0/1") // no bucket in the settings
	mustRead(t, bare, exitDone, "", "\nobject    not looked at: korvet.storage.remote-path is not set\n")
	whole, err := os.ReadFile(filepath.Join(folder, "1.parquet"))
	spoil(t, err, os.WriteFile(filepath.Join(folder, "1-1.parquet"), whole, 0o600))
	mustRead(t, call(t, r.environ, "describe", "orders:0/1"), exitDone, "", "\nobject    korvet:storage:local:orders:0/1-1.parquet: ", ", replaced, ")
}

// What does not agree is said, and gives exit code 1.
func TestDescribeSaysWhatDiffers(t *testing.T) {
	const manifest, stream = "korvet:storage:manifest:orders:0", "korvet:storage:local:orders:0:"
	for name, c := range map[string]struct {
		segment string
		change  func(r rig, folder string) error
		want    string
	}{
		"the object is gone": {"0", func(_ rig, f string) error { return os.Remove(filepath.Join(f, "0.parquet")) }, "its entry names object korvet:storage:local:orders:0/0.parquet, which is not there"},
		"the object is cut":  {"0", func(_ rig, f string) error { return os.Truncate(filepath.Join(f, "0.parquet"), 1000) }, "damaged segment file"},
		"another segment's file": {"0", func(_ rig, f string) error {
			return os.Rename(filepath.Join(f, "1.parquet"), filepath.Join(f, "0.parquet"))
		}, "file of another segment: korvet:storage:local:orders:0/1"},
		"no entry":           {"0", func(r rig, _ string) error { r.server.Exec("HDEL", manifest, "0"); return nil }, "there is no entry of it, and object korvet:storage:local:orders:0/0.parquet lies there"},
		"no such entry":      {"0", func(r rig, _ string) error { r.server.Exec("HSET", manifest, "0", "{"); return nil }, "the entry is none: illegal manifest entry"},
		"another count":      {"0", changed(`"count":10`, `"count":9`), "the entry says 9 messages from "},
		"another checksum":   {"0", changed(`"sha256":"`, `"sha256":"00`), "SHA-256"},
		"the stream is gone": {"0", func(r rig, _ string) error { r.server.Exec("DEL", stream+"0"); return nil }, "the entry says that its stream is in Redis, and there is none"},
		"it came back":       {"0", changed(`"local":"PRESENT"`, `"local":"GONE"`), "the stream was dropped, and there is one again, with 10 entries"},
		"the stream is of a type": {"0", func(r rig, _ string) error {
			r.server.Exec("DEL", stream+"0")
			r.server.Exec("SET", stream+"0", "x")
			return nil
		}, "stream"},
		"the stream is an old one": {"0", func(r rig, _ string) error {
			r.server.Exec("DEL", stream+"0")
			r.server.Exec("XADD", stream+"0", "1-1", "f", "v")
			return nil
		}, "the entry says that the stream has reached "},
	} {
		t.Run(name, func(t *testing.T) {
			r, folder := movedRig(t)
			spoil(t, c.change(r, folder))
			got := call(t, r.environ, "describe", "orders:0/"+c.segment)
			if got.code != exitFault || !strings.Contains(got.stdout, "\nDIFFERS   ") || !strings.Contains(got.stdout, c.want) {
				t.Errorf("%+v", got)
			}
			var v describeView
			again := call(t, r.environ, "describe", "orders:0/"+c.segment, "-o", "json")
			if err := json.Unmarshal([]byte(again.stdout), &v); err != nil || again.code != exitFault || len(v.Differs) == 0 {
				t.Errorf("%v in %+v", err, again)
			}
		})
	}
}

// changed replaces a part of the first entry.
func changed(from, to string) func(rig, string) error {
	return func(r rig, _ string) error {
		const manifest = "korvet:storage:manifest:orders:0"
		raw := strings.TrimSpace(r.server.Exec("HGET", manifest, "0"))
		if to == `"sha256":"00` {
			at := strings.Index(raw, from) + len(from)
			raw = raw[:at] + strings.Repeat("0", 64) + raw[at+64:]
		} else {
			raw = strings.Replace(raw, from, to, 1)
		}
		r.server.Exec("HSET", manifest, "0", raw)
		return nil
	}
}
