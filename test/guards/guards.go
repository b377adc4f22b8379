// Package guards lists what stands between an acknowledged message and its
// loss, and how each of these guards is taken out. Its test takes them out one
// by one and runs what must notice: the model of package offload, which then
// prints the shortest schedule that loses something, or a test.
package guards

import "slices"

// Guard is one guard.
type Guard struct {
	Name    string
	Against string // what would happen without it
	Cuts    []Cut  // how it is taken out

	Package string // whose test notices
	Test    string // a pattern for go test -run
	Model   bool   // the test is a scenario of the model
	Finds   string // what the test says then, such as "lost:"; "" = anything
	Note    string // what else there is to know
}

// Cut replaces a piece of the source, which must be there just once.
type Cut struct{ File, Old, New string }

// All are the guards, in the order of a segment's life.
func All() []Guard {
	return slices.Concat(copyGuards(), flipGuards(), dropGuards(), plainGuards(), expiryGuards(), pauseGuards(), shardGuards(), savingGuards(), gcGuards(), healGuards())
}

const (
	core  = "./offload"
	redis = "./internal/redisstore"
	fake  = "offload/world_redis_test.go"
	store = "offload/world_store_test.go"
)

func scenario(name string) string { return "^TestModel$/^" + name + "$" }

func copyGuards() []Guard {
	return []Guard{
		{
			Name: "a missing or short stream is refused", Against: "a file without the messages takes the place of a stream that somebody deleted",
			Cuts: []Cut{
				{"offload/copy.go", "	err = checkSource(c.entry, c.key, c.before)\n", "	err = nil\n"},
				{"offload/copy.go", "if contents.Count != c.before.Length || contents.LastID.Compare(c.before.LastID) > 0 {", "if false {"},
				{"offload/copy.go", "	if now != c.before {", "	if false {"},
			},
			Package: core, Test: scenario("a_stream_vanishes"), Model: true, Finds: "lost:",
		},
		{
			Name: "an object is written once", Against: "a worker that slept overwrites the object that an entry names",
			Cuts:    []Cut{{store, "taken && w.createOnly {", "taken && false {"}},
			Package: core, Test: scenario("copy_and_drop"), Model: true, Finds: "wrong_object:",
		},
		{
			Name: "If-None-Match is sent with a put", Against: "the same, by the real store",
			Cuts:    []Cut{{"s3sink/put.go", "		opts.SetMatchETagExcept(\"*\")\n", ""}},
			Package: "./s3sink", Test: "^(TestS3|TestSinglePutOnTheWire)$",
		},
		{
			Name: "If-None-Match is sent with the end of a multipart upload", Against: "the same, of large objects",
			Cuts:    []Cut{{"s3sink/multipart.go", "		opts.SetMatchETagExcept(\"*\")\n", ""}},
			Package: "./s3sink", Test: "^(TestS3|TestMultipartOnTheWire)$",
		},
		{
			Name: "the finished file is read back", Against: "an encoder that loses an entry",
			Cuts:    []Cut{{"offload/copy.go", "		c.recheck,   // the file can be read again and holds what was read\n", ""}},
			Package: core, Test: "^TestAnEncoderThatLosesAnEntry$",
		},
		{
			Name: "what lies at the path is compared before it is adopted", Against: "a foreign file is taken for the segment",
			Cuts:    []Cut{{"offload/copy.go", "	if !c.matches(info) {\n		return false, nil\n	}\n	sum", "	if !c.matches(info) {\n		return true, nil\n	}\n	sum"}, {"offload/copy.go", "	if !whole {\n", "	if false {\n"}},
			Package: core, Test: scenario("another_file_lies_at_the_path"), Model: true, Finds: "wrong_object:",
		},
		{
			Name: "the object is looked at before the flip", Against: "an entry names an object that the store has damaged",
			Cuts:    []Cut{{"offload/copy.go", "		c.verify,    // the store shows that object\n", ""}},
			Package: core, Test: scenario("the_store_damages_what_it_was_given"), Model: true, Finds: "wrong_object:",
		},
	}
}

func flipGuards() []Guard {
	return []Guard{
		{
			Name: "every change of an entry is a compare-and-set", Against: "a worker that slept writes over what others have done since",
			Cuts:    []Cut{{fake, "ok = m[c.Number.String()] == c.Old &&", "ok = (c.Old == \"\" || m[c.Number.String()] != \"\") &&"}},
			Package: core, Test: scenario("copy_and_drop"), Model: true, Finds: "lost:",
		},
		{
			Name: "the script compares before it changes", Against: "the same, in Redis",
			Cuts:    []Cut{{"internal/redisstore/change.go", "elseif is ~= ARGV[2] then\n  return 0\nend", "end"}},
			Package: redis, Test: "^TestChange$",
		},
		{
			Name: "the stream is compared with what it was before the first page", Against: "a message that came while the file was made is not in it",
			Cuts:    []Cut{{"offload/copy.go", "	if now != c.before {", "	if false {"}},
			Package: core, Test: "TestTheStreamChangesDuringTheCopy", Finds: "",
			Note: "The removal looks at the stream again, so that nothing is lost without this guard: the message would only be out of sight until then.",
		},
	}
}

