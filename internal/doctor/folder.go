package doctor

import "korvet-offload/s3sink"

func ofFolder(f s3sink.Facts, w StoreWant) []Finding {
	d := *f.Folder
	seen := d.Path + " can be read and written to"
	if d.Missing {
		seen = d.Path + " is not there yet: the first upload makes it"
	}
	all := []Finding{reach(d.Reach, seen)}
	if d.Reach != nil {
		return all
	}
	if d.Missing {
		all = append(all, skip("store.put", "make the folder to have it tried", "nothing is put where that would make the folder"))
	} else {
		all = append(all, owner(f.Owner, w.Namespace))
	}
	return append(all, disk(d), space("store.space", d.Space))
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
	seen := bytes(int64(min(s.Free, 1<<62))) + " free"
	switch {
	case s.Free < fewBytes || s.Free < s.Total/100*bytesPercent:
		return warn(id, do, "%s of %s", seen, bytes(int64(min(s.Total, 1<<62))))
	case s.FileLimit > 0 && (s.FreeFiles < fewFiles || s.FreeFiles < s.FileLimit/100*filesPercent):
		return warn(id, do, "%s, and room for %d more files only", seen, s.FreeFiles)
	}
	return good(id, "%s", seen)
}
