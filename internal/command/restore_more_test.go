package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestRestoreRefusesWrongUsage(t *testing.T) {
	environ := []string{"KORVET_STORAGE_REMOTE_PATH=file:///tmp/x", "KORVET_STREAMS_0_KEY=events*"}
	const (
		forms     = `want TOPIC, TOPIC:N, TOPIC:N/SEGMENTS, --stream KEY \[SEGMENTS\], SEGMENTS as in 7 or 1-3,7; or --manifests, or --claim`
		manifests = `want TOPIC, TOPIC:N, --stream KEY`
	)
	for args, want := range map[string]string{
		"restore":                                  `nothing is named: ` + forms,
		"restore orders:0/7 --manifests":           `"orders:0/7" names segments: ` + manifests,
		"restore orders:0 --stream x":              `--stream and "orders:0": ` + forms,
		"restore a/b:0":                            `"a/b:0": segments are those of a partition: ` + forms,
		"restore orders --to-key k":                `--to-key goes with one partition: .*`,
		"restore orders:0 orders:1 --to-key k":     `--to-key goes with one partition: .*`,
		"restore orders --segment 1":               `--segment goes with one TOPIC:N, or --stream KEY`,
		"restore orders:0/1 --segment 1":           `--segment goes with one TOPIC:N, or --stream KEY`,
		"restore --claim orders":                   `--claim is of the whole root: .*`,
		"restore orders:0 --original --to-key x":   `--to-key and --original: want one of them`,
		"restore orders:0 --original --from 5":     `--original brings whole segments back: .*`,
		"restore orders:0 --to-key=":               `--to-key: want the key of a stream`,
		"restore orders:0 --to-key events1":        `stream events1 is one of korvet.streams\[\] and would be offloaded itself: .*`,
		"restore orders:0 --segment 5-3":           `--segment: segments 5-3: 5 is above 3`,
		"restore orders:0 --segment x":             `--segment: segment id "x": .*`,
		"restore orders:0 --from never":            `--from: "never": .*`,
		"restore orders:0 --from 20 --to 10":       `--to lies before --from`,
		"restore orders:0 --rate fast":             `--rate: .*`,
		"restore orders:0 --rate 0":                `--rate: .*`,
		"restore orders:0 --deep":                  `--deep goes with --manifests`,
		"restore orders:0 --registry":              `--registry goes with --manifests`,
		"restore --manifests --segment 1":          `--segment does not go with --manifests and --claim`,
		"restore --manifests --topic ..":           `--topic: illegal topic name: .*`,
		"restore --manifests --topic a --stream b": `--topic and --stream: want one of them`,
		"restore --claim --registry":               `--registry goes with --manifests`,
		"restore orders:0 -o xml":                  `--output xml: want table or json`,
	} {
		r := mustCall(t, environ, exitUsage, strings.Fields(args)...)
		mustMatch(t, r.stderr, "korvet-offload: "+want)
		if r.stdout != "" {
			t.Errorf("%s: %s", args, r.stdout)
		}
	}
}

