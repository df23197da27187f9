package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
)

// Inbox is the durable way in for one platform.
type Inbox struct {
	bridge   *Bridge
	platform string
}

var _ platforms.Inbox = Inbox{}

// Accept keeps the delivery, unless one of its keys is known already.
func (in Inbox) Accept(ctx context.Context, d platforms.Delivery) error {
	if len(d.Keys) == 0 || d.Keys[0] == "" {
		return fmt.Errorf("bridge: a delivery of %s has no key", in.platform)
	}
	lane := Lane{Place: Place{in.platform, d.Conversation}, Urgent: d.Urgent}
	if d.Conversation == "" { // nothing to be in order with
		lane = Lane{Place: Place{in.platform, platforms.Conversation(d.Keys[0])}, Urgent: true}
	}
	now := in.bridge.Now().UTC()
	duplicate := false
	err := in.bridge.Store.Update(ctx, func(tx Tx) error {
		duplicate = false
		for _, key := range d.Keys {
			known, err := tx.Known(in.platform, key)
			if err != nil {
				return err
			}
			if duplicate = known; known {
				return nil
			}
		}
		for _, key := range d.Keys {
			if err := tx.MarkKnown(in.platform, key, now); err != nil {
				return err
			}
		}
		return tx.AddEntry(&Entry{Lane: lane, Turn: in.platform + ":" + string(d.Keys[0]), At: now, Raw: d.Raw})
	})
	if err != nil {
		return fmt.Errorf("bridge: accept: %w", err)
	}
	if !duplicate {
		in.bridge.wakeLane(lane)
	}
	return nil
}

// takeEntry works on the first entry of a lane. A turn's place is taken before the entry is read: what changes the entry
// until then is still seen, what comes later finds the turn under way.
func (b *Bridge) takeEntry(ctx context.Context, l Lane) (more bool, err error) {
	work := ctx
	if !l.Urgent {
		turn, ended, err := b.takePlace(ctx, l.Place)
		if err != nil {
			return false, err
		}
		defer ended()
		if b.inbox.isClosed() { // it waited for its turn, and now none is to begin any more
			return false, nil
		}
		work = turn
	}
	var e *Entry
	err = b.Store.View(ctx, func(tx Tx) (err error) {
		e, err = tx.FirstEntry(l)
		return err
	})
	if err != nil || e == nil {
		return false, err
	}
	err = b.workOn(work, *e)
	if err != nil && ctx.Err() == nil {
		b.Logger.Warn("an entry of the inbox could not be worked on; it is tried again",
			"platform", l.Platform, "turn", e.Turn, "error", err)
	}
	return true, err
}

// workOn does what an entry asks for. When it returns nil, everything that led to is durable and the entry is gone.
func (b *Bridge) workOn(ctx context.Context, e Entry) (err error) {
	defer func() {
		if p := recover(); p != nil {
			b.Logger.Error("working on an entry of the inbox panicked", "platform", e.Lane.Platform, "turn", e.Turn)
			err = b.setAside(ctx, e, fmt.Sprintf("panic: %T", p))
		}
	}()
	if e.Signal != "" {
		return b.resume(ctx, e)
	}
	in, err := b.adapters[e.Lane.Platform].Read(e.Raw)
	if err != nil {
		b.Logger.Error("an entry of the inbox cannot be read and is set aside", "platform", e.Lane.Platform, "turn", e.Turn)
		return b.setAside(ctx, e, "unreadable: "+err.Error())
	}
	switch in := in.(type) {
	case platforms.Message:
		return b.message(ctx, e, in)
	case platforms.Edited:
		return b.edited(ctx, e, in)
	case platforms.Deleted:
		return b.deleted(ctx, e, in)
	case platforms.Click:
		return b.click(ctx, e, in)
	case platforms.Submission:
		return b.submission(ctx, e, in)
	case platforms.Command:
		return b.command(ctx, e, in)
	case platforms.Stop:
		return b.stop(ctx, e, in)
	default:
		return b.done(ctx, e)
	}
}

