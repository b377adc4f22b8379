package command

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"korvet-offload/internal/testkit/redisserver"
)

// typed are the commands of one row of the table in docs/runbook.md that have not
// been run yet.
type typed struct {
	t        *testing.T
	commands []string
	environ  []string
}

var typedCommand = regexp.MustCompile("`korvet-offload ([^`]+)`")

// runbookRows are the commands of the table, by what begins the first cell.
func runbookRows(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## What happened, and what to type\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.HasPrefix(cells[1], " What happened") {
			continue
		}
		for _, m := range typedCommand.FindAllStringSubmatch(line, -1) {
			rows[strings.TrimSpace(cells[1])] = append(rows[strings.TrimSpace(cells[1])], m[1])
		}
	}
	return rows
}

// next runs the next command of the row.
func (c *typed) next(code int, want ...string) {
	c.t.Helper()
	if len(c.commands) == 0 {
		c.t.Fatal("the row has no more commands")
	}
	command := c.commands[0]
	c.commands = c.commands[1:]
	got := call(c.t, c.environ, strings.Fields(command)...)
	if got.code != code {
		c.t.Fatalf("%s: exit %d\n%s%s", command, got.code, got.stdout, got.stderr)
	}
	for _, w := range want {
		if !strings.Contains(got.stdout+got.stderr, w) {
			c.t.Errorf("%s lacks %q:\n%s%s", command, w, got.stdout, got.stderr)
		}
	}
}

// Every line of the table of what to type is typed in the case that it is for, and
// does what the page says.
func TestTheRunbook(t *testing.T) {
	rows := runbookRows(t)
	for begins, scene := range map[string]func(t *testing.T, c *typed){
		"Redis was emptied":          emptied,
		"an object was deleted":      func(t *testing.T, c *typed) { damaged(t, c, os.Remove) },
		"an object was cut short":    func(t *testing.T, c *typed) { damaged(t, c, func(f string) error { return os.Truncate(f, 100) }) },
		"a stream is gone":           streamGone,
		"the folder is not mounted":  notMounted,
		"a topic was removed":        topicRemoved,
		"Redis is full":              redisFull,
		"objects are left over":      leftOver,
		"somebody needs an old":      oldMessage,
		"somebody needs a topic":     backInRedis,
		"the daemon says that the r": otherCluster,
	} {
		found := ""
		for row := range rows {
			if strings.HasPrefix(row, begins) {
				found = row
			}
		}
		if found == "" {
			t.Errorf("no row begins with %q", begins)
			continue
		}
		t.Run(begins, func(t *testing.T) {
			c := &typed{t: t, commands: rows[found]}
			scene(t, c)
			if len(c.commands) > 0 {
				t.Errorf("not typed: %q", c.commands)
			}
		})
		delete(rows, found)
	}
	for row := range rows {
		t.Errorf("nobody types what is in row %q", row)
	}
}

func emptied(t *testing.T, c *typed) {
	r := newLossRig(t)
	c.environ = r.environ
	r.server.Exec("FLUSHALL")
	c.next(exitDone, "1 manifest would be restored; --yes does it")
	c.next(exitDone, "1 manifest restored")
	mustRead(t, call(t, r.environ, "verify", "--deep"), exitDone, "", "nothing is wrong")
}

func damaged(t *testing.T, c *typed, damage func(file string) error) {
	r, folder := movedRig(t)
	c.environ = r.environ
	spoil(t, damage(filepath.Join(folder, "0.parquet")))
	c.next(exitFault, "  orders:0/0  ")
	c.next(exitDone, "1 healed")
	mustRead(t, call(t, r.environ, "verify", "--deep"), exitDone, "", "nothing is wrong")
}

// A failover has lost the flip, and kept the removal of the stream.
func streamGone(t *testing.T, c *typed) {
	r := newRig(t)
	c.environ = r.environ
	before := strings.TrimSpace(r.server.Exec("HGET", manifestKey, "0"))
	mustCall(t, r.environ, exitDone, "run", "--once")
	r.server.Exec("HSET", manifestKey, "0", before)
	r.server.Exec("DEL", streamKey+":0")
	c.next(exitFault, "its stream is in Redis, and there is none", "korvet:storage:local:orders:0/0.parquet")
	c.next(exitDone, "reflip", "1 healed")
	mustRead(t, call(t, r.environ, "verify", "--deep"), exitDone, "", "nothing is wrong")
}

