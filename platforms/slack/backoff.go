package slack

import (
	"errors"
	"math/rand/v2"
	"time"

	"github.com/parley-chat/parley/platforms"
)

const (
	firstWait = 500 * time.Millisecond
	mostWait  = 30 * time.Second
)

// backoff is how long to wait before the next attempt: doubling, capped, jittered by half, never below atLeast.
func backoff(attempt int, atLeast time.Duration) time.Duration {
	d := mostWait
	if attempt < 10 {
		d = min(mostWait, firstWait<<attempt)
	}
	d = d/2 + rand.N(d/2)
	return max(d, atLeast)
}

func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*platforms.Error](err); ok {
		return e.RetryAfter
	}
	return 0
}
