package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/platforms"
)

// takeDelivery sends the first delivery of a place. Order is kept by waiting: nothing overtakes a delivery that has to
// be tried again.
func (b *Bridge) takeDelivery(ctx context.Context, p Place) (more bool, err error) {
	var d *Delivery
	var req *approvals.Request
	err = b.Store.View(ctx, func(tx Tx) (err error) {
		if d, err = tx.FirstDelivery(p); err != nil || d == nil || d.CardOf == "" {
			return err
		}
		req, err = tx.Request(d.CardOf)
		return err
	})
	if err != nil || d == nil {
		return false, err
	}
	ref, err := b.send(ctx, *d, req)
	if err == nil {
		return true, b.sent(ctx, *d, ref)
	}
	return true, b.notSent(ctx, *d, err)
}

// send performs one delivery and returns the message that now shows it. What may have been sent before is looked for
// first.
func (b *Bridge) send(ctx context.Context, d Delivery, req *approvals.Request) (platforms.MessageRef, error) {
	a := b.adapters[d.Place.Platform]
	if d.Status != "" {
		return "", b.showStatus(ctx, d)
	}
	if d.Change {
		ref := cardOf(req, d.Place)
		if ref == "" {
			return "", nil // the card was never shown, so there is nothing to change
		}
		d.Replaces = ref
	}
	if d.Replaces == "" && d.Growing {
		begun, err := b.begun(ctx, d.Place, d.Mark())
		if err != nil || begun == "" && d.OnlyBegun {
			return "", err
		}
		d.Replaces = begun
	} else if d.Replaces == "" && b.mayHaveSent(d) {
		found, err := find(ctx, a, d.Place.Conversation, d.Mark())
		if err != nil || found != "" {
			return found, err
		}
	}
	if d.Replaces == "" {
		return a.Post(ctx, d.Place.Conversation, d.Mark(), d.Part)
	}
	err := a.Edit(ctx, d.Replaces, d.Part)
	if err != nil && platforms.FailureOf(err) == platforms.Gone { // what was to change cannot be any more: said anew
		return a.Post(ctx, d.Place.Conversation, d.Mark(), d.Part)
	}
	return d.Replaces, err
}

func find(ctx context.Context, a platforms.Adapter, in platforms.Conversation, mark string) (platforms.MessageRef, error) {
	finder, ok := a.(platforms.Finder)
	if !ok || a.Capabilities().Idempotent {
		return "", nil
	}
	return finder.Find(ctx, in, mark)
}

