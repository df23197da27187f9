package chat

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Listener receives the outcome of a resumed turn (§8.2), once per resumed turn: completed, errored, or suspended anew.
// It runs before Signal returns; its error goes to whoever delivered the signal, who may deliver it again.
type Listener func(ctx context.Context, out TurnOutcome) error

// Subscribe registers a listener for one session and returns what ends the subscription. A turn that Send itself
// returned for is never announced.
func (c *Chat) Subscribe(sessionID string, l Listener) (unsubscribe func()) {
	return c.listeners.add(sessionID, l)
}

// SubscribeAll registers a listener for every session.
func (c *Chat) SubscribeAll(l Listener) (unsubscribe func()) { return c.listeners.add("", l) }

// listeners are kept by session; those of every session under the empty id. The zero value is ready.
type listeners struct {
	mu        sync.Mutex
	bySession map[string][]*Listener
}

func (ls *listeners) add(sessionID string, l Listener) func() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.bySession == nil {
		ls.bySession = make(map[string][]*Listener)
	}
	entry := &l
	ls.bySession[sessionID] = append(ls.bySession[sessionID], entry)
	return func() {
		ls.mu.Lock()
		defer ls.mu.Unlock()
		rest := slices.DeleteFunc(slices.Clone(ls.bySession[sessionID]), func(e *Listener) bool { return e == entry })
		if ls.bySession[sessionID] = rest; len(rest) == 0 {
			delete(ls.bySession, sessionID)
		}
	}
}

// fire calls the listeners of a session, in the order they came, and reports whether there was one.
func (ls *listeners) fire(ctx context.Context, sessionID string, out TurnOutcome) (bool, error) {
	ls.mu.Lock()
	heard := slices.Concat(ls.bySession[sessionID], ls.bySession[""])
	ls.mu.Unlock()
	var errs []error
	for _, l := range heard {
		errs = append(errs, (*l)(ctx, out))
	}
	return len(heard) > 0, errors.Join(errs...)
}
