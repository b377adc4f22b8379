package guards

const (
	restorer = "./internal/restore"
	repairer = "./internal/repair"
)

// healGuards are those of what brings something back: restore and repair.
func healGuards() []Guard {
	in := func(pkg, name, against, test, file, old, new string) Guard {
		return Guard{Name: name, Against: against, Cuts: []Cut{{pkg[2:] + "/" + file, old, new}}, Package: pkg, Test: "^" + test + "$"}
	}
	return []Guard{
		in(restorer, "restore: a file is the one that its entry tells of", "other messages are restored under its name", "TestFetch",
			"fetch.go", "if n != want.Size || want.SHA256 != \"\" && got != want.SHA256 {", "if false {"),
		in(restorer, "restore: a file is read to its end before its first message is written", "half of a segment is restored", "TestFetch",
			"fetch.go", "	if err := file.Read(ctx, func(*segment.Page) error { return nil }); err != nil {\n		return nil, err\n	}\n", ""),
		in(restorer, "restore: what is in the stream is compared entry for entry", "messages are appended to somebody else's", "TestWhatIsThereIsCompared",
			"fill.go", "id != p.ID(i) || !f.page.SameFields(f.at, p, i)", "id != p.ID(i)"),
		in(restorer, "restore: a stream that somebody else writes to is left", "two orders of messages are mixed", "TestSomebodyWritesMeanwhile",
			"fill.go", "	if !ok {\n		return refuse", "	if false && !ok {\n		return refuse"),
		in(restorer, "restore: a stream is read back", "an entry says that a local copy is there that is another", "TestTheStreamChangesWhileItIsReadBack",
			"fill.go", "digest != f.digest || ", "false && digest != f.digest || "),
		in(restorer, "restore: a manifest that did not come whole is not rebuilt", "an entry that was not read is made anew", "TestAManifestThatDidNotComeWhole",
			"ports.go", "if int64(len(all)) < fields {", "if false {"),
		in(restorer, "restore: only an OPEN first entry is replaced", "a sealed segment of which only Redis has the messages loses its entry", "TestRebuildRefuses",
			"rebuild.go", "e.Entry.State == segment.Open && e.Entry.Tier == segment.Local && e.Entry.Key", "e.Entry.Tier == segment.Local && e.Entry.Key"),
		in(restorer, "restore: an entry counts as there only if it tells of just that file", "a manifest looks complete that names other bytes", "TestAnEntryThatNamesAFile",
			"rebuild.go", " && e.Entry.Object.SHA256 == f.Object.SHA256", ""),
		in(restorer, "restore: a manifest that has lost entries meanwhile is not opened", "what is before its first entry counts as past retention", "TestRedisLosesSomeEntriesMeanwhile",
			"rebuild_run.go", "len(m.Entries) == 0 || len(missing) > 0 || have < want", "len(m.Entries) == 0 || have < want"),
		in(repairer, "repair: an object is what was read when an entry is to name it", "an entry names an object that was damaged since", "TestUnchanged",
			"file.go", "now.Missing || now.Size != f.Size || now.ETag != f.ETag || now.told != f.told", "now.Missing"),
		in(repairer, "repair: a change that was not made is not said to be", "whoever reads the report believes that a segment is healed", "TestSomebodyElseIsFasterAtTheLastMoment",
			"act.go", "	case !ok:\n		return LostRace", "	case false && !ok:\n		return LostRace"),
		in(repairer, "repair: without a checksum an object is read again", "the same, on a store that tells none", "TestUnchanged",
			"file.go", "	return now.SHA256 == f.SHA256, spool.Close()", "	return true, spool.Close()"),
		in(repairer, "repair: a file of another segment is none of this one", "its messages are read under another segment's number", "TestRowsOfAnotherSegment",
			"file.go", "is != of {", "false && is != of {"),
		in(repairer, "repair: a stream that does not come whole is not judged", "a segment is copied anew from a part of its stream", "TestAStreamThatDoesNotComeWholeIsNotJudged",
			"held.go", "(now != info || h.Contents.Count != info.Length)", "now != info"),
		in(repairer, "repair: a range goes only while nothing of it went", "messages that were trimmed meanwhile count as there", "TestSameStream",
			"act.go", " && now.MaxDeletedID == was.MaxDeletedID", ""),
		in(repairer, "repair: of a neighbor that can't be read nobody knows what it holds", "an object of an earlier topic gets an entry between its segments", "TestANeighborThatGoesIsUnknown",
			"gather.go", "there && b.Raw == \"\"", "(there || true) && b.Raw == \"\""),
		in(repairer, "repair: what was taken over bounds the next", "two segments of which each has messages of the other get entries", "TestObjectsInAGapThatOverlap",
			"repair.go", "	if a.Deed == TakeOver {", "	if false {"),
		in(repairer, "repair: a range takes no object that goes beyond it", "messages of its neighbor are read twice", "TestALostStreamThatIsLeft",
			"plan_local.go", "c.Count == 0 || c.FirstID.Compare(e.From) >= 0 && c.LastID.Compare(e.To) <= 0", "true"),
		in(repairer, "repair: a newer object takes an entry only with all that the entry's own has", "messages are gone that the older object has", "TestACopyThatNoEntryNames",
			"plan_remote.go", "case !newer.whole() || !holds(newer.Contents, e):", "case false:"),
		in(repairer, "repair: the very bytes come before others", "an entry names other bytes than were copied, without need", "TestAnObjectThatIsDamaged",
			"plan_remote.go", "rank(x) > rank(best) || rank(x) == rank(best) && ", ""),
		in(repairer, "repair: a key that holds something else is no lost stream", "the entry is flipped while nobody knows what is there", "TestALostStreamThatIsLeft",
			"plan_local.go", "	case f.Held.Wrong != nil:", "	case false:"),
		{
			Name: "an emptied Redis gets no record of a topic", Against: "a pass that a FLUSHALL came into makes it look as if it had not been emptied, and it takes the root over",
			Cuts:    []Cut{{"internal/redisstore/change.go", "if ARGV[6] == '2' and redis.call('HLEN', KEYS[1]) == 0 then return 0 end\n", ""}},
			Package: redis, Test: "^TestAnEmptiedRedisRemembersNothing$/^miniredis$",
		},
	}
}
