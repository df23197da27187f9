// Package bridge binds platforms to the chat harness. What arrives goes through a durable inbox into one lane per
// conversation; each message is a turn; what the turn came to is turned into replies, approval cards and audit
// records, in one commit; a durable outbox delivers them in order.
//
// It knows no platform, only what an adapter can do, and opens no session: the chat harness does.
//
//	Accept ─► inbox ─► lane ─► chat.Send ─► settle ─► outbox ─► Post, Edit
//	            ▲                             │
//	            └── decision as a signal ◄── approvals ◄── click, command, expiry
package bridge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms"
)

// Chat is what the bridge needs of the chat harness.
type Chat interface {
	Send(ctx context.Context, sessionID string, message llm.Message, o chat.SendOptions) chat.TurnOutcome
	Signal(ctx context.Context, s chat.Signal) (chat.TurnOutcome, error)
	Subscribe(sessionID string, l chat.Listener) (unsubscribe func())
}

// Sessions is what starting over needs.
type Sessions interface {
	// Delete forgets the session's history.
	Delete(ctx context.Context, sessionID string) error
	// DeleteInvocation forgets a suspended turn, so that nothing can resume it.
	DeleteInvocation(ctx context.Context, id string) error
}

// Options make a bridge. Adapters, Store, Chat and Sessions are required.
type Options struct {
	Adapters []platforms.Adapter
	Store    Store
	Chat     Chat
	Sessions Sessions
	// Policy says who may decide.
	Policy approvals.Policy
	// Turns is how many turns run at a time, over all conversations; 256 by default.
	Turns int
	// Drain is how long running turns and waiting replies are given at the end; 20 s by default.
	Drain time.Duration
	// About is a line for the status command: the model, say.
	About  string
	Logger *slog.Logger
	Now    func() time.Time
}

// Bridge runs until its context ends. Its methods may be called concurrently.
type Bridge struct {
	Options
	adapters map[string]platforms.Adapter
	inbox    lanes[Lane]
	outbox   lanes[Place]
	busy     busy // with anything in inbox or outbox
	slots    chan struct{}
	started  time.Time
	// recoveredTo is the highest Seq of an earlier process: what it left may have been begun.
	recoveredTo uint64
	expiryWake  chan struct{}
	background  sync.WaitGroup

	mu        sync.Mutex
	ctx       context.Context // of the work; nil until Run
	turns     map[Place]context.CancelCauseFunc
	uncertain map[uint64]bool // deliveries that this process may have sent
	down      map[string]error
}

// New returns a bridge that has not begun.
func New(o Options) *Bridge {
	if o.Turns == 0 {
		o.Turns = 256
	}
	if o.Drain == 0 {
		o.Drain = 20 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Bridge{
		Options: o, adapters: make(map[string]platforms.Adapter), slots: make(chan struct{}, o.Turns),
		expiryWake: make(chan struct{}, 1), turns: make(map[Place]context.CancelCauseFunc),
		uncertain: make(map[uint64]bool), down: make(map[string]error),
	}
	for _, a := range o.Adapters {
		b.adapters[a.Platform()] = a
	}
	b.inbox.step, b.inbox.busy = b.takeEntry, &b.busy
	b.outbox.step, b.outbox.busy = b.takeDelivery, &b.busy
	return b
}

// Run takes up what an earlier process left, receives from every platform and works until ctx ends; then it drains: no
// new turn begins, running ones and waiting replies are given Options.Drain, and what is left is left durable. It
// returns an error if a platform ended with one: the others are drained too. If every platform has ended in peace,
// because there is nobody left to hear, what arrived before is worked off first.
func (b *Bridge) Run(ctx context.Context) error {
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	if err := b.recover(work); err != nil {
		return fmt.Errorf("bridge: take up what was left: %w", err)
	}
	receiving, stopReceiving := context.WithCancel(ctx)
	defer stopReceiving()
	failed := b.receive(receiving)
	expired := make(chan struct{})
	go func() {
		defer close(expired)
		b.expire(receiving)
	}()

	var err error
	select {
	case <-ctx.Done():
	case failure, some := <-failed:
		if err = failure; !some {
			b.busy.wait(ctx)
		}
	}
	stopReceiving()
	<-expired
	b.drain(stopWork)
	for more := range failed {
		err = errors.Join(err, more)
	}
	return err
}

// recover wakes every lane and place that has something left.
func (b *Bridge) recover(ctx context.Context) error {
	var lanes []Lane
	var places []Place
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		if lanes, err = tx.Lanes(); err != nil {
			return err
		}
		if places, err = tx.Places(); err != nil {
			return err
		}
		b.recoveredTo, err = tx.LastSeq()
		return err
	})
	if err != nil {
		return err
	}
	b.mu.Lock()
	b.ctx, b.started = ctx, b.Now()
	b.mu.Unlock()
	if len(lanes)+len(places) > 0 {
		b.Logger.Info("taking up what was left", "conversations", len(lanes), "with_replies_to_send", len(places))
	}
	for _, p := range places {
		b.wakePlace(p)
	}
	for _, l := range lanes {
		b.wakeLane(l)
	}
	return nil
}

