package bridge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
)

const help = "I know these commands: `status`, `approvals`, `approve <id>`, `deny <id> [reason]`, `stop` and `reset`."

// command acts on a slash command, or on its text form in a conversation.
func (b *Bridge) command(ctx context.Context, e Entry, c platforms.Command) error {
	place := Place{e.Lane.Platform, c.Conversation}
	by := actor(e.Lane.Platform, c.By)
	switch c.Name {
	case "reset":
		return b.reset(ctx, e, c, place)
	case "status":
		text, err := b.status(ctx, place)
		return b.answer(ctx, e, c.Reply, text, err)
	case "approvals":
		text, err := b.pendingText(ctx, place, by)
		return b.answer(ctx, e, c.Reply, text, err)
	case "approve", "deny":
		id, reason, _ := strings.Cut(strings.TrimSpace(c.Args), " ")
		if id == "" {
			return b.answer(ctx, e, c.Reply, "Name the request: `"+c.Name+" <id>`. `approvals` lists what waits.", nil)
		}
		event, _ := b.vote(c.Name, by, "", strings.TrimSpace(reason))
		return b.decide(ctx, e, approvals.ID(strings.ToLower(id)), by, event, approvals.SurfaceText, c.Reply)
	default:
		return b.answer(ctx, e, c.Reply, help, nil)
	}
}

// answer ends an entry with a text for the person who commanded.
func (b *Bridge) answer(ctx context.Context, e Entry, reply platforms.Reply, text string, err error) error {
	if err != nil {
		return err
	}
	if b.canNotify(e, reply) {
		b.notify(ctx, e, reply, text)
		return b.done(ctx, e)
	}
	return b.say(ctx, &turn{entry: e, place: e.Lane.Place, adapter: b.adapters[e.Lane.Platform]}, text)
}

func (b *Bridge) status(ctx context.Context, p Place) (string, error) {
	var waiting []Entry
	var pending []approvals.Request
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		if waiting, err = tx.Entries(Lane{Place: p}); err != nil {
			return err
		}
		pending, err = tx.PendingRequests(p.orEverywhere())
		return err
	})
	if err != nil {
		return "", err
	}
	doing := "idle here"
	if b.underWay(p) {
		doing = "working on a message here"
		waiting = waiting[min(1, len(waiting)):]
	}
	return fmt.Sprintf("I am %s. Messages waiting: %d. Approvals waiting: %d. Up for %s. %s",
		doing, len(waiting), len(pending), b.Now().Sub(b.started).Round(time.Second), b.About), nil
}

// orEverywhere is every place for a command that came from none.
func (p Place) orEverywhere() Place {
	if p.Conversation == "" {
		return Place{}
	}
	return p
}

// pendingText lists what waits in a conversation; asked from none, what this person asked for or may decide.
func (b *Bridge) pendingText(ctx context.Context, p Place, by approvals.Actor) (string, error) {
	var pending []approvals.Request
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		pending, err = tx.PendingRequests(p.orEverywhere())
		return err
	})
	if err != nil {
		return "", err
	}
	if p.Conversation == "" {
		pending = slices.DeleteFunc(pending, func(r approvals.Request) bool { return !concerns(r, by) })
	}
	if len(pending) == 0 {
		return "No approval is waiting.", nil
	}
	lines := []string{"Waiting for a decision:"}
	for _, r := range pending {
		lines = append(lines, fmt.Sprintf("- `%s` %s. May decide: %s", r.ID, r.View(b.Now()).Title, r.WhoMayDecide()))
	}
	return strings.Join(lines, "\n"), nil
}

// concerns reports whether somebody asked for a request or is named among those who may decide it.
func concerns(r approvals.Request, a approvals.Actor) bool {
	return r.Requester.Principal.SamePerson(a.Principal) ||
		slices.ContainsFunc(r.Deciders, func(p approvals.Pattern) bool { return p.Matches(a) })
}

// reset begins the conversation anew: its history is forgotten and what it asked for is cancelled.
func (b *Bridge) reset(ctx context.Context, e Entry, c platforms.Command, p Place) error {
	if c.Conversation == "" {
		return b.answer(ctx, e, c.Reply, "Write `reset` in the conversation that is to begin anew.", nil)
	}
	if err := b.cancelAll(ctx, p, b.named(ctx, actor(p.Platform, c.By)), "the conversation was reset", false); err != nil {
		return err
	}
	if err := b.Sessions.Delete(ctx, p.Session()); err != nil {
		return fmt.Errorf("bridge: reset: %w", err)
	}
	return b.answer(ctx, e, c.Reply, "Done. I remember nothing of what was said here before.", nil)
}

// stop ends the running turn of a conversation and cancels what it asks for.
func (b *Bridge) stop(ctx context.Context, e Entry, s platforms.Stop) error {
	p := Place{e.Lane.Platform, s.Conversation}
	stopped := b.stopTurn(p)
	var pending []approvals.Request
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		pending, err = tx.PendingRequests(p)
		return err
	})
	if err != nil {
		return err
	}
	if !stopped && len(pending) == 0 {
		return b.say(ctx, &turn{entry: e, place: p, adapter: b.adapters[p.Platform]}, "There is nothing to stop here.")
	}
	if err := b.cancelAll(ctx, p, b.named(ctx, actor(p.Platform, s.By)), "stopped", true); err != nil {
		return err
	}
	return b.done(ctx, e)
}

// cancelAll takes back every pending request of a place. With resume, their turns go on and hear of it; without, they
// are forgotten.
func (b *Bridge) cancelAll(ctx context.Context, p Place, by approvals.Actor, reason string, resume bool) error {
	var pending []approvals.Request
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		pending, err = tx.PendingRequests(p)
		return err
	})
	for _, req := range pending {
		if err != nil {
			return err
		}
		_, err = b.applyAnd(ctx, req.ID, func(approvals.Request) approvals.Event {
			return approvals.Cancel{By: by, At: b.Now(), Reason: reason}
		}, approvals.SurfaceText, resume, nil)
		if err == nil && !resume {
			err = b.Sessions.DeleteInvocation(ctx, req.InvocationID)
		}
	}
	return err
}

// expire ends requests whose time has run out, each at its time, until ctx ends.
func (b *Bridge) expire(ctx context.Context) {
	for ctx.Err() == nil {
		next, err := b.expireDue(ctx)
		if err != nil && ctx.Err() == nil {
			b.Logger.Warn("requests could not be looked through for expiry", "error", err)
			next = b.Now().Add(maxPause)
		}
		timer := time.NewTimer(max(next.Sub(b.Now()), 10*time.Millisecond))
		select {
		case <-timer.C:
		case <-b.expiryWake:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// expireDue expires what is due and returns when to look again.
func (b *Bridge) expireDue(ctx context.Context) (next time.Time, err error) {
	var pending []approvals.Request
	err = b.Store.View(ctx, func(tx Tx) (err error) {
		pending, err = tx.PendingRequests(Place{})
		return err
	})
	next = b.Now().Add(time.Hour)
	for _, req := range pending {
		switch {
		case req.ExpiresAt.IsZero() || b.adapters[req.Platform] == nil:
		case req.Due(b.Now()):
			_, failed := b.apply(ctx, req.ID, func(approvals.Request) approvals.Event {
				return approvals.Expire{At: b.Now()}
			}, approvals.SurfaceTimer)
			err = errors.Join(err, failed)
		case req.ExpiresAt.Before(next):
			next = req.ExpiresAt
		}
	}
	return next, err
}

func (b *Bridge) wakeExpiry() {
	select {
	case b.expiryWake <- struct{}{}:
	default:
	}
}