func dropGuards() []Guard {
	return []Guard{
		{
			Name: "a stream is removed only if it is what was copied", Against: "a late message goes with the stream",
			Cuts:    []Cut{{fake, "if ok = now.Exists && now == is; ok {", "if ok = now.Exists; ok {"}},
			Package: core, Test: scenario("copy_and_drop"), Model: true, Finds: "lost:",
		},
		{
			Name: "the script compares before it removes", Against: "the same, in Redis",
			Cuts:    []Cut{{"internal/redisstore/remove.go", "if is['length'] ~= tonumber(ARGV[1]) then return 0 end\nif is['last-generated-id'] ~= ARGV[2] then return 0 end\n", ""}},
			Package: redis, Test: "^TestRemoveOnlyWhatWasCopied$",
		},
		{
			Name: "the stream is compared with the entry before its removal", Against: "what came late between the flip and the drop goes with the stream",
			Cuts:    []Cut{{"offload/drop.go", "	like := compare(d.entry, now)\n	switch like {", "	like := intact\n	switch like {"}},
			Package: core, Test: scenario("copy_and_drop"), Model: true, Finds: "lost:",
		},
		{
			Name: "the object is looked at before the stream is removed", Against: "the stream goes although its object is lost or damaged",
			Cuts:    []Cut{{"offload/drop.go", "	damage := d.w.checkObject(ctx, d.entry)\n", "	var damage error\n"}},
			Package: core, Test: scenario("damaged_objects"), Model: true, Finds: "lost:",
		},
		{
			Name: "a look at the object that is too old is repeated", Against: "a worker that slept between the look and the removal trusts an object that is damaged by now",
			Cuts:    []Cut{{"offload/drop.go", "	if d.w.now().Sub(d.checked) < lookAge {", "	if true {"}},
			Package: core, Test: scenario("the_worker_sleeps_between_look_and_removal"), Model: true, Finds: "lost:",
		},
		{
			Name: "DROPPING waits for the replicas", Against: "a failover of the manifest's node forgets the flip, and the stream is gone",
			Cuts:    []Cut{{"offload/drop.go", "	return d.change(ctx, next, true)\n", "	return d.change(ctx, next, false)\n"}},
			Package: core, Test: scenario("failover_of_the_manifest.s_node_alone,_with_wait-replicas"), Model: true, Finds: "stream_gone:",
		},
		{
			Name: "fewer replicas than asked for keep the stream", Against: "the same, when the answer of WAIT is too small",
			Cuts:    []Cut{{"internal/redisstore/durable.go", "	if err != nil || n >= int64(s.cfg.WaitReplicas) {", "	if err != nil || n >= 0 {"}},
			Package: redis, Test: "^TestADurableChangeWaitsFor",
		},
		{
			Name: "GONE with the very stream that was copied is dropped again", Against: "a stream that a failover brought back stays for ever",
			Cuts:    []Cut{{"offload/worker.go", "	p.leftovers(ctx, scan.strays)\n", ""}},
			Package: core, Test: scenario("failover,_with_wait-replicas"), Model: true, Finds: "gone_but_there:",
		},
	}
}

func plainGuards() []Guard {
	return []Guard{
		{
			Name: "a range is compared by its checksum before it is trimmed", Against: "other messages with ids of the range, after a failover, pass for those that were copied",
			Cuts: []Cut{
				{"offload/trim.go", "		return was.CRC32C == int64(digest)\n", "		return true\n"},
				{"offload/trim.go", "	case n > d.entry.Count:\n", "	case false:\n"},
			},
			Package: core, Test: scenario("plain_stream,_its_node_fails_over"), Model: true, Finds: "lost:",
		},
		{
			Name: "a piece is trimmed only if the stream begins with it", Against: "messages go that were not copied, after a failover between count and trim",
			Cuts:    []Cut{{fake, "if ok = int64(n) == piece.Count && n > 0 && s.entries[0].ID == piece.First && s.entries[n-1].ID == piece.Last; ok {", "if ok = true; ok {"}},
			Package: core, Test: scenario("plain_stream,_its_node_fails_over"), Model: true, Finds: "lost:",
		},
		{
			Name: "the script compares before it trims", Against: "the same, in Redis",
			Cuts:    []Cut{{"internal/redisstore/remove.go", "if #piece ~= count then return 0 end\nif piece[1][1] ~= ARGV[1] then return 0 end\nif piece[count][1] ~= ARGV[2] then return 0 end\n", ""}},
			Package: redis, Test: "^TestTrimOnlyWhatWasCopied$",
		},
	}
}

