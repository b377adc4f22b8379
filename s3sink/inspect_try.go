package s3sink

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"strings"
)

// probeSize is the size of a throw-away object, in bytes.
const probeSize = 64

// throwaway is an object with content that nobody has put before.
func throwaway(key string) (Upload, []byte) {
	body := make([]byte, probeSize)
	_, _ = rand.Read(body) // never fails
	sum := sha256.Sum256(body)
	return Upload{Key: key, Body: bytes.NewReader(body), Size: probeSize, SHA256: hex.EncodeToString(sum[:])}, body
}

func probeKey() string { return ProbeFolder + strings.ToLower(rand.Text()) }

// putting are the throw-away objects of one Try, and what may have come of
// them. It belongs to one goroutine.
type putting struct {
	store Store
	key   string          // of the first
	body  []byte          // of the first; nil until it was put
	maybe map[string]bool // keys at which something may lie now
	plain error           // why the first was put without a condition; nil = it was not
}

func newPutting(s Store) *putting {
	return &putting{store: s, key: probeKey(), maybe: map[string]bool{}}
}

// noted notes what a put at a key has said: only a plain refusal leaves nothing.
func (p *putting) noted(key string, err error) error {
	switch ClassOf(err) {
	case ClassDenied, ClassCredentials, ClassNoBucket, ClassInvalid, ClassUnsupported, ClassWrongRegion, ClassClockSkew:
	default:
		p.maybe[key] = true
	}
	return err
}

// put puts the first object: without a condition where the store knows none,
// which StepCreateOnly says.
func (p *putting) put(ctx context.Context) error {
	u, body := throwaway(p.key)
	_, err := p.store.Put(ctx, u)
	if errors.Is(err, ErrUnsupported) {
		p.plain, u.Unconditional = err, true
		_, err = p.store.Put(ctx, u)
	}
	if p.noted(p.key, err) == nil {
		p.body = body
	}
	return err
}

// allowed is what a look at the first object has said: that it is missing is
// right where it could not be put.
func (p *putting) allowed(err error) error {
	if p.body == nil && ClassOf(err) == ClassMissing {
		return nil
	}
	return err
}

func (p *putting) head(ctx context.Context) error {
	info, err := p.store.Stat(ctx, p.key)
	if err == nil && p.body != nil && info.Size != probeSize {
		err = ErrDiffers
	}
	return p.allowed(err)
}

func (p *putting) get(ctx context.Context) error {
	body, err := p.store.Open(ctx, p.key)
	if err != nil {
		return p.allowed(err)
	}
	defer body.Close()
	content, err := io.ReadAll(io.LimitReader(body, probeSize+1))
	if err == nil && p.body != nil && !bytes.Equal(content, p.body) {
		err = ErrDiffers
	}
	return err
}

func (p *putting) list(ctx context.Context) error {
	found := false
	for o, err := range p.store.List(ctx, p.key) {
		if err != nil {
			return err
		}
		found = found || o.Key == p.key
	}
	if !found && p.body != nil {
		return ErrNotListed
	}
	return nil
}

// again puts another object at the key of the first.
func (p *putting) again(ctx context.Context) error {
	switch {
	case p.body == nil:
		return errNothingThere
	case p.plain != nil:
		return p.plain
	}
	u, _ := throwaway(p.key)
	_, err := p.store.Put(ctx, u)
	return mustExist(err)
}

// mustExist turns the answer to a put of what is there already around.
func mustExist(err error) error {
	switch {
	case errors.Is(err, ErrExists):
		return nil
	case err == nil:
		return ErrReplaced
	}
	return err
}

// cleanUp removes all throw-away objects, and returns the first thing that
// went wrong with it and the keys of what may be left. It runs to its end
// whatever became of ctx.
func (p *putting) cleanUp(ctx context.Context, keys ...string) (left []string, first error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpTime)
	defer cancel()
	answers := p.store.Delete(ctx, keys)
	for i, key := range keys {
		err := answers[i]
		if err == nil && p.maybe[key] {
			err = p.gone(ctx, key)
		}
		if err != nil && p.maybe[key] {
			left = append(left, key)
		}
		if first == nil {
			first = err
		}
	}
	return left, first
}

// gone says whether a key is free. Who may not look has the store's word.
func (p *putting) gone(ctx context.Context, key string) error {
	_, err := p.store.Stat(ctx, key)
	switch {
	case err == nil:
		return ErrStillThere
	case errors.Is(err, ErrMissing), errors.Is(err, ErrUnknown):
		return nil
	}
	return err
}

// Try puts, reads and removes throw-away objects; see Inspector.
func (b *bucket) Try(ctx context.Context) Trials {
	p := newPutting(b)
	checked, parts, abandoned := p.key+"-checksum", p.key+"-parts", p.key+"-abort"
	var stuck string
	done := walk(ctx, []step{
		{StepPut, p.put},
		{StepHead, p.head},
		{StepGet, p.get},
		{StepList, p.list},
		{StepCreateOnly, p.again},
		{StepChecksum, func(ctx context.Context) error { return p.noted(checked, b.putMismatch(ctx, checked)) }},
		{StepParts, func(ctx context.Context) error { return p.noted(parts, b.tryParts(ctx, parts)) }},
		{StepPartsOnly, func(ctx context.Context) error {
			if !p.maybe[parts] {
				return errNothingThere
			}
			return mustExist(b.tryParts(ctx, parts))
		}},
		{StepAbort, func(ctx context.Context) (err error) { stuck, err = b.tryAbort(ctx, abandoned); return err }},
	})
	left, err := p.cleanUp(ctx, p.key, checked, parts)
	if stuck != "" {
		left = append(left, stuck)
	}
	return Trials{Done: append(done, Trial{StepDelete, err}), Left: left}
}

// putMismatch puts an object whose checksum belongs to another; its signature is
// right.
func (b *bucket) putMismatch(ctx context.Context, key string) error {
	u, _ := throwaway(key)
	other, _ := throwaway(key)
	_, err := b.putChecked(ctx, request{op: "put", key: key, size: u.Size}, u, other.SHA256)
	switch ClassOf(err) {
	case "":
		return ErrUnchecked
	case ClassInvalid:
		return nil
	}
	return err
}

// tryParts uploads a throw-away object in one part.
func (b *bucket) tryParts(ctx context.Context, key string) error {
	u, _ := throwaway(key)
	_, err := b.putParts(ctx, request{op: "put", key: key, size: u.Size}, u)
	return err
}

// tryAbort begins an upload and gives it up; left names it if that was refused.
func (b *bucket) tryAbort(ctx context.Context, key string) (left string, err error) {
	u, _ := throwaway(key)
	r := request{op: "put", key: key}
	id, err := b.startParts(ctx, r, u)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CleanUpTime/2)
	defer cancel()
	r.op = "abort"
	if err := b.abortOnce(ctx, r, id); err != nil && !noSuchUpload(err) {
		return key + " (unfinished upload)", err
	}
	return "", nil
}
