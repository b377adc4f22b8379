package s3sink

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"iter"
	"time"
)

// Store keeps objects below a root. Keys are relative to the root; those that
// are empty, longer than 1024 bytes, not UTF-8, or that hold control characters,
// backslashes or the parts "", "." and ".." are refused with ClassInvalid.
//
// Errors are *Error, except for those of a context that ended, which they
// wrap.
type Store interface {
	// Put stores an object whose key is free, and is done when it is durable.
	// ErrExists means that something has that key and nothing was changed; that
	// may be this very object, put by an attempt whose answer was lost, so the
	// caller compares by Stat before it calls it somebody else's. After any
	// other error, too, the object may be there, or appear later.
	//
	// ErrUnsupported means that the store has no conditional puts; nothing was
	// stored. With Upload.Unconditional the condition is left away, and Put
	// looks whether the key is free instead, which two writers can do at the
	// same time: the caller must have made the key unique.
	Put(ctx context.Context, u Upload) (Info, error)
	// Stat describes an object. ErrMissing means that the root is there and the
	// object is not; ErrUnknown that the store does not let us look.
	Stat(ctx context.Context, key string) (Info, error)
	// Open reads a whole object. The context governs the reading as well.
	Open(ctx context.Context, key string) (io.ReadCloser, error)
	// OpenRange reads n bytes from offset on, both 0 or more; fewer if the object
	// ends before.
	OpenRange(ctx context.Context, key string, offset, n int64) (io.ReadCloser, error)
	// List gives the objects whose keys begin with prefix (all, if it is empty)
	// in the order of the keys' bytes, with Size, ETag and ModTime. The owner
	// marker is not among them. It ends at the first error.
	List(ctx context.Context, prefix string) iter.Seq2[Info, error]
	// Delete removes objects, and returns one answer per key in the same order:
	// nil means that there is no such object any more, or never was. One key's
	// error says nothing of the others, and the object may be gone all the same.
	// ErrLocked means that the store keeps it for a lock, a retention period or a
	// legal hold. When the context ends, the keys that are not known to be gone
	// have its error; when the store fails as such, those that it was not asked
	// for have that error.
	//
	// Owner markers are refused with ClassInvalid.
	Delete(ctx context.Context, keys []string) []error
	// Check tries, without writing, what a worker will need, and says what is
	// wrong and what to do about it; nil if nothing is.
	Check(ctx context.Context) []Problem
	// CheckOwner reads the owner marker and refuses a root that belongs to
	// another namespace or cluster. It writes nothing, and says nothing against a root
	// without a marker, or one that it may not look into.
	CheckOwner(ctx context.Context) error
	// CreateOnly says whether Put without Unconditional really refuses a key
	// that is taken. It claims the root with the owner marker if that is not
	// there, and refuses a root that belongs to another namespace or cluster. It
	// asks the store once; call it before the first Put, so that an idle process writes
	// nothing.
	CreateOnly(ctx context.Context) (bool, error)
	// Close closes what is kept open between calls. It may be called when no
	// other call is running, and once no other call will follow.
	Close()
}

// Upload is an object on its way to a store. Body is read several times, and
// by several goroutines at once.
type Upload struct {
	Key    string
	Body   io.ReaderAt
	Size   int64             // bytes of Body
	SHA256 string            // of Body, 64 lower-case hex digits
	Meta   map[string]string // names of a-z, 0-9 and '-'; 2 KB in all; not kept by file://

	// Unconditional says that nobody else can take Key, so that a store without
	// conditional puts may be used.
	Unconditional bool
}

// Info is what a store says of an object.
type Info struct {
	Key     string
	Size    int64             // bytes
	ETag    string            // without quotes; "" for files
	SHA256  string            // in hex; "" where the store has none, and from List
	Meta    map[string]string // lower-case names; nil for files, and from List
	ModTime time.Time         // by the store's clock
	// Change is another one after whatever has been done to a file, its ModTime put
	// back included; only from List, on Linux; "" of objects.
	Change string
}

