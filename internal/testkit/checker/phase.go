package checker

// phase is what of an entry decides which changes may come.
type phase struct {
	state, tier, local string
	withTopic          string
	aged               bool
}

func phaseOf(e *entry) phase {
	p := phase{e.state, e.tier, e.local, e.withTopic, e.aged}
	switch {
	case p.tier == tierLocal:
		p.local = ""
	case p.local == "":
		p.local = copyPresent
	}
	if p.state != stateDeleting { // there these words say nothing
		p.withTopic, p.aged = "", false
	}
	return p
}

// step is a phase after a change, and by how much copy has grown.
type step struct {
	phase
	copies int64
}

// next are the changes that the contract allows.
func (p phase) next() (all []step) {
	to := func(change func(*phase)) {
		n := p
		change(&n)
		all = append(all, step{n, 0})
	}
	again := step{phase{state: stateSealed, tier: tierLocal}, 1}
	local := func(word string) func(*phase) { return func(n *phase) { n.local = word } }
	switch {
	case p.state == stateDeleting:
		return p.nextHidden()
	case p.state == stateOpen:
		to(func(*phase) {})                          // adopt, or mend what it says of its stream
		to(func(n *phase) { n.state = stateSealed }) // roll
	case p.tier == tierLocal:
		all = append(all, again)                                         // next copy
		to(func(n *phase) { n.tier, n.local = tierRemote, copyPresent }) // flip
		to(func(n *phase) { n.state = stateDeleting })                   // hide what was never copied
		to(func(n *phase) { n.state, n.aged = stateDeleting, true })
	case p.local == copyGone:
		to(func(n *phase) { n.state = stateDeleting }) // hide
		to(func(n *phase) { n.state, n.aged = stateDeleting, true })
	default:
		to(local(copyDropping))
		to(local(copyGone))
		all = append(all, again) // copy again
	}
	to(func(n *phase) { n.state, n.withTopic = stateDeleting, p.state }) // with its topic
	return all
}

// nextHidden are the changes of an entry that is DELETING.
func (p phase) nextHidden() (all []step) {
	bare := p
	bare.withTopic, bare.aged = "", false
	all = append(all, step{p, 0}, step{bare, 0}) // hidden anew; not to be brought back any more
	if p.aged || p.withTopic != "" {
		back := bare
		if back.state = p.withTopic; back.state == "" {
			back.state = stateSealed
		}
		all = append(all, step{back, 0})
	}
	if p.tier == tierLocal && p.withTopic != stateOpen { // entries came
		all = append(all, step{phase{state: stateSealed, tier: tierLocal}, 0})
	}
	return all
}

// mostSteps is how many changes are followed one by one; with more, anything
// that can be reached at all can be reached.
const mostSteps = 12

// reaches says whether so many changes can lead from one phase to another with
// copy growing by so much.
func reaches(from, to phase, copies, steps int64) bool {
	now := map[step]bool{{from, 0}: true}
	for range min(steps, mostSteps) {
		then := map[step]bool{}
		for s := range now {
			for _, n := range s.next() {
				if n.copies += s.copies; n.copies <= copies {
					then[n] = true
				}
			}
		}
		now = then
	}
	if steps > mostSteps {
		for s := range now {
			if s.phase == to {
				return true
			}
		}
	}
	return now[step{to, copies}]
}
