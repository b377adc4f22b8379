package main

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"korvet-offload/internal/testkit/redisserver"
)

// account is what a server has done since it started.
type account struct {
	commands float64 // number
	usec     float64 // server time in commands
	cpu      float64 // seconds of the server's CPU, its network work included
	network  float64 // bytes, in and out
	reads    float64 // times that the server read from a connection
}

func (a account) minus(b account) account {
	return account{a.commands - b.commands, a.usec - b.usec, a.cpu - b.cpu, a.network - b.network, a.reads - b.reads}
}

// per is the account of one of n.
func (a account) per(n float64) account {
	return account{a.commands / n, a.usec / n, a.cpu / n, a.network / n, a.reads / n}
}

// auditor reads the accounts of one server. What it asks itself is left out:
// its own commands by their name, their bytes by what two looks in a row find.
type auditor struct {
	b      *bench
	client *redis.Client
	own    account
}

func (b *bench) auditor(s *redisserver.Server) *auditor {
	a := &auditor{b: b, client: redis.NewClient(&redis.Options{Addr: s.Addr})}
	b.t.Cleanup(func() { _ = a.client.Close() })
	a.look() // the connection is made
	before := a.look()
	a.own = a.look().minus(before)
	a.own.cpu = 0 // too coarse
	return a
}

// since is what the server has done since a look.
func (a *auditor) since(before account) account { return a.look().minus(before).minus(a.own) }

func (a *auditor) look() account {
	text, err := a.client.Info(a.b.ctx, "all").Result()
	a.b.must(err)
	var is account
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		number, _ := strconv.ParseFloat(value, 64) // 0 where it is none: not one of those below
		switch command, isCommand := strings.CutPrefix(name, "cmdstat_"); {
		case name == "used_cpu_sys" || name == "used_cpu_user":
			is.cpu += number
		case name == "total_net_input_bytes" || name == "total_net_output_bytes":
			is.network += number
		case name == "total_reads_processed":
			is.reads += number
		case isCommand && !overhead(command):
			is.commands += counter(value, "calls")
			is.usec += counter(value, "usec")
		}
	}
	return is
}

// overhead says whether a command is this program's, or the lease's, which is
// renewed by the clock, however often there is a tick. A tick in which nothing
// is done needs none of them.
func overhead(command string) bool {
	return slices.Contains([]string{"info", "evalsha", "eval", "get", "set", "pexpire", "del"}, command)
}

// command is the server time of one command, in microseconds.
func (a *auditor) command(name string) (usec float64) {
	text, err := a.client.Info(a.b.ctx, "commandstats").Result()
	a.b.must(err)
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), "cmdstat_"+name+":"); ok {
			return counter(value, "usec")
		}
	}
	return 0
}

// counter reads one of name=number,name=number.
func counter(list, name string) float64 {
	for part := range strings.SplitSeq(list, ",") {
		if value, ok := strings.CutPrefix(part, name+"="); ok {
			number, _ := strconv.ParseFloat(value, 64) // the server writes nothing else
			return number
		}
	}
	return 0
}

// slow begins to write down what each single command takes.
func (a *auditor) slow() {
	for _, s := range [][2]string{{"slowlog-max-len", "1000000"}, {"slowlog-log-slower-than", "0"}} {
		a.b.must(a.client.ConfigSet(a.b.ctx, s[0], s[1]).Err())
	}
	a.b.must(a.client.Do(a.b.ctx, "SLOWLOG", "RESET").Err())
}

// singles ends that, and gives what was written down.
func (a *auditor) singles() []redis.SlowLog {
	a.b.must(a.client.ConfigSet(a.b.ctx, "slowlog-log-slower-than", "-1").Err())
	all, err := a.client.SlowLogGet(a.b.ctx, -1).Result()
	a.b.must(err)
	return all
}

// cpuOf is what a process has used so far, in seconds.
func cpuOf(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	const hertz = 100 // of these counters, on Linux everywhere
	return (user + system) / hertz
}
