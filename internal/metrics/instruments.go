package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// instruments are the metrics that are counted as things happen. All else is
// made of the state when it is asked for.
type instruments struct {
	archiveSeconds, readSeconds, writeSeconds   observers
	passSeconds, passPhaseSeconds, s3Seconds    observers
	archiveSegments, archiveBytes               prometheus.Counter
	archiveMessages, sourceBytes                prometheus.Counter
	savedBytes, uploadBytes, damagedObjects     prometheus.Counter
	verifyObjects, verifyBytes                  prometheus.Counter
	archiveFailures, workerFailures             counters
	outcomesTotal, lateAppends, guardRejections counters
	leaderChanges, s3Calls, s3Retries           counters
	throttleSeconds                             counters
	rateWaits                                   prometheus.Counter // of throttleSeconds: it is added to with every piece of a body
}

func newInstruments(reg prometheus.Registerer) instruments {
	m := maker{reg}
	throttled := m.counters(throttleSeconds)
	return instruments{
		archiveSeconds: m.observers(archiveSeconds), readSeconds: m.observers(readSeconds), writeSeconds: m.observers(writeSeconds),
		passSeconds: m.observers(passSeconds), passPhaseSeconds: m.observers(passPhaseSeconds), s3Seconds: m.observers(s3Seconds),
		archiveSegments: m.counter(archiveSegments), archiveBytes: m.counter(archiveBytes),
		archiveMessages: m.counter(archiveMessages), sourceBytes: m.counter(sourceBytes),
		savedBytes: m.counter(savedBytes), uploadBytes: m.counter(uploadBytes), damagedObjects: m.counter(damagedObjects),
		archiveFailures: m.counters(archiveFailures), workerFailures: m.counters(workerFailures),
		outcomesTotal: m.counters(outcomesTotal), lateAppends: m.counters(lateAppends), guardRejections: m.counters(guardRejections),
		leaderChanges: m.counters(leaderChanges), s3Calls: m.counters(s3Calls), s3Retries: m.counters(s3Retries),
		verifyObjects: m.counter(verifyObjects), verifyBytes: m.counter(verifyBytes),
		throttleSeconds: throttled, rateWaits: throttled.of(causeRate),
	}
}

// counted says whether a metric is an instrument.
func counted(m metric) bool { return m.kind != gauge && m.scope == always }

// maker makes instruments of the rows of the table.
type maker struct{ reg prometheus.Registerer }

func (m maker) counter(name string) prometheus.Counter { return m.counters(name).of() }

func (m maker) counters(name string) counters {
	r := row(name)
	c := counters{r.labels, prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: r.help}, names(r.labels))}
	m.reg.MustRegister(c.vec)
	if len(r.labels) == 1 {
		for _, v := range r.labels[0].values {
			c.of(v)
		}
	}
	return c
}

func (m maker) observers(name string) observers {
	r := row(name)
	o := observers{r.labels, prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: r.help, Buckets: r.steps}, names(r.labels))}
	m.reg.MustRegister(o.vec)
	if all := combinations(r.labels); len(all) <= fewSeries {
		for _, values := range all {
			o.of(values...)
		}
	}
	return o
}

// fewSeries is up to how many series of a histogram are there from the start.
const fewSeries = 4

// combinations lists all values of several labels together.
func combinations(labels []label) [][]string {
	all := [][]string{nil}
	for _, l := range labels {
		var longer [][]string
		for _, before := range all {
			for _, v := range l.values {
				longer = append(longer, append(slices.Clone(before), v))
			}
		}
		all = longer
	}
	return all
}

func names(labels []label) []string {
	list := make([]string, len(labels))
	for i, l := range labels {
		list[i] = l.name
	}
	return list
}

// counters is a counter for each combination of values.
type counters struct {
	labels []label
	vec    *prometheus.CounterVec
}

func (c counters) of(values ...string) prometheus.Counter {
	return c.vec.WithLabelValues(keepClosed(c.labels, values)...)
}

// observers is a histogram for each combination of values.
type observers struct {
	labels []label
	vec    *prometheus.HistogramVec
}

func (o observers) of(values ...string) prometheus.Observer {
	return o.vec.WithLabelValues(keepClosed(o.labels, values)...)
}

// keepClosed replaces values that are not listed, which a later list may bring:
// a series too many does harm, a vague one does not.
func keepClosed(labels []label, values []string) []string {
	for i, l := range labels {
		if !l.admits(values[i]) {
			values[i] = other
		}
	}
	return values
}
