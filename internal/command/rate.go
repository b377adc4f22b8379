package command

import (
	"context"
	"time"

	bucket "golang.org/x/time/rate"
)

// uploadRate lets so many bytes per second go to the store, of all uploads
// together. It can be changed at any time. Safe for concurrent use.
type uploadRate struct {
	limiter *bucket.Limiter
	moves   func()              // told with each piece that may go
	waited  func(time.Duration) // told how long it had to wait
}

// The pieces in which bytes wait for their turn: an eighth of a second's worth,
// so that many uploads get on by turns and a new limit is heard of soon, and no
// more than largestPiece bytes.
const (
	piecesPerSecond = 8
	largestPiece    = 64 << 10
	// burstsPerSecond bounds what may go at once after a pause: less would be
	// lost to the system's timers when the limit is high.
	burstsPerSecond = 20
)

// newUploadRate makes an uploadRate; 0 = no limit.
func newUploadRate(bytesPerSecond int64, moves func()) *uploadRate {
	u := &uploadRate{limiter: bucket.NewLimiter(bucket.Inf, largestPiece), moves: moves, waited: func(time.Duration) {}}
	u.set(bytesPerSecond)
	return u
}

// set changes the limit; 0 = none. What waits already, waits for no more than
// the piece that it is at.
func (u *uploadRate) set(bytesPerSecond int64) {
	if bytesPerSecond == 0 {
		u.limiter.SetLimit(bucket.Inf)
		return
	}
	u.limiter.SetBurst(int(max(largestPiece, bytesPerSecond/burstsPerSecond)))
	u.limiter.SetLimit(bucket.Limit(bytesPerSecond))
}

// wait returns when n bytes may go, or when ctx has ended, with its error.
func (u *uploadRate) wait(ctx context.Context, n int) error {
	start := time.Now()
	defer func() { u.waited(time.Since(start)) }()
	for n > 0 {
		piece := u.piece(n)
		if err := u.limiter.WaitN(ctx, piece); err != nil {
			return err
		}
		u.moves()
		n -= piece
	}
	return nil
}

// telling has somebody told how long uploads wait. No upload is under way.
func (u *uploadRate) telling(waited func(time.Duration)) { u.waited = waited }

// piece is how many of n bytes wait together.
func (u *uploadRate) piece(n int) int {
	eighth := float64(u.limiter.Limit()) / piecesPerSecond
	return min(n, largestPiece, max(1, int(min(eighth, largestPiece))))
}