// done ends an entry that leads to nothing durable.
func (b *Bridge) done(ctx context.Context, e Entry) error {
	return b.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error { return tx.DeleteEntry(e) })
}

func (b *Bridge) setAside(ctx context.Context, e Entry, why string) error {
	return b.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error { return tx.SetAside(e, why) })
}

// edited changes what a waiting message reads. One whose turn has begun stays as it was taken up.
func (b *Bridge) edited(ctx context.Context, e Entry, in platforms.Edited) error {
	return b.Store.Update(ctx, func(tx Tx) error {
		waiting, err := b.waiting(tx, e.Lane.Platform, in.Conversation, in.Ref)
		if err != nil || waiting == nil {
			return errors.Join(err, tx.DeleteEntry(e))
		}
		waiting.Edited = &in.Text
		return errors.Join(tx.PutEntry(*waiting), tx.DeleteEntry(e))
	})
}

// deleted drops a waiting message. If its turn waits for a decision already, the request is taken back; so it is if the
// card itself was deleted, since nobody could press it.
func (b *Bridge) deleted(ctx context.Context, e Entry, in platforms.Deleted) error {
	place := Place{e.Lane.Platform, in.Conversation}
	asked, err := b.askedBy(ctx, place, in.Ref)
	if err != nil {
		return err
	}
	for _, id := range asked {
		_, err := b.apply(ctx, id, func(approvals.Request) approvals.Event {
			return approvals.Cancel{At: b.Now(), Reason: "the message was deleted"}
		}, approvals.SurfaceTurn)
		if err != nil {
			return err
		}
	}
	return b.Store.Update(ctx, func(tx Tx) error {
		waiting, err := b.waiting(tx, e.Lane.Platform, in.Conversation, in.Ref)
		if err == nil && waiting != nil {
			err = tx.DeleteEntry(*waiting)
		}
		return errors.Join(err, tx.DeleteEntry(e))
	})
}

// askedBy finds the pending requests that a message asked for or shows.
func (b *Bridge) askedBy(ctx context.Context, p Place, ref platforms.MessageRef) (ids []approvals.ID, err error) {
	err = b.Store.View(ctx, func(tx Tx) error {
		ids = nil
		pending, err := tx.PendingRequests(p)
		if err != nil || len(pending) == 0 {
			return err
		}
		c, err := tx.Conversation(p.Platform, p.Conversation)
		if err != nil {
			return err
		}
		for _, req := range pending {
			if cardOf(&req, p) == ref || c != nil && c.Asked[req.ID] == ref {
				ids = append(ids, req.ID)
			}
		}
		return nil
	})
	return ids, err
}

// waiting finds the entry of a message whose turn has not begun.
func (b *Bridge) waiting(tx Tx, platform string, in platforms.Conversation, ref platforms.MessageRef) (*Entry, error) {
	place := Place{platform, in}
	entries, err := tx.Entries(Lane{Place: place})
	if err != nil {
		return nil, err
	}
	if len(entries) > 0 && b.underWay(place) {
		entries = entries[1:]
	}
	for _, e := range entries {
		if e.Raw == nil {
			continue
		}
		if m, ok := mustRead(b.adapters[platform], e.Raw).(platforms.Message); ok && m.Ref == ref {
			return &e, nil
		}
	}
	return nil, nil
}

// mustRead reads what may be unreadable: then it is nothing.
func mustRead(a platforms.Adapter, raw []byte) platforms.Inbound {
	in, err := a.Read(raw)
	if err != nil {
		return platforms.Ignored{Why: "unreadable"}
	}
	return in
}

func (b *Bridge) underWay(p Place) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.turns[p] != nil
}

// actor is a platform's user as the approvals know them.
func actor(platform string, u platforms.User) approvals.Actor {
	return approvals.Actor{
		Principal: approvals.Principal{Platform: platform, User: string(u.ID)},
		Name:      u.Name, External: u.External, Bot: u.Bot,
	}
}
