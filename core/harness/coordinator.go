package harness

import (
	"context"
	"sync"
)

// Subscription says which invocation waits for a signal.
type Subscription struct {
	SignalID     string
	InvocationID string
	SessionID    string
}

// Coordinator ties signals to paused invocations (§6). All methods may be called concurrently.
type Coordinator interface {
	// Subscribe is called before a suspension is kept. An error refuses the suspension: it becomes
	// harness_signal_subscription_failed. Subscribing the same invocation again is harmless.
	Subscribe(ctx context.Context, s Subscription) error
	// Correlate returns what waits for the signal; the zero Subscription if nothing does.
	Correlate(ctx context.Context, signalID string) (Subscription, error)
}

// Forgetter is the ability of a coordinator that must be told when nothing waits for a signal any more, because nothing
// else tells it.
type Forgetter interface{ Forget(signalID string) }

// Suspensions is what the durable coordinator asks the store: the engine keeps what a suspended invocation waits for in
// the same commit as its record, so there is nothing to write a second time.
type Suspensions interface {
	// SuspendedOn returns the invocation that waits for the signal and its session, or empty strings.
	SuspendedOn(ctx context.Context, signalID string) (invocationID, sessionID string, err error)
}

// Stored is the coordinator over the engine's own records. It survives whatever they survive.
type Stored struct{ Suspensions Suspensions }

var _ Coordinator = Stored{}

// Subscribe refuses a signal id that another invocation waits for already: its signal could reach only one of them.
func (c Stored) Subscribe(ctx context.Context, s Subscription) error {
	other, _, err := c.Suspensions.SuspendedOn(ctx, s.SignalID)
	if err != nil {
		return err
	}
	return refuseTaken(other, s)
}

func (c Stored) Correlate(ctx context.Context, signalID string) (Subscription, error) {
	invocation, session, err := c.Suspensions.SuspendedOn(ctx, signalID)
	if err != nil || invocation == "" {
		return Subscription{}, err
	}
	return Subscription{SignalID: signalID, InvocationID: invocation, SessionID: session}, nil
}

func refuseTaken(other string, s Subscription) error {
	if s.SignalID == "" {
		return &Error{Category: SignalSubscriptionFailed, Message: "the descriptor has no signal id"}
	}
	if other != "" && other != s.InvocationID {
		return &Error{Category: SignalSubscriptionFailed, Message: "another invocation waits for this signal id already"}
	}
	return nil
}

// InMemory is a coordinator for one process without a store. The zero value is ready.
type InMemory struct {
	mu      sync.Mutex
	waiting map[string]Subscription
}

var (
	_ Coordinator = (*InMemory)(nil)
	_ Forgetter   = (*InMemory)(nil)
)

func (c *InMemory) Subscribe(_ context.Context, s Subscription) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := refuseTaken(c.waiting[s.SignalID].InvocationID, s); err != nil {
		return err
	}
	if c.waiting == nil {
		c.waiting = make(map[string]Subscription)
	}
	c.waiting[s.SignalID] = s
	return nil
}

// Forget ends a subscription: the invocation does not wait for the signal any more, and another may.
func (c *InMemory) Forget(signalID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, signalID)
}

func (c *InMemory) Correlate(_ context.Context, signalID string) (Subscription, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.waiting[signalID], nil
}
