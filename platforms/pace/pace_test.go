package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestBackoffDoublesUpToItsCapAndNeverFallsShort(t *testing.T) {
	for attempt := range 100 {
		want := min(mostWait, firstWait<<min(attempt, 10))
		if got := Backoff(attempt, 0); got < want/2 || got > want {
			t.Errorf("attempt %d: got %v, want %v to %v", attempt, got, want/2, want)
		}
		if got := Backoff(attempt, time.Minute); got != time.Minute {
			t.Errorf("attempt %d: got %v, want a minute at least", attempt, got)
		}
	}
}

func TestSleepEndsWithItsContextAndDoesNotBeginInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := Sleep(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		if err := Sleep(ctx, time.Minute); !errors.Is(err, ErrTooLong) || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want %v at once", err, time.Since(began), ErrTooLong)
		}
		ended, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		if err := Sleep(ended, time.Minute); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := Sleep(ended, 0); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: got %v", err)
		}
	})
}

func TestTurnsAreAtMostSoManyInAnyStretch(t *testing.T) {
	turns := Turns{N: 3, Per: time.Second}
	now := time.Unix(0, 0)
	var taken []time.Time
	for range 10 {
		at := turns.Next(now)
		turns.Take(at)
		taken = append(taken, at)
	}
	for i, at := range taken {
		if want := now.Add(time.Duration(i/3) * time.Second); !at.Equal(want) {
			t.Errorf("turn %d: got %v, want %v", i, at, want)
		}
	}
}
