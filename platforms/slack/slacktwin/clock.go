package slacktwin

import (
	"slices"
	"sync"
	"time"
)

// Clock is a clock that is moved by hand: give its Now and After to Options.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*clockTimer
}

type clockTimer struct {
	at time.Time
	f  func()
}

// NewClock returns a clock that stands at start.
func NewClock(start time.Time) *Clock { return &Clock{now: start} }

// Now returns the time the clock stands at.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// After calls f when the clock has been moved by d. stop reports whether it prevented that.
func (c *Clock) After(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &clockTimer{at: c.now.Add(d), f: f}
	c.timers = append(c.timers, timer)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		i := slices.Index(c.timers, timer)
		if i < 0 {
			return false
		}
		c.timers = slices.Delete(c.timers, i, i+1)
		return true
	}
}

// Advance moves the clock and calls what became due, in order, before it returns.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	end := c.now.Add(d)
	c.mu.Unlock()
	for {
		timer := c.next(end)
		if timer == nil {
			return
		}
		timer.f()
	}
}

// next removes and returns the earliest timer that is due by end, and moves the clock to it; without one, to end.
func (c *Clock) next(end time.Time) *clockTimer {
	c.mu.Lock()
	defer c.mu.Unlock()
	first := -1
	for i, timer := range c.timers {
		if !timer.at.After(end) && (first < 0 || timer.at.Before(c.timers[first].at)) {
			first = i
		}
	}
	if first < 0 {
		c.now = end
		return nil
	}
	timer := c.timers[first]
	c.timers = slices.Delete(c.timers, first, first+1)
	if timer.at.After(c.now) {
		c.now = timer.at
	}
	return timer
}