// What a server, a manifest and a place are not fit for is refused with what to do,
// in a dry run and with --yes, and nothing is written.
//
//fault:redis | the server may evict keys, or has too little memory for a restore | maxmemory and maxmemory-policy of a real server | the restore is refused with what to set, and nothing is written
func TestRestoreRefuses(t *testing.T) {
	r := newLossRig(t)
	s := r.server
	for name, c := range map[string]struct {
		before, after [][]string
		args          string
		want          string
	}{
		"evicts":   {[][]string{{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru", "maxmemory", "1gb"}}, [][]string{{"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", "0"}}, "orders:0", "set maxmemory-policy to noeviction"},
		"memory":   {[][]string{{"CONFIG", "SET", "maxmemory", "1mb"}}, [][]string{{"CONFIG", "SET", "maxmemory", "0"}}, "orders:0 --original", "raise maxmemory, or restore fewer segments"},
		"newer":    {[][]string{{"XADD", "k", "*", "f", "v"}}, [][]string{{"DEL", "k"}}, "orders:0 --to-key k --to 1700000000005", "has newer messages than would be restored"},
		"a text":   {[][]string{{"SET", "k", "v"}}, [][]string{{"DEL", "k"}}, "orders:0 --to-key k", "it is a string: choose another key"},
		"ours":     {nil, nil, "orders:0 --to-key korvet:storage:local:orders:0:7", "it is a key of the namespace"},
		"nothing":  {nil, nil, "orders:1", "partition orders:1: it is in no registry, has no manifest, and there is no object of it"},
		"no range": {nil, nil, "orders:0 --segment 1,9", "segment orders:0/9: it has no entry, and there is no object of it on the store"},
		"no topic": {nil, nil, "nope", "topic nope: it is in no registry"},
		"foreign":  {[][]string{{"XADD", "k", "5-5", "f", "v"}}, [][]string{{"DEL", "k"}}, "orders:0 --to-key k --yes", "it is not the beginning of what is to be restored"},
	} {
		for _, command := range c.before {
			s.Exec(command...)
		}
		for _, yes := range []string{"", " --yes"} {
			if strings.HasSuffix(c.args, "--yes") && yes == "" {
				continue // it takes reading all of it to see that
			}
			was := r.dump()
			got := call(t, r.environ, strings.Fields("restore "+strings.TrimSuffix(c.args, " --yes")+yes)...)
			if got.code != exitFault || !strings.Contains(got.stderr, c.want) || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s%s: exit %d\n%s%s", name, yes, got.code, got.stdout, got.stderr)
			}
			if r.dump() != was {
				t.Errorf("%s%s: something was changed", name, yes)
			}
		}
		for _, command := range c.after {
			s.Exec(command...)
		}
	}
}

func TestRestoreParts(t *testing.T) {
	r := newLossRig(t)
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--segment", "1-2", "--to-key", "a", "--yes", "--rate", "100MB")
	r.mustHold(t, "a", r.all("1", "2"))
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--from", "1700000000005", "--to", "2023-11-14T22:13:20.009Z", "--to-key", "b", "--yes")
	if got := r.server.Exec("XLEN", "b") + r.read("b")[:13]; got != "41700000000005" {
		t.Errorf("%s", got)
	}
	// The beginning of a longer one is gone on with.
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--segment", "1-3", "--to-key", "a", "--yes")
	r.mustHold(t, "a", r.all("1", "2", "3"))
	for yes, how := range map[string]string{"--yes": "; nothing to do", "": ", by their number and ids; --yes compares what is in them"} {
		got := mustCall(t, r.environ, exitDone, strings.Fields("restore orders:0/1-3 --to-key a "+yes)...)
		mustMatch(t, got.stdout, `SEGMENT  RESULT  MESSAGES  WRITTEN  THERE  STREAM  WHY`, `1        there         10        0     10  a       -`,
			`2        there          5        0      5  a       -`, `3        there       2500        0   2500  a       -`,
			`2515 of 2515 messages are there already`+how)
	}
	nothing := mustCall(t, r.environ, exitDone, "restore", "orders:0/4")
	mustMatch(t, nothing.stdout, `SEGMENT  RESULT   MESSAGES  WRITTEN  THERE  STREAM                                  WHY`, `4        skipped         0        0      0  `+restoredKey+`  it is in Redis, and not on the store`, `nothing to restore`)
}

// A dry run looks at what is there, and wants memory for what is missing alone.
func TestRestoreSeesWhatIsThere(t *testing.T) {
	r := newLossRig(t)
	memory := func(args string) int64 {
		var v restoreView
		got := mustCall(t, r.environ, exitDone, strings.Fields("restore -o json "+args)...)
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Fatal(err)
		}
		return v.Memory.Needs
	}
	of0, all := memory("orders:0/0"), memory("orders:0/0-1")
	mustCall(t, r.environ, exitDone, "restore", "orders:0/0", "--yes")
	if rest := memory("orders:0/0-1"); rest <= 0 || rest > all-of0+of0/4 {
		t.Errorf("%d bytes, of %d, of which %d are there", rest, all, of0)
	}
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0-1"), exitDone, "", "0        there ", "1        would_restore ",
		"has 10 messages already: they are compared, and it goes on behind them", "\n2 segments with 20 messages (10 are there already) would be restored; --yes does it\n")
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0-1", "--yes"), exitDone, "", "\n2 segments restored: 10 messages written, 10 there already\n")
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0-1"), exitDone, "", "\n20 of 20 messages are there already, by their number and ids; --yes compares what is in them\n")
	// As many as there should be, and others: that they are there is not said.
	r.server.Exec("XADD", "k", "5-5", "f", "v")
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0", "--to-key", "k"), exitDone, "", "stream k has 1 message already: ", " with 10 messages (1 is there already) would be restored; ")
	for id := range 9 {
		r.server.Exec("XADD", "k", fmt.Sprintf("6-%d", id), "f", "v")
	}
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0", "--to-key", "k"), exitDone, "", "stream k has 10 messages already: ", "\n1 segment with 10 messages would be restored; --yes does it\n")
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0/0-3", "--original", "--yes"), exitDone, "", "4 segments restored: ")
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders:0", "--original", "--yes"), exitDone, "", "it has its local copy", "\nnothing to restore\n")
}