func notMounted(t *testing.T, c *typed) {
	r, folder := movedRig(t)
	root := filepath.Dir(folder)
	c.environ = r.environ
	spoil(t, os.Rename(root, root+".away"), os.Mkdir(root, 0o700))
	c.next(exitFault, "orders:0/")
	spoil(t, os.RemoveAll(root), os.Rename(root+".away", root))
	c.next(exitDone, "nothing is wrong")
}

func topicRemoved(t *testing.T, c *typed) {
	r, folder := movedRig(t)
	c.environ = r.environ
	settings := strings.Split(strings.TrimSpace(r.server.Exec("HGETALL", "korvet:topic:orders")), "\n")
	r.server.Exec("DEL", "korvet:topics", "korvet:topic:orders")
	r.server.Exec("SADD", "korvet:topics", "other")
	r.server.Exec("HSET", "korvet:topic:other", "partitions", "1")
	c.next(exitDone, "paused: topic orders")
	call(t, append(r.environ, "KORVET_STORAGE_OFFLOAD_DELETE_REMOVED_TOPICS=true", "KORVET_STORAGE_OFFLOAD_TOPIC_DELETE_GRACE=0"), "run", "--once")
	r.server.Exec("SADD", "korvet:topics", "orders")
	r.server.Exec(append([]string{"HSET", "korvet:topic:orders"}, settings...)...)
	c.next(exitDone, "resumed: topic orders")
	mustCall(t, r.environ, exitDone, "run", "--once")
	mustRead(t, call(t, r.environ, "verify", "orders", "--deep"), exitDone, "", "nothing is wrong", "read 2 objects")
	if files, err := os.ReadDir(folder); err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
}

func redisFull(t *testing.T, c *typed) {
	r := newRig(t)
	c.environ = r.environ
	r.server.Exec("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
	c.next(exitFault, "memory")
	r.server.Exec("CONFIG", "SET", "maxmemory", "0")
	c.next(exitDone, "2 of 2 sealed segments moved")
}

func leftOver(t *testing.T, c *typed) {
	r := newGCRig(t)
	c.environ = r.environ
	c.next(exitDone, "would delete "+gcFolder+"/0.parquet")
	c.next(exitDone, "deleted "+gcFolder+"/0.parquet")
	mustRead(t, call(t, r.environ, "verify", "orders", "--deep"), exitFault, "", "orphan  orders:0/9") // what gc leaves is a person's
}

func oldMessage(t *testing.T, c *typed) {
	r := newLossRig(t)
	c.environ = r.environ
	c.next(exitDone, `{"id":"1700000000001-`)
	c.environ = withoutRedis(r.environ)
	c.next(exitDone, `{"id":"1700000000001-`)
}

func backInRedis(t *testing.T, c *typed) {
	r := newLossRig(t)
	c.environ = r.environ
	c.next(exitDone, "4 segments with ", " would be restored; --yes does it")
	c.next(exitDone, "4 segments restored: ")
	r.mustHold(t, restoredKey, r.all("0", "1", "2", "3"))
}

func otherCluster(t *testing.T, c *typed) {
	r := newLossRig(t)
	other := redisserver.Start(t)
	c.environ = append([]string{"KORVET_REDIS_URI=" + other.URI()}, r.environ[1:]...)
	other.Exec("SET", rootKey, "ANOTHERCLUSTER")
	if refused := call(t, c.environ, "run", "--once"); refused.code != exitUsage || !strings.Contains(refused.stderr, "restore --claim") {
		t.Errorf("%+v", refused)
	}
	c.next(exitDone, "this Redis would take over the root of cluster ")
	c.next(exitDone, "this Redis has taken over the root of cluster ", "1 manifest restored")
	mustRead(t, call(t, c.environ, "verify", "--deep"), exitDone, "", "nothing is wrong")
}
