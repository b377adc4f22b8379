package goreaders

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/dataset"
	"korvet-offload/internal/testkit/redisserver"
	"korvet-offload/internal/testkit/s3server"
)

// Segments go the whole way, from a Redis that redis-cli has loaded, through
// the built program, to an S3 server; and what lies there is read by others.
func TestMovedSegments(t *testing.T) {
	redis, s3 := redisserver.Start(t), s3server.Start(t, s3server.Options{})
	want := loadTopic(t, redis)
	runProgram(t, redis, s3)
	files := movedFiles(t, redis, filepath.Join(s3.Dir, "korvet"))
	if len(files) != len(want) {
		t.Fatalf("%d segments are remote, want %d", len(files), len(want))
	}
	args := []string{"read.mjs", "duckdb"}
	for _, path := range files {
		args = append(args, path)
	}
	byDuckDB := runNode(t, args)
	for segment, path := range files {
		t.Run(segment, func(t *testing.T) {
			compare(t, byDuckDB[path], want[segment])
			compare(t, readArrow(t, path), want[segment])
		})
	}
}

// loadTopic loads a topic of 4 partitions with 3 sealed segments and an open
// one each, as the contract has it, and returns the rows of the sealed ones.
// One segment holds the edge cases, where Redis can hold them.
func loadTopic(t *testing.T, redis *redisserver.Server) map[string][]row {
	t.Helper()
	redis.Exec("HSET", "korvet:topic:orders", "remote.storage.enable", "true", "partitions", "4")
	redis.Exec("SADD", "korvet:topics", "orders")
	want := map[string][]row{}
	for partition := range 4 {
		for segment := range 4 {
			name := fmt.Sprintf("%d:%d", partition, segment)
			entries := dataset.Envelope(uint64(4*partition+segment+1), 100, 2000)
			if name == "0:0" {
				entries = oddEntries()
			}
			var cmds []byte
			for _, e := range entries {
				args := []string{"XADD", "korvet:storage:local:orders:" + name, e.ID.String()}
				for _, f := range e.Fields {
					args = append(args, string(f.Name), string(f.Value))
				}
				cmds = redisserver.AppendCommand(cmds, args...)
			}
			redis.Pipe(cmds)
			entry := `{"v":1,"state":"OPEN","tier":"LOCAL"}`
			if segment < 3 {
				entry = fmt.Sprintf(`{"v":1,"state":"SEALED","tier":"LOCAL","count":%d,"sealedAt":1}`, len(entries))
				want[name] = rowsOf(entries)
			}
			redis.Exec("HSET", fmt.Sprintf("korvet:storage:manifest:orders:%d", partition), fmt.Sprint(segment), entry)
		}
	}
	return want
}

// oddEntries are the entries of all edge cases but those without fields, which
// XADD refuses, with ids that ascend.
func oddEntries() []dataset.Entry {
	var all []dataset.Entry
	for _, c := range dataset.Cases() {
		for _, e := range c.Entries {
			if len(e.Fields) > 0 {
				e.ID.Ms, e.ID.Seq = 1_708_956_789_000, uint64(len(all)+1)
				all = append(all, e)
			}
		}
	}
	return all
}

func runProgram(t *testing.T, redis *redisserver.Server, s3 *s3server.Server) {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "korvet-offload")
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = filepath.Join("..", "..")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	run := exec.Command(bin, "run", "--once")
	run.Env = append(os.Environ(), "KORVET_REDIS_URI="+redis.URI(), "KORVET_STORAGE_REMOTE_PATH=s3://"+s3.Bucket+"/korvet",
		"KORVET_STORAGE_S3_ENDPOINT="+s3.Endpoint, "KORVET_STORAGE_S3_REGION="+s3.Region,
		"KORVET_STORAGE_S3_ACCESS_KEY_ID="+s3.Access, "KORVET_STORAGE_S3_SECRET_ACCESS_KEY="+s3.Secret)
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("run --once: %v\n%s", err, out)
	}
}

// movedFiles are the files of the REMOTE segments, by partition:segment, as
// the manifests name them.
func movedFiles(t *testing.T, redis *redisserver.Server, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for partition := range 4 {
		lines := strings.Split(strings.TrimSpace(redis.Exec("HGETALL", fmt.Sprintf("korvet:storage:manifest:orders:%d", partition))), "\n")
		for i := 0; i+1 < len(lines); i += 2 {
			var entry struct {
				Tier   string
				Object struct{ Path string }
			}
			if err := json.Unmarshal([]byte(lines[i+1]), &entry); err != nil {
				t.Fatal(err)
			}
			if entry.Tier == "REMOTE" {
				files[fmt.Sprintf("%d:%s", partition, lines[i])] = filepath.Join(root, entry.Object.Path)
			}
		}
	}
	return files
}