// What is paused is brought back into another stream alone, which changes nothing of
// it.
func TestRestoreOfWhatIsPaused(t *testing.T) {
	r := newLossRig(t)
	for pause, says := range map[string]string{"pause orders --reason moving": `paused: topic orders since .* by .*, because of "moving": nothing of orders:0 is changed until you end that by korvet-offload resume orders`,
		"pause": `paused: everything since .* by .*: nothing of orders:0 is changed until you end that by korvet-offload resume`} {
		mustCall(t, r.environ, exitDone, strings.Fields(pause)...)
		was := r.dump()
		for _, yes := range []string{"", " --yes"} {
			got := mustCall(t, r.environ, exitFault, strings.Fields("restore orders:0/0 --original"+yes)...)
			mustMatch(t, got.stderr, `korvet-offload: restore orders:0: `+says)
			if r.dump() != was {
				t.Errorf("%s: something was changed", pause)
			}
		}
		mustCall(t, r.environ, exitDone, "restore", "orders:0/0", "--yes", "--to-key", "of "+pause)
		r.mustHold(t, "of "+pause, r.all("0"))
		mustCall(t, r.environ, exitDone, strings.Fields(strings.Replace(strings.TrimSuffix(pause, " --reason moving"), "pause", "resume", 1))...)
	}
	mustCall(t, r.environ, exitDone, "restore", "orders:0/0", "--original", "--yes")
	r.server.Exec("DEL", manifestKey)
	mustCall(t, r.environ, exitDone, "pause", "orders")
	got := mustCall(t, r.environ, exitFault, "restore", "--manifests", "--yes")
	if !strings.Contains(got.stderr, "until you end that by korvet-offload resume orders") || r.server.Exec("EXISTS", manifestKey) != "0" {
		t.Errorf("%+v", got)
	}
}

// A topic is restored by its name: each of its partitions, each into a stream of its
// own.
func TestRestoreOfATopic(t *testing.T) {
	r := newLossRig(t)
	mustRead(t, mustCall(t, r.environ, exitDone, "restore", "orders", "--yes"), exitDone, "", "orders:0:\nSEGMENT", "4 segments restored: ")
	r.mustHold(t, restoredKey, r.all("0", "1", "2", "3"))
}

func TestRestoreAsJSON(t *testing.T) {
	r := newLossRig(t)
	for _, yes := range []string{"", "--yes"} {
		args := strings.Fields("restore orders:0 -o json " + yes)
		got := mustCall(t, r.environ, exitDone, args...)
		want := lines("done bool", "memory.max float64", "memory.needs float64", "memory.sampled float64", "memory.used float64", "messages float64", "notes[] string", "original bool",
			"partition string", "refused[] empty", "segments[].messages float64", "segments[].object string", "segments[].result string", "segments[].segment string",
			"segments[].stream string", "segments[].there float64", "segments[].why string", "segments[].written float64", "there float64")
		if shape(t, got.stdout) != want {
			t.Errorf("%s", shape(t, got.stdout))
		}
	}
	r.server.Exec("FLUSHALL")
	for _, yes := range []string{"", "--yes"} {
		got := mustCall(t, r.environ, exitDone, strings.Fields("restore --manifests -o json "+yes)...)
		want := lines("claim.result string", "claim.root string", "claim.was string", "done bool", "notes[] empty", "partitions[].bytes float64", "partitions[].entries float64",
			"partitions[].expired float64", "partitions[].faults[] empty", "partitions[].messages float64", "partitions[].notes[] empty", "partitions[].open string", "partitions[].partition string",
			"partitions[].refused[] empty", "partitions[].result string", "partitions[].there float64", "topics[].partitions float64", "topics[].result string", "topics[].topic string", "topics[].why string")
		if shape(t, got.stdout) != want {
			t.Errorf("%s", shape(t, got.stdout))
		}
	}
}