// begun finds the message in which an earlier process began to show an answer, if it did not live to remember it: by its
// mark or, since a stream has none before its end, as a stream that nobody closed.
func (b *Bridge) begun(ctx context.Context, p Place, mark string) (platforms.MessageRef, error) {
	a := b.adapters[p.Platform]
	found, err := find(ctx, a, p.Conversation, mark)
	finder, ok := a.(platforms.StreamFinder)
	if err != nil || found != "" || !ok {
		return found, err
	}
	var last platforms.MessageRef
	err = b.Store.View(ctx, func(tx Tx) error {
		c, err := tx.Conversation(p.Platform, p.Conversation)
		if c != nil {
			last = c.Last
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return finder.FindStream(ctx, p.Conversation, last)
}

func cardOf(req *approvals.Request, p Place) platforms.MessageRef {
	if req == nil {
		return ""
	}
	for _, c := range req.Cards {
		if c.Platform == p.Platform && c.Conversation == string(p.Conversation) {
			return platforms.MessageRef(c.Ref)
		}
	}
	return ""
}

// sent ends a delivery, and keeps where it is.
func (b *Bridge) sent(ctx context.Context, d Delivery, ref platforms.MessageRef) error {
	b.forget(d)
	return b.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error {
		if !d.Change && ref != "" {
			if err := delivered(tx, d.Place, ref); err != nil {
				return err
			}
		}
		if d.CardOf != "" && !d.Change {
			if err := b.cardShown(tx, d, ref); err != nil {
				return err
			}
		}
		return tx.DeleteDelivery(d)
	})
}

func delivered(tx Tx, p Place, ref platforms.MessageRef) error {
	c, err := tx.Conversation(p.Platform, p.Conversation)
	if err != nil || c == nil {
		return err
	}
	c.Last = ref
	return tx.PutConversation(*c)
}

func (b *Bridge) cardShown(tx Tx, d Delivery, ref platforms.MessageRef) error {
	req, err := tx.Request(d.CardOf)
	if err != nil || req == nil {
		return err
	}
	req.Cards = append(req.Cards, approvals.Card{
		Platform: d.Place.Platform, Conversation: string(d.Place.Conversation), Ref: string(ref), Mark: d.Mark(), Hash: req.Hash,
	})
	entry := req.Entry(approvals.KindCardPosted, approvals.Actor{}, approvals.SurfaceTurn, d.Place.Platform, b.Now())
	return errors.Join(tx.PutRequest(*req), tx.Audit(entry))
}

// notSent decides what becomes of a delivery that failed. It returns the reason to try again, or nil once the delivery
// has ended.
func (b *Bridge) notSent(ctx context.Context, d Delivery, err error) error {
	if ctx.Err() != nil {
		return err
	}
	failure := platforms.FailureOf(err)
	switch failure {
	case platforms.SlowDown:
		if e, ok := errors.AsType[*platforms.Error](err); ok {
			return delayed{err, e.RetryAfter}
		}
		return err
	case platforms.Unknown:
		b.suspect(d)
		return err
	case platforms.Unreachable:
		return err
	case platforms.Broken:
		b.Logger.Error("a reply cannot be sent until the installation is mended; it is kept", "platform", d.Place.Platform, "error", err)
		return delayed{err, maxPause}
	case platforms.Malformed:
		b.Logger.Error("the platform does not take a message of ours", "platform", d.Place.Platform, "error", err)
		return b.plainer(ctx, d)
	default: // refused, or gone for good
		b.Logger.Error("a reply cannot be delivered and is dropped", "platform", d.Place.Platform, "error", err)
		return b.dropped(ctx, d)
	}
}

// plainer replaces a message that the platform does not take by one that says so; if that one is not taken, it is
// dropped. So is a card: without its buttons and facts it would not be one.
func (b *Bridge) plainer(ctx context.Context, d Delivery) error {
	parts := b.adapters[d.Place.Platform].Render(platforms.Content{
		Markdown: "A part of the answer cannot be shown here: the platform did not accept its form.",
	})
	if string(d.Part) == string(parts[0]) || d.CardOf != "" && !d.Change {
		return b.dropped(ctx, d)
	}
	plain := d
	plain.ID, plain.Part = d.ID+"/plain", parts[0]
	return b.Store.Update(ctx, func(tx Tx) error { // keeps its place in the order
		return tx.PutDelivery(plain)
	})
}

// dropped ends a delivery that will never succeed. A request whose card cannot be shown is cancelled: nobody could
// decide it.
func (b *Bridge) dropped(ctx context.Context, d Delivery) error {
	b.forget(d)
	if d.CardOf != "" && !d.Change {
		_, err := b.apply(ctx, d.CardOf, func(approvals.Request) approvals.Event {
			return approvals.Cancel{At: b.Now(), Reason: "the request could not be shown"}
		}, approvals.SurfaceTurn)
		if err != nil {
			return fmt.Errorf("bridge: cancel a request without a card: %w", err)
		}
	}
	return b.Store.Update(ctx, func(tx Tx) error { return tx.DeleteDelivery(d) })
}

// mayHaveSent reports that the delivery may have been sent already: by an earlier process, or by this one with an
// unknown outcome.
func (b *Bridge) mayHaveSent(d Delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return d.Seq <= b.recoveredTo || b.uncertain[d.Seq]
}

func (b *Bridge) suspect(d Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.uncertain[d.Seq] = true
}

func (b *Bridge) forget(d Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.uncertain, d.Seq)
}
