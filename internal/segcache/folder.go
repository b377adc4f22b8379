package segcache

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	sumPattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	tempPattern = regexp.MustCompile(`^\.[0-9a-f]{64}\.[0-9A-Z]{16}\.tmp$`)
)

const extension = ".parquet"

func isSum(text string) bool { return sumPattern.MatchString(text) }

func nameOf(sum string) string { return sum + extension }

// kept is a file of ours in the folder.
type kept struct {
	sum  string
	size int64
	used time.Time
}

// makeRoom removes files, those first that were not used for longest, until there
// is room for what is reserved. It removes unfinished files of
// processes that are gone, too.
func (c *Cache) makeRoom() error {
	c.making.Lock()
	defer c.making.Unlock()
	files, others, err := c.look()
	if err != nil {
		return inFolder(err)
	}
	c.mu.Lock()
	total := c.reserved + others
	c.mu.Unlock()
	for _, f := range files {
		total += f.size
	}
	slices.SortFunc(files, func(a, b kept) int { return a.used.Compare(b.used) })
	for _, f := range files {
		if total <= c.size {
			break
		}
		if err := c.root.Remove(nameOf(f.sum)); err != nil && !os.IsNotExist(err) {
			return inFolder(err)
		}
		c.forget(f.sum)
		total -= f.size
	}
	if total > c.size {
		return fmt.Errorf("there is no room: %d of %d bytes are being fetched", total, c.size)
	}
	return nil
}

func (c *Cache) forget(sum string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.good, sum)
}

// look lists our files, and adds up the unfinished ones of other processes.
func (c *Cache) look() (files []kept, others int64, err error) {
	dir, err := c.root.Open(".")
	if err != nil {
		return nil, 0, err
	}
	defer dir.Close()
	for {
		entries, err := dir.ReadDir(1000)
		for _, e := range entries {
			f, unfinished := c.file(e)
			if others += unfinished; f.size > 0 {
				files = append(files, f)
			}
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, err
		}
	}
	slices.SortFunc(files, func(a, b kept) int { return cmp.Compare(a.sum, b.sum) })
	return slices.CompactFunc(files, func(a, b kept) bool { return a.sum == b.sum }), others, nil
}

// file looks at one file: one of ours, or what an unfinished one of another process
// takes.
func (c *Cache) file(e fs.DirEntry) (f kept, unfinished int64) {
	sum, ours := strings.CutSuffix(e.Name(), extension)
	temporary := tempPattern.MatchString(e.Name())
	if (!ours || !isSum(sum)) && !temporary || !e.Type().IsRegular() {
		return kept{}, 0
	}
	is, err := e.Info()
	if err != nil { // it is gone
		return kept{}, 0
	}
	if temporary {
		return kept{}, c.sweep(e.Name(), is.Size())
	}
	return kept{sum, is.Size(), usedAt(is)}, 0
}

// sweep removes an unfinished file whose process is gone, and else says what it
// takes. Whoever writes one holds its lock.
func (c *Cache) sweep(name string, size int64) int64 {
	c.mu.Lock()
	_, ours := c.flights[name[1:65]]
	c.mu.Unlock()
	if ours {
		return 0 // it is reserved
	}
	file, err := c.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	if lock(file) != nil {
		return size
	}
	_ = c.root.Remove(name) // or the next sweep does
	return 0
}
