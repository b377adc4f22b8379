package s3sink

import (
	"context"
	"errors"
	"time"
)

// Inspector looks at a place more closely than the work there needs: it reads
// what a store says of itself, and tries out on throw-away objects what a
// worker will do. Its methods may be called by several goroutines at once.
type Inspector interface {
	// Inspect reads what the place says of itself, and writes nothing. Its
	// questions are asked at once, and none waits for another; one that got no
	// answer says why.
	Inspect(ctx context.Context) Facts
	// Try puts, reads and removes throw-away objects below ProbeFolder. It ends
	// early when ctx ends, and takes up to CleanUpTime longer to remove what it
	// has put: what it could not remove is in Trials.Left.
	Try(ctx context.Context) Trials
	// Close closes what is kept open. It may be called when no other call is
	// running, and once no other call will follow.
	Close()
}

// ProbeFolder is what the keys of throw-away objects begin with.
const ProbeFolder = "_korvet_offload_doctor/"

// CleanUpTime is how long an Inspector may take to remove its throw-away
// objects, whatever became of the caller's context.
const CleanUpTime = 10 * time.Second

// Answer is what came of a question. With an Err the Value means nothing.
type Answer[T any] struct {
	Value T
	Err   error
}

// Facts is what a place says of itself. Exactly one of Bucket and Folder is set.
type Facts struct {
	Bucket *BucketFacts
	Folder *FolderFacts
	Owner  Answer[Marker] // what the owner marker says
}

// BucketFacts is what an S3 bucket says of itself. What is not set there has
// the zero value and no error; ClassUnsupported means that the store does not
// know the question, ClassDenied that these credentials may not ask it.
type BucketFacts struct {
	Name    string
	Prefix  string // of all keys, with a slash at its end; "" = none
	Secure  bool   // over TLS
	Host    string // of Config.Endpoint; "" = AWS
	Region  string // that requests are signed for
	Storage string // Config.StorageClass

	Reach      error                 // why the bucket can't be used at all
	Located    string                // the region that the store names; "" = it names none
	Skew       Answer[time.Duration] // this host's clock minus the store's, to a second
	Versioning Answer[Versioning]
	Lifecycle  Answer[[]LifecycleRule]
	Lock       Answer[Lock]
	Encryption Answer[Encryption]
	Uploads    Answer[Uploads]
}

// Versioning of a bucket.
type Versioning string

// The states of versioning.
const (
	VersioningNever     Versioning = ""
	VersioningEnabled   Versioning = "Enabled"
	VersioningSuspended Versioning = "Suspended"
)

// LifecycleRule is what matters of a rule of a bucket that is in force.
type LifecycleRule struct {
	ID     string
	Prefix string // of the keys that it is for; "" = all
	Narrow bool   // it is for some of those keys only, by tag or by size

	ExpireDays     int       // current objects go after so many days; 0 = they do not
	ExpireDate     time.Time // or at this time; zero = they do not
	NoncurrentDays int       // versions that are not current go after so many days; 0 = they do not
	AbortDays      int       // unfinished uploads go after so many days; 0 = they do not
	Transitions    []Transition
}

// Transition moves objects to another storage class.
type Transition struct {
	Class string
	Days  int
}

// Overlaps says whether a rule is for any key that begins with prefix.
func (r LifecycleRule) Overlaps(prefix string) bool {
	n := min(len(r.Prefix), len(prefix))
	return r.Prefix[:n] == prefix[:n]
}

// Covers says whether a rule is for every key that begins with prefix.
func (r LifecycleRule) Covers(prefix string) bool {
	return !r.Narrow && len(r.Prefix) <= len(prefix) && r.Overlaps(prefix)
}

// Lock is a bucket's object lock.
type Lock struct {
	Enabled bool
	Mode    string        // GOVERNANCE or COMPLIANCE; "" = objects are not locked by default
	Period  time.Duration // for which each new object is
}

// Encryption is a bucket's default encryption.
type Encryption struct {
	Algorithm string // AES256, aws:kms or aws:kms:dsse; "" = none is set
	KeyID     string // of a KMS key; "" = the default one
}

// KMS says whether a key of a key management service is in use.
func (e Encryption) KMS() bool { return len(e.Algorithm) >= 7 && e.Algorithm[:7] == "aws:kms" }

// Uploads are the unfinished multipart uploads below the root.
type Uploads struct {
	Count  int       // those that the first answer holds
	More   bool      // there are more
	Oldest time.Time // when the oldest of them was begun; zero = none
}

// FolderFacts is what is known of a folder and its file system.
type FolderFacts struct {
	Path     string
	Reach    error  // why it can't be used at all
	Missing  bool   // it is not there yet, and can be made
	Mount    bool   // it is the root of a file system
	Type     string // of the file system: ext4, tmpfs, nfs ...; a number in hex where its name is not known, "" = can't tell
	ReadOnly bool   // it is mounted read-only
	Space    Answer[Space]
}