// Problem is something that Check found.
type Problem struct {
	Tried   string // what was tried
	Err     error  // what came of it, and what to do
	Warning bool   // work can go on
}

// Owner is whom a root belongs to.
type Owner struct {
	Namespace string  // required by CheckOwner and CreateOnly
	Cluster   Cluster // nil = whichever
}

// Options of a store that are not settings. Zero values mean the defaults.
type Options struct {
	Owner     Owner
	UserAgent string                                     // name/version, added to the library's
	OnEvent   func(Event)                                // called by several goroutines at once; calls no method of the store
	OnCall    func(Call)                                 // of every attempt at S3; as OnEvent
	Pace      func(ctx context.Context, n int) error     // called when n bytes of an upload are to go out, by several goroutines at once; they go when it returns nil
	Limits    Limits                                     //
	Now       func() time.Time                           // time.Now
	Sleep     func(context.Context, time.Duration) error // waits, or returns the context's error
}

// Limits of time and of attempts. The time that Options.Pace takes does not
// count.
type Limits struct {
	Attempts    int           // of one request; 5
	BackoffBase time.Duration // the first wait is up to this, each further one up to twice as much; 200ms
	BackoffCap  time.Duration // longest wait that we choose; 10s
	NoProgress  time.Duration // an upload or download that moves no byte for so long is cut off; 30s
	Request     time.Duration // of an attempt, not counting the body; 60s
	MinRate     int64         // bytes per second of a body below which an attempt is given up; 256 KiB
	Patience    time.Duration // for so long a request is repeated that the store has no time for, however often that is; 30s
}

// retryAfterCap is the longest wait that a store can ask for.
const retryAfterCap = 30 * time.Second

// Event tells of an attempt that failed and is repeated after Wait; with Op
// "abort", of parts of a failed upload that could not be removed; or, with Op
// "limit" and without an error, that the store has asked for fewer requests, or
// stands more again, and gets Limit at once from now on.
type Event struct {
	Op      string
	Key     string
	Attempt int // that failed; counts from 1
	Class   Class
	Wait    time.Duration
	Limit   int // only with Op "limit"; 0 = as many as there are
	Err     error
}

// Open makes the store that cfg describes. It talks to nobody: what is wrong
// with the network, the bucket or the credentials shows at the first use.
func Open(cfg Config, opt Options) (Store, error) {
	if errs := cfg.Validate(); len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	t, err := parseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	opt = opt.withDefaults()
	if t.dir != "" {
		return newFiles(t.dir, opt), nil
	}
	return newBucket(cfg.withDefaults(), t, opt)
}

func (o Options) withDefaults() Options {
	o.Limits = o.Limits.withDefaults()
	if o.OnEvent == nil {
		o.OnEvent = func(Event) {}
	}
	if o.OnCall == nil {
		o.OnCall = func(Call) {}
	}
	if o.Pace == nil {
		o.Pace = func(context.Context, int) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return o
}

func (l Limits) withDefaults() Limits {
	set := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	set(&l.BackoffBase, 200*time.Millisecond)
	set(&l.BackoffCap, 10*time.Second)
	set(&l.NoProgress, 30*time.Second)
	set(&l.Request, time.Minute)
	set(&l.Patience, 30*time.Second)
	if l.Attempts <= 0 {
		l.Attempts = 5
	}
	if l.MinRate <= 0 {
		l.MinRate = 256 << 10
	}
	return l
}

// check refuses uploads that no store should be asked for.
func (u Upload) check() error {
	if err := checkKey(u.Key); err != nil {
		return err
	}
	switch sum, err := hex.DecodeString(u.SHA256); {
	case err != nil || len(sum) != 32 || hex.EncodeToString(sum) != u.SHA256:
		return errors.New("SHA-256 is not 64 lower-case hex digits")
	case u.Size < 0:
		return errors.New("size is negative")
	case u.Body == nil && u.Size > 0:
		return errors.New("there is no body")
	}
	return checkMeta(u.Meta)
}

// section reads n bytes of the body from offset on.
func (u Upload) section(offset, n int64) *io.SectionReader {
	return io.NewSectionReader(u.Body, offset, n)
}
