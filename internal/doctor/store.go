package doctor

import (
	"net"
	"strings"
	"time"

	"korvet-offload/internal/words"
	"korvet-offload/s3sink"
)

// StoreWant is what the settings and the topics want of the store.
type StoreWant struct {
	Namespace string
	// Retentions is nil where the topics are not known.
	Retentions []Retention
	Now        time.Time
	Past       Past
	Cluster    Cluster
}

// Cluster is what is known of which Redis this is. The zero Cluster is nothing.
type Cluster struct {
	Told   bool   // Redis has answered
	ID     string // "" = it has none
	Topics int    // that it remembers
}

// Past is what Redis says of objects that should be there. It is asked only where
// a folder looks as if none ever was; the zero Past knows of none.
type Past struct {
	Remote string // a segment whose entry is REMOTE; "" = none was found
	Topics int    // that were offloaded, or were to be
}

// Retention is the total retention of a topic, as the store sees it.
type Retention struct {
	Topic  string
	Prefix string        // of the keys of its objects, that of the root included
	Total  time.Duration // 0 = for ever
}

// NoStore is the finding where the settings describe no store.
func NoStore(err error) []Finding {
	return []Finding{fail("store.reach", "mend the settings of korvet.storage", "%s", err)}
}

// UnsetStore is the finding where no place is set.
func UnsetStore() []Finding {
	return []Finding{fail("store.reach", "set it to s3://bucket/prefix or file:///folder", "korvet.storage.remote-path is not set")}
}

// OfStore judges what a place says of itself.
func OfStore(f s3sink.Facts, w StoreWant) []Finding {
	if f.Folder != nil {
		return ofFolder(f, w)
	}
	b := *f.Bucket
	all := []Finding{reach(b.Reach, "s3://"+b.Name+" answers"), tls(b), storeClock(b.Skew)}
	if b.Reach != nil {
		return all
	}
	return append(all,
		region(b), owner(f.Owner, w), versioning(b), expiry(b, w), unfinished(b), archive(b), lock(b, w), encryption(b), uploads(b, w.Now))
}

// CanTry says whether it makes sense to put something there.
func CanTry(f s3sink.Facts) bool {
	if f.Folder != nil {
		return f.Folder.Reach == nil && !f.Folder.Missing
	}
	return f.Bucket.Reach == nil
}

func reach(err error, seen string) Finding {
	if err != nil {
		return failStore("store.reach", err)
	}
	return good("store.reach", "%s", seen)
}

// untold is what the store was asked for and did not tell.
func untold(id, right string, err error) Finding {
	switch s3sink.ClassOf(err) {
	case s3sink.ClassDenied:
		return skip(id, "grant "+right+" to see it", "it may not be asked")
	case s3sink.ClassUnsupported:
		return skip(id, "", "the store does not say")
	}
	return skip(id, "", "it could not be asked: %s", err)
}

func region(b s3sink.BucketFacts) Finding {
	const id = "store.region"
	if b.Located != "" && b.Located != b.Region {
		return fail(id, "set korvet.storage.s3.region to "+b.Located, "the bucket is in %s, and requests are signed for %s", b.Located, b.Region)
	}
	return good(id, "%s", b.Region)
}