// Space is the room on a file system, in bytes and files. A file system that
// counts no files has Files 0.
type Space struct {
	Free, Total          uint64
	FreeFiles, FileLimit uint64
}

// Step is one thing that Try tries.
type Step string

// The steps, in the order in which they are tried. A folder has no parts, and a
// bucket neither links nor folders.
const (
	StepPut        Step = "put"               // a small object
	StepHead       Step = "head"              // look at it
	StepGet        Step = "get"               // read it, and compare
	StepList       Step = "list"              // find it in a listing
	StepCreateOnly Step = "create-only"       // put it again: must be refused
	StepChecksum   Step = "checksum"          // put a body that is not what its checksum says: must be refused
	StepParts      Step = "parts"             // an upload in parts
	StepPartsOnly  Step = "parts-create-only" // again, to the same key: must be refused
	StepAbort      Step = "abort"             // begin an upload and give it up
	StepLink       Step = "link"              // hard links, which fail if the name is taken
	StepUnnamed    Step = "unnamed"           // files without a name
	StepSyncFolder Step = "sync-folder"       // make a folder durable
	StepDelete     Step = "delete"            // remove what was put, and see that it is gone
)

// Steps lists all steps in the order in which they are tried.
func Steps() []Step {
	return []Step{StepPut, StepHead, StepGet, StepList, StepCreateOnly, StepChecksum, StepParts, StepPartsOnly, StepAbort, StepLink, StepUnnamed, StepSyncFolder, StepDelete}
}

// Trial is what came of a step: nil means that it went as it must.
type Trial struct {
	Step Step
	Err  error
}

// IsUntried says whether a step was not done at all: another that it needs had
// failed, it would have to make the folder, or the caller's context ended.
func (t Trial) IsUntried() bool {
	for _, why := range []error{errNothingThere, errNoTime, ErrNotYet, context.Canceled} {
		if errors.Is(t.Err, why) {
			return true
		}
	}
	return false
}

var (
	errNothingThere = errors.New("it needs an object, and none could be put")
	errNoTime       = errors.New("there was no time left for it")
)

// Trials is what came of all steps.
type Trials struct {
	Done []Trial
	Left []string // keys, below the root, of what may not be removed
}

// What a Trial may have found beside the errors of a Store.
var (
	// ErrReplaced means that the store does what a condition forbids.
	ErrReplaced = errors.New("the store replaced the object in spite of the condition")
	// ErrUnchecked means that the store does not look at checksums.
	ErrUnchecked = errors.New("the store took a body that is not what its checksum says")
	// ErrDiffers means that what was read is not what was put.
	ErrDiffers = errors.New("what was read is not what was put")
	// ErrNotListed means that a listing leaves out what is there.
	ErrNotListed = errors.New("the listing does not show the object")
	// ErrNotYet means that nothing could be tried, because the folder would
	// have to be made for it.
	ErrNotYet = errors.New("the folder is not there yet; the first put makes it")
	// ErrStillThere means that an object is there after it was deleted.
	ErrStillThere = errors.New("the object is still there after it was deleted")
)

// inspectLimits keep a look short: a store that is slow is a finding.
func inspectLimits() Limits {
	return Limits{Attempts: 2, BackoffBase: 100 * time.Millisecond, BackoffCap: time.Second,
		NoProgress: 10 * time.Second, Request: 10 * time.Second, Patience: 5 * time.Second}
}

// OpenInspector makes the inspector of the place that cfg describes. Like Open
// it talks to nobody. Limits that are not set are shorter than a Store's.
func OpenInspector(cfg Config, opt Options) (Inspector, error) {
	if opt.Limits == (Limits{}) {
		opt.Limits = inspectLimits()
	}
	s, err := Open(cfg, opt)
	if err != nil {
		return nil, err
	}
	return s.(Inspector), nil
}

// stepTime bounds one step of Try.
const stepTime = 15 * time.Second

// step is one step and how it is done.
type step struct {
	name Step
	do   func(context.Context) error
}

// walk does the steps one after the other. Each has a deadline of its own, and
// none depends on another's success.
func walk(ctx context.Context, steps []step) []Trial {
	done := make([]Trial, 0, len(steps))
	for _, s := range steps {
		err := errNoTime
		if ctx.Err() == nil {
			err = limited(ctx, stepTime, s.do)
		}
		done = append(done, Trial{s.name, err})
	}
	return done
}

func limited(ctx context.Context, d time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return do(ctx)
}

// inspectOwner reads whom a root belongs to.
func inspectOwner(ctx context.Context, s Store) Answer[Marker] {
	m, err := ReadMarker(ctx, s)
	return Answer[Marker]{m, err}
}