// receive runs every adapter. The channel carries their errors and is closed when all have ended.
func (b *Bridge) receive(ctx context.Context) <-chan error {
	failed := make(chan error, len(b.Adapters))
	var running sync.WaitGroup
	for _, a := range b.Adapters {
		running.Go(func() {
			if err := a.Run(ctx, Inbox{b, a.Platform()}); err != nil {
				b.Logger.Error("a platform ended", "platform", a.Platform(), "error", err)
				b.mu.Lock()
				b.down[a.Platform()] = err
				b.mu.Unlock()
				failed <- err
			}
		})
	}
	go func() {
		running.Wait()
		close(failed)
	}()
	return failed
}

// drain ends the work in order: turns first, since they still have something to say.
func (b *Bridge) drain(stopWork context.CancelFunc) {
	deadline := time.AfterFunc(b.Drain, stopWork)
	defer deadline.Stop()
	b.inbox.close()
	b.inbox.wait()
	b.background.Wait()
	b.outbox.wait() // workers end when there is nothing left, or at the deadline
	b.outbox.close()
	stopWork()
}

func (b *Bridge) workContext() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ctx
}

// Ready reports why messages cannot arrive now, or nil.
func (b *Bridge) Ready() error {
	b.mu.Lock()
	begun := b.ctx != nil
	var errs []error
	for platform, err := range b.down {
		errs = append(errs, fmt.Errorf("%s: %w", platform, err))
	}
	b.mu.Unlock()
	if !begun {
		return errors.New("starting")
	}
	if b.inbox.isClosed() {
		errs = append(errs, errors.New("shutting down"))
	}
	for _, a := range b.Adapters {
		if r, ok := a.(platforms.Readiness); ok {
			if err := r.Ready(); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", a.Platform(), err))
			}
		}
	}
	return errors.Join(errs...)
}

// wakeLane and wakePlace have a lane's entries, or a place's deliveries, looked at. What belongs to a platform that is
// not configured now waits for it.
func (b *Bridge) wakeLane(l Lane) {
	if ctx := b.workContext(); ctx != nil && b.adapters[l.Platform] != nil {
		b.inbox.wake(ctx, l)
	}
}

func (b *Bridge) wakePlace(p Place) {
	if ctx := b.workContext(); ctx != nil && b.adapters[p.Platform] != nil {
		b.outbox.wake(ctx, p)
	}
}

func (b *Bridge) recovered(e Entry) bool { return e.Seq <= b.recoveredTo }

// stopTurn ends the turn that runs in a place, if one does.
func (b *Bridge) stopTurn(p Place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	cancel := b.turns[p]
	if cancel != nil {
		cancel(graph.ErrCancelled)
	}
	return cancel != nil
}

// takePlace waits until one more turn may run and makes it the turn of its place: stopTurn ends the context.
func (b *Bridge) takePlace(ctx context.Context, p Place) (turn context.Context, ended func(), err error) {
	select {
	case b.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	turn, cancel := context.WithCancelCause(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns[p] = cancel
	return turn, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.turns, p)
		cancel(nil)
		<-b.slots
	}, nil
}