func expiryGuards() []Guard {
	return []Guard{
		{
			Name: "what was never copied is deleted only if it is what it was when it was hidden", Against: "a message that came meanwhile goes with the others",
			Cuts:    []Cut{{"offload/expire.go", "	if like == intact || like == lessened {", "	if true {"}},
			Package: core, Test: scenario("expire_what_was_never_copied"), Model: true, Finds: "lost:",
		},
		{
			Name: "what came since the plan is seen before a segment is hidden", Against: "a segment is hidden although its last message is young",
			Cuts:    []Cut{{"offload/expire.go", "		if !j.Gone && e.State == segment.Sealed && info.LastID.Compare(e.LastID) > 0 {", "		if false {"}},
			Package: core, Test: "^TestALateAppendUndoesTheExpiry$",
			Note: "Nothing is lost without it: a segment that was hidden for its age is brought back when its age is seen to be wrong. Readers would miss it for one tick.",
		},
		{
			Name: "a stray stream keeps its segment from being deleted", Against: "nobody is told any more of messages that came after the drop",
			Cuts:    []Cut{{"offload/expire.go", "	if e.Local == segment.Gone && like != intact {", "	if e.Local == segment.Gone && like != intact && false {"}},
			Package: core, Test: "^TestAStrayStream$",
		},
		{
			Name: "entries are read again right before their objects are deleted", Against: "a worker that slept deletes the object of a topic that was made anew",
			Cuts:    []Cut{{"offload/expire.go", "	ready := p.unchanged(ctx, jobs)\n", "	ready := jobs\n"}},
			Package: core, Test: "^TestASleeperDeletesNothing$",
			Note: "What is left of this danger, between the look and the request, stands under what is not promised.",
		},
		{
			Name: "what the clocks said is known beyond a lost lead", Against: "a Redis clock that is set years ahead makes the lease expire, and whoever leads next believes it",
			Cuts: []Cut{
				{"offload/worker.go", "w.memory.dropped, w.memory.clocks, w.memory.recalled = was.dropped, was.clocks, was.recalled", "w.memory.dropped, w.memory.recalled = was.dropped, was.recalled"},
			},
			Package: core, Test: "^TestAClockThatEndsTheLease$",
		},
		{
			Name: "what Redis remembered is known beyond a lost lead", Against: "a Redis that was emptied has lost the lease too, and looks as if there had never been a topic",
			Cuts: []Cut{
				{"offload/worker.go", "w.memory.dropped, w.memory.clocks, w.memory.recalled = was.dropped, was.clocks, was.recalled", "w.memory.dropped, w.memory.clocks = was.dropped, was.clocks"},
			},
			Package: core, Test: "^TestARedisThatWasEmptied$",
		},
	}
}

// shardGuards are those of instances that share the work.
func shardGuards() []Guard {
	return []Guard{
		{
			Name: "a topic is forgotten by the one instance that has all of it", Against: "an instance that sees nothing of a topic forgets it, and what is left of it stays for ever",
			Cuts:    []Cut{{"offload/plan.go", "!t.Topic.Plain && !t.Elsewhere && (t.Phase", "!t.Topic.Plain && (t.Phase"}},
			Package: core, Test: "^TestOneInstanceSpeaksForATopic$",
		},
		{
			Name: "a topic is forgotten an hour after the last of it was seen", Against: "another instance that began its pass before the topic was switched off copies a segment of it, which then stays for ever",
			Cuts:    []Cut{{"offload/share.go", "		if now.Sub(since) >= forgetAfter {", "		if true {"}},
			Package: core, Test: "^TestASharedTopicIsNotForgottenAtOnce$",
		},
		{
			Name: "a topic is written down by whoever works on a partition of it", Against: "a topic that leaves the registry takes the settings along by which its segments are kept",
			Cuts:    []Cut{{"offload/share.go", "	for _, p := range s.Partitions {\n", "	for _, p := range s.Partitions[:0] {\n"}},
			Package: core, Test: "^TestTopicsAreRememberedByWhoeverWorksOnThem$",
		},
		{
			Name: "a shard is given away when the jobs in it are over", Against: "two instances at work on the same partition whenever one joins",
			Cuts:    []Cut{{"lease/round.go", "return s.inside == 0 && (", "return ("}},
			Package: "./lease", Test: "^TestHandOverWaitsForWhoeverIsIn$",
			Note: "Nothing rests on it: one of the two would lose its races.",
		},
		{
			Name: "an instance that can't work does not count", Against: "shards that nobody works on for as long as it lives",
			Cuts: []Cut{
				{"lease/round.go", "if err := g.working(); err != nil {", "if err := g.working(); false {"},
				{"lease/round.go", "		g.refused = err != nil &&", "		g.refused = false && err != nil &&"},
			},
			Package: "./lease", Test: "^TestAnInstanceThatCantBeCountedOn$",
		},
		{
			Name: "of a shard that was away nothing is remembered", Against: "work is looked for where another instance has done it, until the next whole reading",
			Cuts:    []Cut{{"offload/scan.go", "if !w.memory.sharing.kept(mine, shard) {", "if false {"}},
			Package: core, Test: "^TestInstancesWorkOnTheirShards$",
			Note: "Nothing rests on it: whoever changes an entry reads it first.",
		},
	}
}

