package slacktwin

import (
	"maps"
	"slices"
	"sync"
)

// Deliveries returns the journal of delivery attempts, in the order in which they ended.
func (t *Twin) Deliveries() []Delivery {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.journal)
}

// Calls returns the journal of Web API calls, in the order in which they were answered. response_url and files are not in
// it.
func (t *Twin) Calls() []Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	calls := slices.Clone(t.calls)
	for i := range calls {
		calls[i].Args = maps.Clone(calls[i].Args)
	}
	return calls
}

// Subscribe tells what changed, from now on. A change that waits to be read is not queued twice, so a slow reader loses
// nothing: it reads the state of what is named. cancel ends it; the channel is closed then, and when the twin is closed.
func (t *Twin) Subscribe() (changes <-chan Change, cancel func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &subscriber{
		out:    make(chan Change),
		wake:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		queued: map[Change]bool{},
	}
	if !t.spawn(func() { s.run(t) }) {
		close(s.out)
		return s.out, func() {}
	}
	t.subs[s] = struct{}{}
	return s.out, sync.OnceFunc(func() { close(s.done) })
}

// changed tells all subscribers.
func (t *Twin) changed(c Change) {
	for s := range t.subs {
		s.add(c)
	}
}

type subscriber struct {
	out  chan Change
	wake chan struct{}
	done chan struct{}

	queue  []Change // guarded by Twin.mu, as is queued
	queued map[Change]bool
}

func (s *subscriber) add(c Change) {
	if s.queued[c] {
		return
	}
	s.queued[c] = true
	s.queue = append(s.queue, c)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run hands the queue out until the subscription or the twin ends. It is called without mu.
func (s *subscriber) run(t *Twin) {
	defer close(s.out)
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subs, s)
	}()
	for {
		c, ok := s.next(t)
		if !ok {
			select {
			case <-s.wake:
				continue
			case <-s.done:
				return
			case <-t.ctx.Done():
				return
			}
		}
		select {
		case s.out <- c:
		case <-s.done:
			return
		case <-t.ctx.Done():
			return
		}
	}
}

func (s *subscriber) next(t *Twin) (Change, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(s.queue) == 0 {
		return Change{}, false
	}
	c := s.queue[0]
	s.queue = s.queue[1:]
	delete(s.queued, c)
	return c, true
}