func tls(b s3sink.BucketFacts) Finding {
	const id = "store.tls"
	host := b.Host
	if name, _, err := net.SplitHostPort(b.Host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	switch {
	case b.Secure:
		return good(id, "https")
	case host == "localhost" || ip != nil && ip.IsLoopback():
		return good(id, "http, and does not leave this host")
	}
	return warn(id, "begin korvet.storage.s3.endpoint with https://", "http: messages cross the network in the clear")
}

// The limits for the difference to the store's clock, which is told in whole
// seconds. S3 refuses signatures beyond the second.
const (
	skewWarn = 5 * time.Second
	skewFail = 15 * time.Minute
)

func storeClock(skew s3sink.Answer[time.Duration]) Finding {
	const id = "store.clock"
	switch d := skew.Value; {
	case skew.Err != nil:
		return skip(id, "", "the store did not tell its time")
	case d.Abs() > skewFail:
		return fail(id, "run NTP on this host, or on the store", "this host's clock is %s: signatures are refused", apart(d))
	case d.Abs() > skewWarn:
		return warn(id, "run NTP on this host, or on the store", "this host's clock is %s", apart(d))
	}
	return good(id, "this host's clock is right to %s", skewWarn)
}

func owner(of s3sink.Answer[s3sink.Marker], w StoreWant) Finding {
	const id = "store.owner"
	switch m := of.Value; {
	case s3sink.ClassOf(of.Err) == s3sink.ClassInvalid:
		return fail(id, "choose another prefix in korvet.storage.remote-path, or remove the marker if it is a mistake", "%s", of.Err)
	case of.Err != nil:
		return untold(id, "s3:GetObject", of.Err)
	case m.Namespace == "":
		return good(id, "nobody's yet: the first upload claims it for namespace %s", w.Namespace)
	case m.Namespace != w.Namespace:
		return fail(id, "give each namespace a prefix of its own in korvet.storage.remote-path", "it belongs to namespace %q, and this is namespace %q", m.Namespace, w.Namespace)
	case m.Cluster == "" || !w.Cluster.Told:
		return good(id, "namespace %s", m.Namespace)
	}
	return ownCluster(of.Value, w.Cluster)
}

// ownCluster judges a root of the right namespace whose marker names a cluster.
func ownCluster(m s3sink.Marker, c Cluster) Finding {
	const id = "store.owner"
	switch {
	case c.ID == m.Cluster:
		return good(id, "namespace %s of this redis", m.Namespace)
	case c.ID == "" && c.Topics == 0:
		return fail(id, "rebuild the manifests with korvet-offload restore --manifests, or take the root over with korvet-offload restore --claim",
			"it belongs to cluster %q; redis has no cluster id and remembers no topic: it was emptied, or it is another one", m.Cluster)
	case c.ID == "":
		return good(id, "namespace %s; redis takes the cluster id over at the next start", m.Namespace)
	}
	return fail(id, "give each Redis a prefix of its own in korvet.storage.remote-path; korvet-offload restore --claim takes over the root of a Redis that is gone",
		"it belongs to cluster %q, and this redis is cluster %q", m.Cluster, c.ID)
}

func versioning(b s3sink.BucketFacts) Finding {
	const id = "store.versioning"
	switch {
	case b.Versioning.Err != nil:
		return untold(id, "s3:GetBucketVersioning", b.Versioning.Err)
	case b.Versioning.Value == s3sink.VersioningNever:
		return good(id, "off")
	case b.Lifecycle.Err == nil && hasRule(b, func(r s3sink.LifecycleRule) bool { return r.NoncurrentDays > 0 && r.Covers(b.Prefix) }):
		return good(id, "%s, and a rule removes versions that are not current", strings.ToLower(string(b.Versioning.Value)))
	}
	return warn(id, "add a lifecycle rule for prefix "+shown(b.Prefix)+" with NoncurrentVersionExpiration, NoncurrentDays 7",
		"%s: what is deleted stays as a version, and is paid for", strings.ToLower(string(b.Versioning.Value)))
}

func hasRule(b s3sink.BucketFacts, fits func(s3sink.LifecycleRule) bool) bool {
	for _, r := range b.Lifecycle.Value {
		if fits(r) {
			return true
		}
	}
	return false
}

// shown is a prefix as a rule would have it.
func shown(prefix string) string { return "\"" + prefix + "\"" }

// rule names a rule and what it is for.
func rule(r s3sink.LifecycleRule) string {
	text := "rule \"" + r.ID + "\""
	if r.ID == "" {
		text = "a rule without a name"
	}
	return text + " for " + shown(r.Prefix)
}

const lifecycleRight = "s3:GetLifecycleConfiguration"

// expiry looks for rules that remove objects which a topic still needs.
func expiry(b s3sink.BucketFacts, w StoreWant) Finding {
	const id = "store.expiry"
	if b.Lifecycle.Err != nil {
		return untold(id, lifecycleRight, b.Lifecycle.Err)
	}
	var all []Finding
	for _, r := range b.Lifecycle.Value {
		if (r.ExpireDays > 0 || !r.ExpireDate.IsZero()) && r.Overlaps(b.Prefix) {
			all = append(all, tooSoon(r, w))
		}
	}
	if len(all) == 0 {
		return good(id, "no rule removes objects below %s", shown(b.Prefix))
	}
	return worst(all)
}

func tooSoon(r s3sink.LifecycleRule, w StoreWant) Finding {
	const id = "store.expiry"
	const do = "narrow the rule, or let it expire objects later than the topic does; the program itself removes what is past retention"
	when := "on " + r.ExpireDate.Format(time.DateOnly)
	if r.ExpireDays > 0 {
		when = "after " + words.Count(r.ExpireDays, "day")
	}
	if w.Retentions == nil {
		return warn(id, do, "%s removes objects %s, and the topics' retention is not known", rule(r), when)
	}
	for _, t := range w.Retentions {
		if !r.Overlaps(t.Prefix) || r.ExpireDays > 0 && t.Total > 0 && t.Total <= time.Duration(r.ExpireDays)*day {
			continue
		}
		return fail(id, do, "%s removes objects %s, and topic %s keeps them %s", rule(r), when, t.Topic, keeps(t.Total))
	}
	return good(id, "%s removes objects %s, which is later than any topic does", rule(r), when)
}

const day = 24 * time.Hour

func keeps(d time.Duration) string {
	switch {
	case d <= 0:
		return "for ever"
	case d%day == 0:
		return "for " + words.Count(int(d/day), "day")
	}
	return "for " + d.String()
}

func unfinished(b s3sink.BucketFacts) Finding {
	const id = "store.unfinished"
	if b.Lifecycle.Err != nil {
		return untold(id, lifecycleRight, b.Lifecycle.Err)
	}
	for _, r := range b.Lifecycle.Value {
		if r.AbortDays > 0 && r.Covers(b.Prefix) {
			return good(id, "%s clears unfinished uploads away after %s", rule(r), words.Count(r.AbortDays, "day"))
		}
	}
	return warn(id, "add a lifecycle rule for prefix "+shown(b.Prefix)+" with AbortIncompleteMultipartUpload, DaysAfterInitiation 7",
		"no rule clears unfinished uploads away: the parts of a killed upload stay, and are paid for")
}

// unreadable says whether objects of a class have to be restored before they
// can be read.
func unreadable(class string) bool { return class == "GLACIER" || class == "DEEP_ARCHIVE" }

func archive(b s3sink.BucketFacts) Finding {
	const id = "store.archive"
	if b.Lifecycle.Err != nil {
		return untold(id, lifecycleRight, b.Lifecycle.Err)
	}
	for _, r := range b.Lifecycle.Value {
		for _, t := range r.Transitions {
			if unreadable(t.Class) && r.Overlaps(b.Prefix) {
				return warn(id, "use STANDARD_IA or GLACIER_IR in the rule, or narrow it",
					"%s moves objects to %s after %s, where they can't be read until they are restored", rule(r), t.Class, words.Count(t.Days, "day"))
			}
		}
	}
	return good(id, "no rule moves objects to where they can't be read at once")
}

func lock(b s3sink.BucketFacts, w StoreWant) Finding {
	const id = "store.lock"
	l := b.Lock.Value
	switch {
	case b.Lock.Err != nil:
		return untold(id, "s3:GetBucketObjectLockConfiguration", b.Lock.Err)
	case !l.Enabled:
		return good(id, "off")
	case l.Mode == "" || l.Period == 0:
		return good(id, "on, and objects are not locked by default")
	}
	for _, t := range w.Retentions {
		if t.Total > 0 && t.Total < l.Period {
			return warn(id, "shorten the bucket's default retention, or lengthen retention.ms of the topic",
				"%s: no version can be removed for %s, and topic %s keeps objects %s", l.Mode, words.Count(int(l.Period/day), "day"), t.Topic, keeps(t.Total))
		}
	}
	return good(id, "%s for %s", l.Mode, words.Count(int(l.Period/day), "day"))
}

func encryption(b s3sink.BucketFacts) Finding {
	const id = "store.encryption"
	e := b.Encryption.Value
	switch {
	case b.Encryption.Err != nil:
		return untold(id, "s3:GetEncryptionConfiguration", b.Encryption.Err)
	case e.Algorithm == "":
		return good(id, "none is set")
	case e.KMS() && e.KeyID != "":
		return good(id, "%s with key %s", e.Algorithm, e.KeyID)
	}
	return good(id, "%s", e.Algorithm)
}

// abandoned is how old an upload is that nobody can be making any more.
const abandoned = day

func uploads(b s3sink.BucketFacts, now time.Time) Finding {
	const id = "store.uploads"
	u := b.Uploads.Value
	if b.Uploads.Err != nil {
		return untold(id, "s3:ListBucketMultipartUploads", b.Uploads.Err)
	}
	some := words.Count(u.Count, "unfinished upload")
	if u.More {
		some = "more than " + some
	}
	if age := now.Sub(u.Oldest); u.Count > 0 && !u.Oldest.IsZero() && age > abandoned {
		return warn(id, "give them up, or add a rule: see store.unfinished", "%s, the oldest %s old", some, words.Count(int(age/day), "day"))
	}
	return good(id, "%s", some)
}