// The estimate is no less than what the server then says, and not much more.
func TestEstimateOfMemory(t *testing.T) {
	r := newLossRig(t)
	for _, segment := range []string{"0", "3"} {
		got := mustCall(t, r.environ, exitDone, "restore", "orders:0", "--segment", segment, "--to-key", "k"+segment, "--yes", "-o", "json")
		var v restoreView
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil {
			t.Fatal(err)
		}
		takes, err := strconv.ParseFloat(r.server.Exec("MEMORY", "USAGE", "k"+segment, "SAMPLES", "0"), 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("segment %s: %d bytes estimated, %.0f taken", segment, v.Memory.Needs, takes)
		if segment == "3" && (float64(v.Memory.Needs) < 0.95*takes || float64(v.Memory.Needs) > 1.4*takes) {
			t.Errorf("segment %s: %d bytes estimated, %.0f taken", segment, v.Memory.Needs, takes)
		}
	}
}

// A root that belongs to another Redis is taken over by a person's word alone.
func TestClaim(t *testing.T) {
	r := newLossRig(t)
	id := r.server.Exec("GET", rootKey)
	mustMatch(t, mustCall(t, r.environ, exitDone, "restore", "--claim").stdout, "the root belongs to this Redis already")
	r.server.Exec("FLUSHALL")
	if got := mustCall(t, r.environ, exitUsage, "restore", "orders:0"); !strings.Contains(got.stderr, "restore --manifests") {
		t.Errorf("%s", got.stderr)
	}
	mustMatch(t, mustCall(t, r.environ, exitDone, "restore", "--claim").stdout, fmt.Sprintf("this Redis would take over the root of cluster %q", id), "--yes does it")
	if n := r.server.Exec("DBSIZE"); n != "0" {
		t.Fatalf("%s keys", n)
	}
	r.server.Exec("SET", rootKey, "another")
	for _, yes := range []string{"", "--yes"} {
		got := mustCall(t, r.environ, exitFault, strings.Fields("restore --manifests "+yes)...)
		if !strings.Contains(got.stderr, `this Redis is cluster "another": if it is to go on with the root, and has none of its own, give --claim too`) {
			t.Errorf("%s", got.stderr)
		}
	}
	if got := r.server.Exec("GET", rootKey) + r.server.Exec("EXISTS", manifestKey); got != "another0" {
		t.Errorf("%s", got)
	}
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "--claim", "--yes")
	if got := r.server.Exec("GET", rootKey) + r.server.Exec("HLEN", manifestKey); got != id+"5" {
		t.Errorf("%s", got)
	}
	other := append([]string{"KORVET_NAMESPACE=other"}, r.environ...)
	if got := mustCall(t, other, exitUsage, "restore", "--claim", "--yes"); !strings.Contains(got.stderr, "namespace") {
		t.Errorf("%s", got.stderr)
	}
}

// What the files can't tell is said, and of what is registered nothing is changed.
func TestRestoreOfTheRegistry(t *testing.T) {
	r := newLossRig(t)
	s := r.server
	restart := func(commands ...[]string) {
		s.Exec("FLUSHALL")
		for _, command := range commands {
			s.Exec(command...)
		}
	}
	manifests := func(code int) result {
		return mustCall(t, r.environ, code, "restore", "--manifests", "--registry", "--yes")
	}
	restart([]string{"SADD", "korvet:topics", "orders"}, []string{"HSET", "korvet:topic:orders", "partitions", "1"})
	if got := manifests(exitFault); !strings.Contains(got.stderr, "4 of its 4 segments are past retention.ms") && !strings.Contains(got.stderr, "are past retention.ms, and the next tick would delete them") {
		t.Errorf("%s", got.stderr)
	}
	if got := s.Exec("EXISTS", manifestKey); got != "0" {
		t.Error("there is a manifest")
	}
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "--include-expired")
	restart([]string{"HSET", "korvet:topic:orders", "partitions", "1"})
	if got := manifests(exitFault); !strings.Contains(got.stderr, "topic orders: redis HSET korvet:topic:orders: the registry has something there already") {
		t.Errorf("%s", got.stderr)
	}
	if got := s.Exec("EXISTS", "korvet:topics") + s.Exec("HLEN", "korvet:topic:orders"); got != "01" {
		t.Errorf("%s", got)
	}
	restart()
	mustCall(t, r.environ, exitFault, "restore", "--manifests", "--topic", "other")
	mustCall(t, r.environ, exitFault, "restore", "--manifests", "--stream", "other")
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "--topic", "orders", "--yes", "--deep")
	mustCall(t, r.environ, exitDone, "run", "--once") // nobody has registered the topic: nothing is done with it
	if got := s.Exec("HLEN", manifestKey); got != "5" {
		t.Errorf("%s entries", got)
	}
}