// pauseGuards keep what people have paused as it is. The model knows of no
// people.
func pauseGuards() []Guard {
	const note = "Nothing is lost without it: whatever is done then is done by all the other guards."
	return []Guard{
		{
			Name: "what is paused is not planned", Against: "the worker changes what somebody is at work on by hand",
			Cuts:    []Cut{{"offload/plan.go", "		if s.Paused.Covers(s.Partitions[i].Partition) {\n", "		if false {\n"}},
			Package: core, Test: "^TestNothingIsDoneWithWhatIsPaused$", Note: note,
		},
		{
			Name: "what was paused during a pass is not begun", Against: "the same, for as long as a pass takes",
			Cuts:    []Cut{{"internal/command/gate.go", "now != nil && now.Covers(p) {", "now != nil && false {"}},
			Package: "./internal/command", Test: "^(TestPauseGate|TestAPauseDuringAPass)$", Note: note,
		},
		{
			Name: "the gate is asked before objects are deleted", Against: "the same, of up to ten thousand objects that are to be deleted",
			Cuts:    []Cut{{"offload/expire.go", "	ready, leave := p.entered(ready)\n", "	leave := func() {}\n"}},
			Package: core, Test: "^TestAGateThatCloses$", Note: note,
		},
		{
			Name: "a stream that a failover brought back stays while it is paused", Against: "the same",
			Cuts:    []Cut{{"offload/strays.go", "		if p.report.Plan.Paused.Covers(s.partition) {\n", "		if false {\n"}},
			Package: core, Test: "^TestNoLeftoverOfWhatIsPausedIsRemoved$", Note: note,
		},
	}
}

// savingGuards save work. Safety does not rest on them, and the model does not
// miss them.
func savingGuards() []Guard {
	const note = "Nothing rests on it: without it two leaders would be at work more often, and one of them would lose its races."
	return []Guard{
		{
			Name: "leadership ends before the lease does", Against: "two leaders at once",
			Cuts:    []Cut{{"lease/lease.go", "return c.Duration - c.Duration/10 }", "return c.Duration }"}},
			Package: "./lease", Test: "^(TestEndsBeforeTheKeyExpires|TestAHungServerEndsTheLeadershipBeforeTheKey)$", Note: note,
		},
		{
			Name: "a lease counts from before its request", Against: "two leaders at once, after a slow answer",
			Cuts:    []Cut{{"lease/lease.go", "hold(ctx, l, token, sent)", "hold(ctx, l, token, sent.Add(time.Since(sent)))"}},
			Package: "./lease", Test: "^TestALateAnswerCountsFromBeforeTheRequest$", Note: note,
		},
		{
			Name: "a renewal counts from before its request", Against: "two leaders at once, after a slow answer",
			Cuts:    []Cut{{"lease/holder.go", "	h.renewed.Store(&sent)\n	h.expiry.Reset(h.cfg.valid() - time.Since(sent))", "	sent = time.Now()\n	h.renewed.Store(&sent)\n	h.expiry.Reset(h.cfg.valid())"}},
			Package: "./lease", Test: "^TestALateRenewalCountsFromBeforeTheRequest$", Note: note,
		},
		{
			Name: "a segment rests for the seal grace before it is copied", Against: "a segment is copied twice because its producers had not heard of the seal yet",
			Cuts:    []Cut{{"offload/plan.go", "	if !e.Due(p.now, p.cfg.SealGrace.Milliseconds()) {", "	if false && !e.Due(p.now, p.cfg.SealGrace.Milliseconds()) {"}},
			Package: core, Test: "^TestWhatIsNotDueIsLeftAlone$",
			Note: "Nothing is lost without it: late messages are found before the flip and before the removal.",
		},
	}
}
