package graph

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// Phase is the part of a node's attempt an event tells of (graph-engine §6).
type Phase string

const (
	PhaseStarted   Phase = "started"
	PhaseCompleted Phase = "completed"
	PhaseSuspended Phase = "suspended"
)

// Event is a node event (graph-engine §6). The context given to the observer carries the Identity.
type Event struct {
	Phase        Phase
	NodeName     string
	Namespace    []string
	Step         int
	AttemptIndex int
	PreState     State
	PostState    *State      // of a completed event without error
	Err          *Error      // of a completed event that failed
	Descriptor   *Descriptor // of a suspended event
	At           time.Time
}

// Observer sees the events of invocations, one at a time and in order. It can change nothing; a panic in it is
// reported and swallowed.
type Observer struct {
	// Observe is called from one goroutine per invocation.
	Observe func(ctx context.Context, e Event)
	// Phases are those it wants; nil means all.
	Phases []Phase
}

func (o Observer) wants(p Phase) bool { return o.Phases == nil || slices.Contains(o.Phases, p) }

// DrainSummary tells what a drain left.
type DrainSummary struct {
	Undelivered    int
	TimeoutReached bool
}

// Drain returns once every event of the invocations that were under way when it was called has been delivered, or when
// ctx ends; what is undelivered then is dropped (graph-engine §6).
func (c *Compiled) Drain(ctx context.Context) DrainSummary {
	var sum DrainSummary
	for _, q := range c.workers.snapshot() {
		select {
		case <-q.done:
			continue
		default:
		}
		select {
		case <-q.done:
		case <-ctx.Done():
			sum.TimeoutReached = true
			sum.Undelivered += q.abandon()
			c.workers.remove(q)
		}
	}
	return sum
}

// workers are the queues that still deliver.
type workers struct {
	mu     sync.Mutex
	queues map[*eventQueue]struct{}
}

func (w *workers) snapshot() []*eventQueue {
	w.mu.Lock()
	defer w.mu.Unlock()
	queues := make([]*eventQueue, 0, len(w.queues))
	for q := range w.queues {
		queues = append(queues, q)
	}
	return queues
}

func (w *workers) remove(q *eventQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.queues, q)
}

// eventQueue delivers one invocation's events. A nil queue drops them.
type eventQueue struct {
	observers []Observer
	ctx       context.Context // ends when the queue is abandoned
	logger    *slog.Logger
	cancel    context.CancelFunc
	done      chan struct{}

	mu      sync.Mutex
	wake    *sync.Cond
	pending []func()
	busy    bool // an event is being delivered
	closed  bool
}

// observe starts the queue of an invocation, or returns nil if nobody looks.
func (c *Compiled) observe(ctx context.Context, more []Observer) *eventQueue {
	observers := slices.Concat(c.opts.Observers, more)
	if len(observers) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	q := &eventQueue{observers: observers, ctx: ctx, logger: c.opts.Logger, cancel: cancel, done: make(chan struct{})}
	q.wake = sync.NewCond(&q.mu)
	c.workers.mu.Lock()
	if c.workers.queues == nil {
		c.workers.queues = make(map[*eventQueue]struct{})
	}
	c.workers.queues[q] = struct{}{}
	c.workers.mu.Unlock()
	go func() {
		q.run()
		c.workers.remove(q)
		cancel()
		close(q.done)
	}()
	return q
}

func (q *eventQueue) run() {
	for {
		q.mu.Lock()
		q.busy = false
		for len(q.pending) == 0 && !q.closed {
			q.wake.Wait()
		}
		if len(q.pending) == 0 {
			q.mu.Unlock()
			return
		}
		deliver := q.pending[0]
		q.pending, q.busy = q.pending[1:], true
		q.mu.Unlock()
		deliver()
	}
}

// dispatch queues an event and returns at once.
func (q *eventQueue) dispatch(ctx context.Context, e Event) {
	if q == nil {
		return
	}
	ctx = withIdentity(q.ctx, IdentityFrom(ctx))
	q.push(func() {
		for _, o := range q.observers {
			if o.wants(e.Phase) {
				q.observe(ctx, o, e)
			}
		}
	})
}

func (q *eventQueue) observe(ctx context.Context, o Observer, e Event) {
	defer func() {
		if r := recover(); r != nil {
			q.logger.WarnContext(ctx, "an observer panicked", "node", e.NodeName, "phase", e.Phase)
		}
	}()
	o.Observe(ctx, e)
}

func (q *eventQueue) push(f func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.pending = append(q.pending, f)
		q.wake.Signal()
	}
}

// close lets the queue end once it is empty.
func (q *eventQueue) close() {
	if q == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake.Signal()
}

// abandon drops what is pending and returns how much that was, counting the one in delivery.
func (q *eventQueue) abandon() int {
	q.cancel()
	q.mu.Lock()
	defer q.mu.Unlock()
	n := len(q.pending)
	if q.busy {
		n++
	}
	q.pending, q.closed = nil, true
	q.wake.Signal()
	return n
}