// A damaged file is reported and left out, and the others are restored.
func TestRestoreWithADamagedFile(t *testing.T) {
	r := newLossRig(t)
	flipByte(t, r.object("3"))
	got := mustCall(t, r.environ, exitFault, "restore", "orders:0", "--original", "--yes")
	if strings.Count(got.stderr, "\n") != 1 || !strings.Contains(got.stderr, "segment orders:0/3: object korvet:storage:local:orders:0/3.parquet: ") {
		t.Errorf("%s", got.stderr)
	}
	for n, want := range map[string]string{"0": r.ledger["0"], "1": r.ledger["1"], "2": r.ledger["2"], "3": ""} {
		r.mustHold(t, streamKey+":"+n, want)
	}
	r.server.Exec("FLUSHALL")
	got = mustCall(t, r.environ, exitFault, "restore", "--manifests", "--yes")
	if !strings.Contains(got.stderr, "segment orders:0/3: no whole file: object korvet:storage:local:orders:0/3.parquet: ") || strings.Count(got.stderr, "\n") != 1 {
		t.Errorf("%s", got.stderr)
	}
	if got := r.server.Exec("HEXISTS", manifestKey, "3") + r.server.Exec("HLEN", manifestKey); got != "04" {
		t.Errorf("%s", got)
	}
	// gc would remove what is before the first entry, and a topic that is registered
	// without its manifest would begin anew.
	if err := os.Truncate(r.object("0"), 100); err != nil {
		t.Fatal(err)
	}
	r.server.Exec("FLUSHALL")
	got = mustCall(t, r.environ, exitFault, "restore", "--manifests", "--registry", "--yes")
	if !strings.Contains(got.stderr, "segment 0 has no whole file, and comes before segment 1") || !strings.Contains(got.stderr, "topic orders: it is not registered while orders:0 has no manifest") {
		t.Errorf("%s", got.stderr)
	}
	if got := r.server.Exec("EXISTS", manifestKey, "korvet:topics", "korvet:topic:orders"); got != "0" {
		t.Errorf("%s", got)
	}
}

// A topic that counts as removed may be deleted, with what it gets back.
func TestRestoreOfARemovedTopic(t *testing.T) {
	r := newLossRig(t)
	s := r.server
	s.Exec("DEL", manifestKey, streamKey+":4")
	s.Exec("SREM", "korvet:topics", "orders")
	got := mustCall(t, r.environ, exitFault, "restore", "--manifests", "--registry", "--yes")
	if !strings.Contains(got.stderr, "so it counts as removed") || s.Exec("EXISTS", manifestKey, "korvet:topics") != "0" {
		t.Errorf("%s%s", got.stdout, got.stderr)
	}
	s.Exec("SADD", "korvet:topics", "orders")
	mustCall(t, r.environ, exitDone, "restore", "--manifests", "--yes")
}

// flipByte changes a byte in the middle of a file.
func flipByte(t *testing.T, file string) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)/3] ^= 0x40
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A daemon hands the lease over, and goes on; what was restored stays what it is.
func TestRestoreBesideADaemon(t *testing.T) {
	r := newLossRig(t)
	d := start(t, r.environ)
	d.await(`"message":"listening"`)
	eventually(t, "it leads", func() bool { return r.server.Exec("EXISTS", "korvet:storage:offload:lease") == "1" })
	for range 3 {
		mustCall(t, r.environ, exitDone, "restore", "orders:0", "--original", "--yes")
		for n := range 4 {
			r.mustHold(t, fmt.Sprintf("%s:%d", streamKey, n), r.ledger[fmt.Sprint(n)])
		}
		r.server.Exec("HSET", "korvet:topic:orders", "local.retention.ms", "0")
		eventually(t, "they are dropped again", func() bool {
			return r.server.Exec("EXISTS", streamKey+":0", streamKey+":1", streamKey+":2", streamKey+":3") == "0" &&
				strings.Count(r.server.Exec("HVALS", manifestKey), `"GONE"`) == 4
		})
		r.server.Exec("HDEL", "korvet:topic:orders", "local.retention.ms")
	}
	mustCall(t, r.environ, exitDone, "restore", "orders:0", "--yes")
	r.mustHold(t, restoredKey, r.all("0", "1", "2", "3"))
	d.stop()
	if code := d.end(); code != exitDone || strings.Contains(d.log(), `"level":"error"`) || strings.Contains(d.log(), "stray") {
		t.Errorf("exit %d\n%s", code, d.log())
	}
}
