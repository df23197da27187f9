package discord

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/parley-chat/parley/platforms"
	"github.com/parley-chat/parley/platforms/pace"
)

const (
	// globalLimit is how many calls a second a bot may make; Discord allows 50 (doc topics/rate-limits).
	globalLimit = 45
	// keptBuckets is how many buckets are remembered before those that would equal new ones are forgotten.
	keptBuckets = 1000
	// unknownFor is how long a call to a bucket that Discord has not described may keep others from it.
	unknownFor = 10 * time.Second
)

// bucket is one of Discord's limits, for one resource.
type bucket struct {
	known  bool // Discord has described it
	limit  int
	left   int
	reset  time.Time // when left becomes limit again
	flying int       // calls under way
	since  time.Time // when the last call under way began
	freed  chan struct{}
}

// limiter makes calls wait until Discord will take them: per bucket, as the headers describe it, and all together. Until a
// route's bucket is known its calls go one at a time. A nil limiter lets everything through.
type limiter struct {
	mu      sync.Mutex
	all     pace.Turns
	held    time.Time         // no call before that
	hashes  map[string]string // of routes
	buckets map[string]*bucket
}

func newLimiter() *limiter {
	return &limiter{
		all:     pace.Turns{N: globalLimit, Per: time.Second},
		hashes:  map[string]string{},
		buckets: map[string]*bucket{},
	}
}

// wait returns when a call may be made. It must be followed by done. The error says that it was not made: SlowDown if ctx
// will not last so long, Unreachable if ctx has ended.
func (l *limiter) wait(ctx context.Context, r route) error {
	if l == nil {
		return nil
	}
	for {
		d, freed := l.take(time.Now(), r)
		if d <= 0 {
			return nil
		}
		if err := waitFor(ctx, d, freed); err != nil {
			return notYet(err, d)
		}
	}
}

// waitFor waits for d, or until freed is closed.
func waitFor(ctx context.Context, d time.Duration, freed <-chan struct{}) error {
	if freed == nil {
		return pace.Sleep(ctx, d)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-freed:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// take takes a turn, or says how long to wait before the next try. freed, if not nil, tells of a try before that.
func (l *limiter) take(now time.Time, r route) (d time.Duration, freed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.bucketOf(now, r)
	if b.known && !now.Before(b.reset) {
		b.left = max(b.limit-b.flying, 0)
	}
	switch {
	case b.known && b.left <= 0 && now.Before(b.reset):
		return b.reset.Sub(now), nil
	case b.known && b.left <= 0, !b.known && b.flying > 0 && now.Before(b.since.Add(unknownFor)):
		return unknownFor, b.freed
	}
	if !r.isInteraction() {
		if d := l.held.Sub(now); d > 0 {
			return d, nil
		}
		if at := l.all.Next(now); at.After(now) {
			return at.Sub(now), nil
		}
		l.all.Take(now)
	}
	b.flying++
	b.left--
	b.since = now
	return 0, nil
}

func (l *limiter) bucketOf(now time.Time, r route) *bucket {
	id := l.id(r)
	b := l.buckets[id]
	if b == nil {
		if len(l.buckets) >= keptBuckets {
			l.forgetQuiet(now)
		}
		b = &bucket{freed: make(chan struct{})}
		l.buckets[id] = b
	}
	return b
}

func (l *limiter) id(r route) string {
	if hash := l.hashes[r.Name]; hash != "" {
		return hash + " " + r.Major
	}
	return r.Name + " " + r.Major
}

// forgetQuiet drops the buckets that new ones would equal.
func (l *limiter) forgetQuiet(now time.Time) {
	for id, b := range l.buckets {
		if b.flying == 0 && !now.Before(b.reset) {
			delete(l.buckets, id)
		}
	}
}

// done notes what Discord said about a call; h is nil if it said nothing.
func (l *limiter) done(r route, status int, h http.Header) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	b := l.bucketOf(now, r)
	b.flying = max(b.flying-1, 0)
	defer func(was *bucket) {
		close(was.freed)
		was.freed = make(chan struct{})
	}(b)
	if hash := h.Get("X-RateLimit-Bucket"); hash != "" && l.hashes[r.Name] != hash {
		l.hashes[r.Name] = hash
		b = l.bucketOf(now, r)
	}
	if status == http.StatusTooManyRequests {
		l.hold(now, b, h)
		return
	}
	b.learn(now, h)
}

// hold keeps calls back that Discord has refused for their number: all of them, or those of the bucket.
func (l *limiter) hold(now time.Time, b *bucket, h http.Header) {
	until := now.Add(retryAfter(h))
	if h.Get("X-RateLimit-Global") != "" || h.Get("X-RateLimit-Scope") == "global" {
		l.held = until
		return
	}
	b.known, b.left, b.reset = true, 0, until
	b.limit = max(b.limit, 1)
}

// learn reads what Discord tells of the bucket with every answer.
func (b *bucket) learn(now time.Time, h http.Header) {
	left, err := strconv.Atoi(h.Get("X-RateLimit-Remaining"))
	if err != nil {
		return
	}
	reset := now.Add(seconds(h.Get("X-RateLimit-Reset-After")))
	const slack = 50 * time.Millisecond
	if !b.known || reset.After(b.reset.Add(slack)) {
		b.left = max(left-b.flying, 0) // those under way may not have been counted
	} else {
		b.left = min(b.left, left)
	}
	b.known, b.reset = true, reset
	if limit, err := strconv.Atoi(h.Get("X-RateLimit-Limit")); err == nil && limit > 0 {
		b.limit = limit
	}
}

// retryAfter is how long a 429 asks to wait.
func retryAfter(h http.Header) time.Duration {
	d := max(seconds(h.Get("Retry-After")), seconds(h.Get("X-RateLimit-Reset-After")))
	if d == 0 {
		return slowDownFor
	}
	return d
}

// seconds reads a number of seconds, perhaps with a fraction; 0 if it is none.
func seconds(s string) time.Duration {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || !(f > 0) {
		return 0
	}
	return time.Duration(min(f, 24*3600) * float64(time.Second))
}

func notYet(err error, d time.Duration) error {
	e := failed("wait", platforms.Unreachable, "")
	e.Cause = err
	if errors.Is(err, pace.ErrTooLong) {
		e.Failure, e.RetryAfter = platforms.SlowDown, max(d, time.Second)
	}
	return e
}

// invalidCounter counts the answers for which Discord blocks an address: 10,000 of 401, 403 and 429 in 10 minutes.
type invalidCounter struct {
	mu     sync.Mutex
	minute int64
	counts [10]int
}

const (
	invalidWarn = 1000
	invalidMost = 4000 // from here on, what is not needed is not called
)

// add counts one and returns how many there were in the last 10 minutes.
func (c *invalidCounter) add(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(now)
	c.counts[c.minute%int64(len(c.counts))]++
	return c.sum()
}

// recent is how many there were in the last 10 minutes.
func (c *invalidCounter) recent(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.move(now)
	return c.sum()
}

func (c *invalidCounter) move(now time.Time) {
	minute := now.Unix() / 60
	for c.minute < minute {
		c.minute = max(c.minute+1, minute-int64(len(c.counts)))
		c.counts[c.minute%int64(len(c.counts))] = 0
	}
}

func (c *invalidCounter) sum() int {
	n := 0
	for _, count := range c.counts {
		n += count
	}
	return n
}

// isInvalid tells whether Discord counts an answer against the address.
func isInvalid(status int, h http.Header) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return true
	case http.StatusTooManyRequests:
		return h.Get("X-RateLimit-Scope") != "shared"
	}
	return false
}
