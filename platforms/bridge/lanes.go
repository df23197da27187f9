package bridge

import (
	"context"
	"errors"
	"sync"
	"time"
)

// lanes runs one worker per key that has work, and none for the others. step does one piece of work and reports whether
// there may be more; after an error it is called again, later each time.
type lanes[K comparable] struct {
	step func(ctx context.Context, k K) (more bool, err error)
	busy *busy

	mu      sync.Mutex
	workers map[K]*worker
	running sync.WaitGroup
	closed  bool
}

type worker struct {
	again bool // woken while it was at work
}

// maxPause is the longest wait between two tries of the same piece of work.
const maxPause = 30 * time.Second

// wake sees to it that the key's work is looked at, once after this call at least.
func (l *lanes[K]) wake(ctx context.Context, k K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if w := l.workers[k]; w != nil {
		w.again = true
		return
	}
	if l.workers == nil {
		l.workers = make(map[K]*worker)
	}
	w := &worker{}
	l.workers[k] = w
	l.busy.add()
	l.running.Go(func() {
		defer l.busy.done()
		l.work(ctx, k, w)
	})
}

func (l *lanes[K]) work(ctx context.Context, k K, w *worker) {
	var pause time.Duration
	for ctx.Err() == nil && !l.isClosed() {
		more, err := l.step(ctx, k)
		if err != nil {
			pause = later(pause, err)
			rest(ctx, pause)
			continue
		}
		pause = 0
		if !more && l.leave(k, w) {
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.workers, k)
}

// leave ends the worker unless it was woken meanwhile.
func (l *lanes[K]) leave(k K, w *worker) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.again {
		w.again = false
		return false
	}
	delete(l.workers, k)
	return true
}

// idle reports whether nothing is being done for the key.
func (l *lanes[K]) idle(k K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.workers[k] == nil
}

func (l *lanes[K]) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// close lets every worker end after the piece of work it has in hand, and no new one begin.
func (l *lanes[K]) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
}

func (l *lanes[K]) wait() { l.running.Wait() }

// delayed is an error that says how long to wait.
type delayed struct {
	error
	after time.Duration
}

func (d delayed) Unwrap() error { return d.error }

// later is the next pause: what the error asks for, else twice the last.
func later(last time.Duration, err error) time.Duration {
	if d, ok := errors.AsType[delayed](err); ok && d.after > 0 {
		return d.after
	}
	return min(max(2*last, 100*time.Millisecond), maxPause)
}

// rest waits, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// busy counts workers of any lanes. A worker that gives work to another does so before it ends, so none at all means that
// nothing is left to do.
type busy struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when n falls to 0; nil until somebody waits
}

func (b *busy) add() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n++
}

func (b *busy) done() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n--; b.n == 0 && b.none != nil {
		close(b.none)
		b.none = nil
	}
}

// wait returns when there is no worker, or when ctx ends.
func (b *busy) wait(ctx context.Context) {
	b.mu.Lock()
	if b.n == 0 {
		b.mu.Unlock()
		return
	}
	if b.none == nil {
		b.none = make(chan struct{})
	}
	none := b.none
	b.mu.Unlock()
	select {
	case <-none:
	case <-ctx.Done():
	}
}
