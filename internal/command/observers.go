package command

import "korvet-offload/offload"

// observers are several observers of a worker, told one after another.
type observers []offload.Observer

// Planned implements offload.Observer.
func (o observers) Planned(p offload.Plan) {
	for _, each := range o {
		each.Planned(p)
	}
}

// Advanced implements offload.Observer.
func (o observers) Advanced(entries, bytes int) {
	for _, each := range o {
		each.Advanced(entries, bytes)
	}
}

// Finished implements offload.Observer.
func (o observers) Finished(out offload.Outcome) {
	for _, each := range o {
		each.Finished(out)
	}
}

// Failed implements offload.Observer.
func (o observers) Failed(p offload.Problem) {
	for _, each := range o {
		each.Failed(p)
	}
}

// Scanned implements offload.ScanObserver.
func (o observers) Scanned(s *offload.Scan) {
	for _, each := range o {
		if looks, ok := each.(offload.ScanObserver); ok {
			looks.Scanned(s)
		}
	}
}

// loopObservers are several observers of a loop, told one after another.
type loopObservers []offload.LoopObserver

// Leads implements offload.LoopObserver.
func (o loopObservers) Leads() {
	for _, each := range o {
		each.Leads()
	}
}

// Follows implements offload.LoopObserver.
func (o loopObservers) Follows() {
	for _, each := range o {
		each.Follows()
	}
}

// Lost implements offload.LoopObserver.
func (o loopObservers) Lost(cause error) {
	for _, each := range o {
		each.Lost(cause)
	}
}

// Passed implements offload.LoopObserver.
func (o loopObservers) Passed(r offload.Report, err error) {
	for _, each := range o {
		each.Passed(r, err)
	}
}

// Failed implements offload.LoopObserver.
func (o loopObservers) Failed(err error) {
	for _, each := range o {
		each.Failed(err)
	}
}
