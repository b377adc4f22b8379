package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/rueidis"
)

//fault:redis | The server refuses a command, with each of the words that there are | error replies as Redis 6.2, 7 and Valkey give them, alone and within a script | what passes by itself is told from what does not, and it is said what to do
func TestClassesOfReplies(t *testing.T) {
	for reply, want := range map[string]struct {
		class  Class
		advice string
	}{
		"LOADING Redis is loading the dataset in memory":                                                                                     {Unavailable, "goes on by itself"},
		"LOADING Valkey is loading the dataset in memory":                                                                                    {Unavailable, "goes on by itself"},
		"READONLY You can't write against a read only replica.":                                                                              {Unavailable, "address of the primary"},
		"READONLY You can't write against a read only replica. script: b87, on @user_script:2.":                                              {Unavailable, "address of the primary"},
		"ERR Error running script (call to f_b8): @user_script:1: -READONLY You can't write":                                                 {Unavailable, "address of the primary"},
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":                                                   {Unavailable, "address of the primary"},
		"CLUSTERDOWN Hash slot not served":                                                                                                   {Unavailable, "CLUSTER INFO"},
		"TRYAGAIN Multiple keys request during rehashing of slot":                                                                            {Unavailable, ""},
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":                                             {Unavailable, ""},
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.":                                   {Unavailable, ""},
		"ERR Error running script (call to f_b8): @user_script:1: @user_script: 1: -MISCONF Redis is":                                        {Unavailable, ""},
		"NOREPLICAS Not enough good replicas to write.":                                                                                      {Unavailable, "min-replicas-to-write"},
		"ERR Error running script (call to f_b8): @user_script:1: -NOREPLICAS Not enough":                                                    {Unavailable, "min-replicas-to-write"},
		"ERR max number of clients reached":                                                                                                  {Unavailable, ""},
		"WRONGPASS invalid username-password pair or user is disabled.":                                                                      {Auth, "korvet.redis.password"},
		"NOAUTH Authentication required.":                                                                                                    {Auth, "korvet.redis.password"},
		"ERR invalid password":                                                                                                               {Auth, "korvet.redis.password"},
		"ERR AUTH <password> called without any password configured for the default user.":                                                   {Auth, "korvet.redis.password"},
		"NOPERM this user has no permissions to run the 'info' command":                                                                      {Permission, ""},
		"NOPERM User u has no permissions to access one of the keys used as arguments":                                                       {Permission, ""},
		"ERR Error running script (call to f_b8): @user_script:1: The user executing the script can't run this command or subcommand":        {Permission, ""},
		"ERR ACL failure in script: User u has no permissions to run the 'del' command":                                                      {Permission, ""},
		"OOM command not allowed when used memory > 'maxmemory'.":                                                                            {NoMemory, "maxmemory"},
		"ERR Error running script (call to f_b8): @user_script:1: @user_script: 1: -OOM command not allowed when used memory > 'maxmemory'.": {NoMemory, "maxmemory"},
		"WRONGTYPE Operation against a key holding the wrong kind of value":                                                                  {WrongType, ""},
		"MOVED 3999 127.0.0.1:6381":                                                                                                          {WrongMode, "korvet.redis.cluster"},
		"ERR This instance has cluster support disabled":                                                                                     {WrongMode, "korvet.redis.cluster"},
		"ERR unknown command 'XRANGE', with args beginning with:":                                                                            {Other, ""},
		"UNKILLABLE Sorry the script already executed write commands against the dataset":                                                    {Other, ""},
	} {
		err := wrap(t.Context(), "GET", "k", errReply(reply))
		if ClassOf(err) != want.class || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: class %s, want %s: %v", reply, ClassOf(err), want.class, err)
		}
		if advice := Advice(errReply(reply)); want.advice == "" && advice != "" || !strings.Contains(advice, want.advice) || !strings.Contains(err.Error(), advice) {
			t.Errorf("%s: advice %q, want %q", reply, advice, want.advice)
		}
		if Advice(err) != "" {
			t.Errorf("%s: advice is given twice", reply)
		}
	}
	if err := fmt.Errorf("x: %w", rueidis.ErrNoSlot); classify(err) != Unavailable || !strings.Contains(Advice(err), "CLUSTER INFO") {
		t.Errorf("a slot of nobody: %s, %q", classify(err), Advice(err))
	}
	if Advice(nil) != "" || Advice(errors.New("x")) != "" {
		t.Error("advice about nothing")
	}
}
