package doctor

import (
	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
)

func ofFolder(f s3sink.Facts, w StoreWant) []Finding {
	d := *f.Folder
	seen := d.Path + " can be read and written to"
	if d.Missing {
		seen = d.Path + " is not there yet: the first upload makes it"
	}
	if d.Missing && w.Past != (Past{}) {
		say := fail
		if w.Past.Remote == "" && d.Reach == nil { // they may have had nothing to copy yet
			say = warn
		}
		return []Finding{say("store.reach", mountIt, "%s is not there, and redis knows of %s: not mounted?", d.Path, w.Past),
			skip("store.put", "", "nothing is put there before it is mounted")}
	}
	all := []Finding{reach(d.Reach, seen)}
	if d.Reach != nil {
		return all
	}
	switch {
	case d.Missing:
		all = append(all, skip("store.put", "make the folder to have it tried", "nothing is put where that would make the folder"))
	case w.Past.Remote != "" && f.Owner == (s3sink.Answer[s3sink.Marker]{}):
		all = append(all, fail("store.owner", mountIt, "%s has no owner marker, and redis knows of %s: not mounted?", d.Path, w.Past))
	default:
		all = append(all, owner(f.Owner, w))
	}
	return append(all, disk(d), space("store.space", d.Space))
}

// mountIt is what to do where there is another folder than that with the objects.
const mountIt = "mount the disk that has the objects, or mend korvet.storage.remote-path"

// Unclaimed says whether a folder looks as if no object ever was there.
func Unclaimed(f s3sink.Facts) bool {
	return f.Folder != nil && (f.Folder.Missing || f.Folder.Reach == nil && f.Owner == (s3sink.Answer[s3sink.Marker]{}))
}

// String names what Redis knows of, the surest first.
func (p Past) String() string {
	if p.Remote != "" {
		return "objects that should be there, as of segment " + p.Remote
	}
	return words.Count(p.Topics, "topic") + " that it has worked on"
}

// vanishes says why what lies on a file system is gone some day; "" if it stays.
func vanishes(system string) string {
	switch system {
	case "tmpfs", "ramfs":
		return "in memory: gone when the machine or the container restarts"
	case "overlay":
		return "a container's own layer: gone with the container"
	}
	return ""
}

func disk(d s3sink.FolderFacts) Finding {
	const id = "store.disk"
	mounted := "not a mount of its own"
	if d.Mount {
		mounted = "a mount of its own"
	}
	switch why := vanishes(d.Type); {
	case d.ReadOnly:
		return fail(id, "mount it writable", "%s, mounted read-only", d.Type)
	case why != "":
		return warn(id, "put korvet.storage.remote-path on a disk or a volume that stays", "%s, %s", d.Type, why)
	case d.Type == "":
		return skip(id, "", "this system does not say")
	}
	return good(id, "%s, %s", d.Type, mounted)
}

// Below these there is little room.
const (
	fewBytes     = 1 << 30
	fewFiles     = 1000
	bytesPercent = 5
	filesPercent = 1
)

func space(id string, of s3sink.Answer[s3sink.Space]) Finding {
	s := of.Value
	if of.Err != nil || s.Total == 0 {
		return skip(id, "", "the file system does not say")
	}
	const do = "make room, or lower retention.ms or retention.bytes of the topics"
	seen := words.Size(int64(min(s.Free, 1<<62))) + " free"
	switch {
	case s.Free < fewBytes || s.Free < s.Total/100*bytesPercent:
		return warn(id, do, "%s of %s", seen, words.Size(int64(min(s.Total, 1<<62))))
	case s.FileLimit > 0 && (s.FreeFiles < fewFiles || s.FreeFiles < s.FileLimit/100*filesPercent):
		return warn(id, do, "%s, and room for %d more files only", seen, s.FreeFiles)
	}
	return good(id, "%s", seen)
}
