package command

import (
	"os"
	"runtime/debug"
)

// heapGrowth is how far, in percent, the heap may grow beyond what is live
// before it is collected. The worker allocates next to nothing per message,
// and most of what is live are the unfinished files, which are quick to
// collect; Go's usual 100 would double them.
const heapGrowth = 25

// keepHeapSmall trades a little CPU for memory, unless GOGC says what is
// wanted.
func keepHeapSmall() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
}
