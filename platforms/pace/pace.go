// Package pace knows how to wait: between attempts that failed, and before a call that would exceed a limit. It knows
// neither calls nor platforms. All waits end with a context.
package pace

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
)

// Backoff is how long to wait before the next attempt, the first being 0: doubling from half a second, at most 30 s,
// jittered by half, never below atLeast.
func Backoff(attempt int, atLeast time.Duration) time.Duration {
	d := mostWait
	if attempt < 10 {
		d = min(mostWait, firstWait<<max(attempt, 0))
	}
	d = d/2 + rand.N(d/2)
	return max(d, atLeast)
}

// ErrTooLong says that a wait would last longer than its context.
var ErrTooLong = errors.New("the wait is longer than there is time")

// Sleep waits for d. It fails at once with ErrTooLong if ctx will end before, and with ctx's error when ctx ends.
func Sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return ErrTooLong
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Turns allows N calls in any stretch of time Per. It is not for concurrent use; the zero value of the rest is ready.
type Turns struct {
	N   int
	Per time.Duration

	taken []time.Time // when the last calls have their turn, at most N, in order
}

// Next is when another call may be made, now at the earliest.
func (t *Turns) Next(now time.Time) time.Time {
	if len(t.taken) < t.N {
		return now
	}
	if at := t.taken[len(t.taken)-t.N].Add(t.Per); at.After(now) {
		return at
	}
	return now
}

// Take notes that a call has its turn at that time, which is not before any other's.
func (t *Turns) Take(at time.Time) {
	if len(t.taken) == t.N {
		t.taken = append(t.taken[:0], t.taken[1:]...)
	}
	t.taken = append(t.taken, at)
}
