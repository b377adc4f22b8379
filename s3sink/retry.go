package s3sink

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// request is one thing that is asked of S3, possibly several times.
type request struct {
	op   string
	step string // of an upload in parts; "" = the operation is one request
	key  string // below the root; "" = the bucket itself
	size int64  // bytes that have to move
}

// do makes attempts until one succeeds, one fails for good, or the context
// ends. Every attempt has a deadline of its own.
func (b *bucket) do(ctx context.Context, r request, attempt func(context.Context, int) error) error {
	var t tries
	for n := 1; ; n++ {
		x := &exchange{trial: t.trial}
		err := b.once(ctx, r, n, x, attempt)
		if err == nil {
			return nil
		}
		if !b.again(&t, err, x) || ctx.Err() != nil {
			return err
		}
		wait := b.backoff(n, x)
		b.opt.OnEvent(Event{Op: r.op, Key: r.key, Attempt: n, Class: err.Class, Wait: wait, Err: err})
		if ended := b.opt.Sleep(ctx, wait); ended != nil {
			err.Err = errors.Join(err.Err, ended)
			return err
		}
	}
}

// tries is how the attempts at one request have gone so far.
type tries struct {
	failed    int            // not counting those that the store had no time for
	throttled time.Time      // when it first had none; zero = never
	renewed   bool           // with other credentials
	corrected int            // how often with another clock
	trial     *time.Duration // the offset of a clock that is tried with this request alone; nil = none
}

// maxCorrections is how often a request is signed by another clock: by the
// store's, and by this host's own again if that one is refused as well; or the
// other way round.
const maxCorrections = 2

// again says whether a request is worth another attempt. A store that asks for
// fewer requests will serve this one when its turn comes, so that such attempts
// are not counted, and their time is limited instead: unless it has served
// nobody for so long, which is no better than a store that does not work.
func (b *bucket) again(t *tries, err *Error, x *exchange) bool {
	lim := b.opt.Limits
	again := err.Class.retriable()
	switch err.Class {
	case ClassThrottled:
		now := b.opt.Now()
		if t.throttled.IsZero() {
			t.throttled = now
		}
		again = now.Sub(t.throttled) < lim.Patience
		if again && !b.throttle.servesNobody(lim.Patience) {
			return true
		}
	case ClassCredentials:
		b.creds.Expire() // what is read next may be newer
		again, t.renewed = isExpired(err) && !t.renewed, true
	case ClassClockSkew:
		t.corrected++
		again = t.corrected <= maxCorrections && b.signer.correct(x)
	case ClassDenied:
		if offset, ok := x.otherClock(); ok && t.trial == nil {
			again, t.trial = true, &offset
		}
	}
	t.failed++
	return again && t.failed < lim.Attempts
}

// once makes one attempt and classifies what comes of it. The time that the
// attempt has begins when it is its turn.
func (b *bucket) once(ctx context.Context, r request, n int, x *exchange, attempt func(context.Context, int) error) (e *Error) {
	asked := b.opt.Now()
	round, ended := b.throttle.begin(ctx, r.op == "abort")
	if ended != nil {
		return b.classify(ctx, r, ended, x)
	}
	began := b.opt.Now()
	limit := b.opt.Limits.Request + time.Duration(r.size/b.opt.Limits.MinRate)*time.Second
	actx, clock, stop := withDeadline(ctx, limit)
	defer stop()
	x.clock = clock
	defer func() {
		b.throttle.end(round, e, x)
		b.opt.OnCall(callOf(r, e, began.Sub(asked), b.opt.Now().Sub(began)))
	}()
	err := attempt(withExchange(actx, x), n)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(actx), context.DeadlineExceeded) {
		err = context.DeadlineExceeded
	}
	if err != nil {
		e = b.classify(ctx, r, err, x)
	}
	return e
}

// backoff is the full-jitter wait after the n-th attempt, or what the store
// asked for if that is longer.
func (b *bucket) backoff(n int, x *exchange) time.Duration {
	lim := b.opt.Limits
	ceiling := min(lim.BackoffCap, lim.BackoffBase<<min(n-1, 20))
	return max(rand.N(ceiling+1), x.wait())
}

// sleep waits for d, or until the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// bodyError marks an error of the body that was to be sent.
type bodyError struct{ error }

func (e bodyError) Unwrap() error { return e.error }

// send makes one attempt that sends a section of a body under a watchdog.
func (b *bucket) send(ctx context.Context, s *io.SectionReader, put func(context.Context, io.Reader) error) error {
	x, _ := ctx.Value(exchangeKey{}).(*exchange) // once has put it there
	ctx, body, stop := watchUpload(ctx, s, b.opt.Limits.NoProgress, b.pace(x.clock))
	defer stop()
	err := put(ctx, body)
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), errNoProgress):
		return context.Cause(ctx)
	case body.err != nil:
		return bodyError{body.err}
	}
	return err
}
