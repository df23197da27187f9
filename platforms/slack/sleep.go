package slack

import (
	"context"
	"errors"
	"time"
)

var errTooLong = errors.New("the wait is longer than there is time")

// sleep waits for d. It fails at once with errTooLong if ctx will end before, and with ctx's error when ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < d {
		return errTooLong
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
