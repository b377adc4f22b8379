package guards

const collector = "./internal/gc"

// gcGuards are those between an object that somebody needs and its collection.
func gcGuards() []Guard {
	cut := func(file, old, new string) []Cut { return []Cut{{"internal/gc/" + file, old, new}} }
	guard := func(name, against, test string, cuts []Cut) Guard {
		return Guard{Name: name, Against: against, Cuts: cuts, Package: collector, Test: "^" + test + "$"}
	}
	return []Guard{
		guard("gc: an unsettled entry keeps all copies", "gc between put and flip removes the object that is named next", "TestWhatMayBeNamedYetStays",
			cut("manifest.go", "	case !f.settled:\n", "	case false:\n")),
		guard("gc: a path that any entry names stays", "an object that an entry names from elsewhere is removed", "TestNamedFromElsewhere",
			cut("look.go", "bool { return l.odd[c.Object.Info.Key] }", "bool { return false }")),
		guard("gc: older means older than both copies that an entry tells of", "a later copy than the one in use is removed", "TestEntriesThatNameAnotherCopy",
			cut("manifest.go", "o.Copy < f.copied && o.Copy < f.copyOf:", "o.Copy < f.copied:")),
		guard("gc: a replaced copy goes only while the named object stands", "the only whole copy is removed", "TestTheOnlyCopyStays",
			cut("again.go", "	if why, err = c.stands(ctx, named); why", "	if why"),
		),
		guard("gc: a replaced copy goes only if it is an earlier copy of what the named object holds",
			"after a FLUSHALL the objects of before lie where older copies would, and are removed", "TestRacesWithWhatIsDeleted",
			cut("again.go", "	return c.reads(ctx, one.Object.Info.Key, c.ports.Earlier(ctx, one.Partition, one.Object, *named))\n", "	return \"\", nil\n")),
		guard("gc: what retention can't have taken stays", "the object of an entry that was lost at the front is removed", "TestWhatRetentionCannotHaveTakenStays",
			cut("again.go", "		return c.past(ctx, one)\n", "		return \"\", nil\n")),
		guard("gc: a manifest that is not whole protects its partition", "an entry that was not read names what is removed", "TestProtectedPartitions",
			cut("manifest.go", "	case int64(len(m.entries)) < fields:\n", "	case false:\n")),
		guard("gc: an entry that can't be read protects its partition", "it may name what is removed", "TestProtectedPartitions",
			cut("look.go", "	case m.err != nil:\n		return &Protected", "	case false:\n		return &Protected")),
		guard("gc: an empty Redis ends it", "everything counts as removed", "TestNothingIsBelievedOfAnEmptyWorld",
			cut("look.go", "	case l.fields == 0 && l.broken == 0 &&", "	case false &&")),
		guard("gc: an owner marker that is not ours ends it", "another cluster's objects are removed", "TestNothingIsBelievedOfAnEmptyWorld",
			cut("look.go", "	if err := l.owned(ctx); err != nil {\n		return err\n	}\n", "")),
		guard("gc: what is young stays", "an upload under way is taken for a leftover", "TestWhatIsYoungStays",
			cut("look.go", " || age < l.opt.OlderThan {", " {")),
		guard("gc: an entry that came meanwhile keeps its object", "a segment that was put back loses its object", "TestRacesWithSegmentsWithoutAnEntry",
			cut("again.go", "	case c.Class != Replaced && s.raw != \"\":\n", "	case false:\n")),
		guard("gc: the entry is read again before a deletion", "an entry that names the copy again loses it", "TestRacesWithWhatIsDeleted",
			cut("again.go", "class != Replaced {\n		return nil, \"its segment's entry has changed\"", "false && class != Replaced {\n		return nil, \"its segment's entry has changed\"")),
		guard("gc: the entry's bytes hold while the store is looked at", "an entry that changes in between is not seen", "TestTheEntryIsReadLast",
			cut("again.go", "		case after[i].raw != before[i].raw:\n", "		case false:\n")),
		guard("gc: the object is the one that was listed", "one that was put meanwhile is removed", "TestRacesWithWhatIsDeleted",
			cut("again.go", "	case !same(info, one.Object.Info):\n", "	case false && !same(info, one.Object.Info):\n")),
		guard("gc: a topic that came back keeps its objects", "a topic that is made anew loses what it has put", "TestRacesWithATopicThatComesBack",
			cut("again.go", "	case c.Class == Removed && s.fields > 0:\n", "	case false:\n")),
		guard("gc: of a removed topic only its own files go", "a table of somebody else whose folder looks like a stream's is removed", "TestPartitionsWithoutAManifest",
			cut("again.go", "		_, why, err = c.isFile(ctx, one.Partition, one.Object)\n		return why, err\n", "		return \"\", nil\n")),
		guard("gc: a lease that is lost ends it", "two work at once for longer than they must", "TestTheLeaseIsLostInTheMiddle",
			cut("remove.go", "	if ctx.Err() != nil { // the lease, last\n		return context.Cause(ctx)\n	}\n", "")),
		guard("gc: only uploads of this program are given up", "an upload of somebody else below the prefix is lost", "TestUnfinishedUploads",
			cut("look.go", "if l.ours(u) && ", "if ")),
		{
			Name: "an emptied Redis does not take a root over", Against: "a new cluster of the same name writes among the objects of the old one",
			Cuts:    []Cut{{"internal/command/owner.go", "	if len(known) == 0 {\n		return \"\", fmt", "	if false && len(known) == 0 {\n		return \"\", fmt"}},
			Package: "./internal/command", Test: "^TestWhoseRootItIs$",
		},
		{
			Name: "a Redis that is empty at a start without the store is another one", Against: "its first pass makes it look as if it remembered topics",
			Cuts:    []Cut{{"internal/command/owner.go", "	if err == nil && len(known) == 0 {\n		_, err", "	if false && len(known) == 0 {\n		_, err"}},
			Package: "./internal/command", Test: "^TestAStartWithoutTheStore$",
		},
		{
			Name: "a pass asks whether the root is this Redis' still", Against: "a Redis that was emptied under a running worker goes on below the objects of its earlier life",
			Cuts:    []Cut{{"internal/command/owner.go", "	if err := r.owner.still(ctx); err != nil {\n		return nil, err\n	}\n", ""}},
			Package: "./internal/command", Test: "^TestARootThatIsLostMeanwhile$",
		}, {
			Name: "a root without the objects is not claimed", Against: "copies go below the mount point of a folder that is not mounted, and what retention deletes counts as deleted",
			Cuts:    []Cut{{"internal/command/owner.go", "	if c.objects != nil && !c.empty.Load() {", "	if false {"}},
			Package: "./internal/command", Test: "^TestARootWithoutTheObjects$",
		},
		{
			Name: "a root without the objects ends the start", Against: "a daemon whose folder is not mounted looks as if it worked",
			Cuts:    []Cut{{"internal/command/owner_objects.go", "	if err := s.owner.objects(ctx); errors.Is(", "	if err := s.owner.objects(ctx); err == nil && errors.Is("}},
			Package: "./internal/command", Test: "^TestARootWithoutTheObjects$",
		},
	}
}
