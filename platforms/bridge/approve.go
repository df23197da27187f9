package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/platforms"
)

// approvalMetadata is how a suspended turn says that it waits for an approval, in its descriptor.
type approvalMetadata struct {
	Kind  string `json:"kind"`
	Calls []struct {
		ID          string          `json:"id"`
		Tool        string          `json:"tool"`
		Arguments   json.RawMessage `json:"arguments"`
		Destructive bool            `json:"destructive"`
	} `json:"calls"`
	Reason string `json:"reason"`
}

// requestFor makes the request that a suspended turn waits for, or nil if it waits for something else.
func (b *Bridge) requestFor(ctx context.Context, t *turn, out chat.TurnOutcome) (*approvals.Request, error) {
	var meta approvalMetadata
	if json.Unmarshal(out.Descriptor.Metadata, &meta) != nil || meta.Kind != "approval" {
		return nil, nil
	}
	policy := b.Policy
	requester := b.withNames(ctx, t.asker, &policy)
	ask := approvals.Ask{
		SessionID: out.SessionID, InvocationID: out.InvocationID, TurnID: t.entry.Turn,
		Platform: t.place.Platform, Conversation: string(t.place.Conversation),
		Reason: meta.Reason, Requester: requester,
	}
	for _, c := range meta.Calls {
		ask.Calls = append(ask.Calls, approvals.Call{ID: c.ID, Tool: c.Tool, Arguments: c.Arguments, Destructive: c.Destructive})
	}
	req, err := approvals.New(approvals.ID(out.Descriptor.SignalID), ask, policy, b.Now())
	if err != nil {
		return nil, fmt.Errorf("bridge: request: %w", err)
	}
	return &req, nil
}

// openRequest keeps a new request and puts its card into the outbox. One that nobody can ever approve is over at once,
// and the model hears why.
func (b *Bridge) openRequest(tx Tx, req approvals.Request) error {
	known, err := tx.Request(req.ID)
	if err != nil || known != nil {
		return err
	}
	entries := []approvals.Entry{req.Entry(approvals.KindRequested, req.Requester, approvals.SurfaceTurn, "", b.Now())}
	if why := req.Deadlock(); why != "" {
		cancel := approvals.Cancel{At: b.Now(), Reason: why}
		after, verdict := req.Apply(cancel)
		entries = append(entries, approvals.Trace(cancel, after, verdict, approvals.SurfaceTurn)...)
		req = after
	}
	if err := errors.Join(tx.PutRequest(req), tx.Audit(entries...)); err != nil {
		return err
	}
	place := placeOf(req)
	parts := b.adapters[place.Platform].Render(platforms.Content{Card: b.card(req)})
	for i, part := range parts {
		d := Delivery{Place: place, At: b.Now().UTC(), ID: fmt.Sprintf("card/%s/%d", req.ID, i), Part: part}
		if i == len(parts)-1 {
			d.CardOf = req.ID
		}
		if err := tx.AddDelivery(&d); err != nil {
			return err
		}
	}
	if req.State.Ended() {
		return b.signal(tx, req)
	}
	return nil
}

func placeOf(req approvals.Request) Place {
	return Place{req.Platform, platforms.Conversation(req.Conversation)}
}

// signal puts the decision into the lane of the conversation, where the waiting turn goes on in its order.
func (b *Bridge) signal(tx Tx, req approvals.Request) error {
	return tx.AddEntry(&Entry{
		Lane: Lane{Place: placeOf(req)}, Turn: "decision:" + string(req.ID), At: b.Now().UTC(), Signal: req.ID,
	})
}

// apply lets something happen to a request: the one way for clicks, commands, expiry and stop. In one commit it keeps
// the new state, the audit, the changed card and, if the request ended, the signal. A request that is not there gives
// the zero Verdict.
func (b *Bridge) apply(ctx context.Context, id approvals.ID, event func(approvals.Request) approvals.Event, from approvals.Surface) (approvals.Verdict, error) {
	return b.applyAnd(ctx, id, event, from, true, nil)
}

// applyAnd is apply with the choice whether the turn hears of it, and with more to do in the same commit.
func (b *Bridge) applyAnd(ctx context.Context, id approvals.ID, event func(approvals.Request) approvals.Event, from approvals.Surface,
	resume bool, also func(Tx) error) (verdict approvals.Verdict, err error) {
	var after approvals.Request
	err = b.Store.Update(ctx, func(tx Tx) error {
		verdict = approvals.Verdict{}
		if also != nil {
			if err := also(tx); err != nil {
				return err
			}
		}
		before, err := tx.Request(id)
		if err != nil || before == nil {
			return err
		}
		e := event(*before)
		after, verdict = before.Apply(e)
		if err := tx.Audit(approvals.Trace(e, after, verdict, from)...); err != nil || !verdict.Accepted() {
			return err
		}
		if err := errors.Join(tx.PutRequest(after), b.changeCard(tx, after)); err != nil {
			return err
		}
		if after.State.Ended() && resume {
			return b.signal(tx, after)
		}
		return nil
	})
	if err != nil {
		return verdict, fmt.Errorf("bridge: decide: %w", err)
	}
	if verdict.Accepted() {
		b.wakePlace(placeOf(after))
		b.wakeLane(Lane{Place: placeOf(after)})
	}
	return verdict, nil
}

// changeCard shows on the card how the request stands now.
func (b *Bridge) changeCard(tx Tx, req approvals.Request) error {
	place := placeOf(req)
	parts := b.adapters[place.Platform].Render(platforms.Content{Card: b.card(req)})
	return tx.AddDelivery(&Delivery{
		Place: place, At: b.Now().UTC(), ID: fmt.Sprintf("card/%s/%s/%d", req.ID, req.State, len(req.Votes)),
		Part: parts[len(parts)-1], CardOf: req.ID, Change: true,
	})
}

// card is a request as people see it. What a model or a person wrote stands in facts and blocks, which are literal.
func (b *Bridge) card(req approvals.Request) *platforms.Card {
	v := req.View(b.Now())
	c := &platforms.Card{Title: v.Title, Footer: "Request " + string(v.ID)}
	for _, f := range v.Facts {
		c.Facts = append(c.Facts, platforms.Fact(f))
	}
	if v.Outcome != "" {
		c.Facts = append(c.Facts, platforms.Fact{Name: "Outcome", Value: v.Outcome})
	}
	if v.Why != "" {
		c.Blocks = append(c.Blocks, platforms.Block{Name: "Why", Text: v.Why})
	}
	for _, call := range v.Calls {
		c.Blocks = append(c.Blocks, platforms.Block{Name: call.Tool, Text: call.Arguments})
	}
	for _, p := range v.Deciders {
		if p.OfGroup || p.Platform != req.Platform {
			continue
		}
		c.Mention = append(c.Mention, platforms.UserID(userID(p)))
	}
	for _, button := range v.Buttons {
		style := platforms.Plain
		if button.Primary {
			style = platforms.Primary
		}
		c.Buttons = append(c.Buttons, platforms.Button{
			Label: button.Label, Action: button.Action, Value: string(v.ID), Style: style, Confirm: button.Confirm,
			Form: button.Action == approvals.ActionDenyReason,
		})
	}
	return c
}

func userID(p approvals.Pattern) string {
	if p.Team == "" {
		return p.ID
	}
	return p.Team + "/" + p.ID
}

// click acts on a pressed button. Nothing is silent: whoever changed nothing by pressing is told why.
func (b *Bridge) click(ctx context.Context, e Entry, c platforms.Click) error {
	id := approvals.ID(c.Value)
	by := actor(e.Lane.Platform, c.By)
	from := approvals.Click(e.Lane.Platform)
	if c.Action == approvals.ActionDenyReason {
		return b.askReason(ctx, e, c, id, by)
	}
	event, ok := b.vote(c.Action, by, c.On, "")
	if !ok {
		b.notify(ctx, e, c.Reply, "This button means nothing to me any more.")
		return b.done(ctx, e)
	}
	return b.decide(ctx, e, id, by, event, from, c.Reply)
}

// vote is what an action means to a request. The hash is that of the card on which it was pressed.
func (b *Bridge) vote(action string, by approvals.Actor, on platforms.MessageRef, reason string) (func(approvals.Request, approvals.Actor) approvals.Event, bool) {
	switch action {
	case approvals.ActionApprove:
		return func(r approvals.Request, by approvals.Actor) approvals.Event {
			return approvals.Approve{By: by, At: b.Now(), Hash: shownHash(r, on)}
		}, true
	case approvals.ActionDeny, approvals.ActionDenyReason:
		return func(_ approvals.Request, by approvals.Actor) approvals.Event {
			return approvals.Deny{By: by, At: b.Now(), Reason: reason}
		}, true
	}
	return nil, false
}

// shownHash is what the person saw: the hash of the card, or of the request itself where it was named by its id.
func shownHash(r approvals.Request, on platforms.MessageRef) approvals.Hash {
	for _, c := range r.Cards {
		if c.Ref == string(on) && on != "" {
			return c.Hash
		}
	}
	return r.Hash
}

// decide applies a person's vote, once for the same entry: the entry ends in the same commit.
func (b *Bridge) decide(ctx context.Context, e Entry, id approvals.ID, by approvals.Actor,
	event func(approvals.Request, approvals.Actor) approvals.Event, from approvals.Surface, reply platforms.Reply) error {
	by, err := b.withGroups(ctx, id, b.named(ctx, by))
	if err != nil {
		return err
	}
	verdict, err := b.applyAnd(ctx, id, func(r approvals.Request) approvals.Event { return event(r, by) }, from, true,
		func(tx Tx) error { return tx.DeleteEntry(e) })
	if err != nil {
		return err
	}
	switch {
	case verdict.Code == "":
		b.tell(ctx, e, reply, approvals.TextUnknown)
	case verdict.Accepted() && from != approvals.SurfaceText: // the card on which it was pressed says it
	default:
		b.tell(ctx, e, reply, verdict.Text)
	}
	return nil
}

// withGroups looks up what must be known of a person before they may vote.
func (b *Bridge) withGroups(ctx context.Context, id approvals.ID, by approvals.Actor) (approvals.Actor, error) {
	var req *approvals.Request
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		req, err = tx.Request(id)
		return err
	})
	if err != nil || req == nil {
		return by, err
	}
	for _, group := range req.NeedsGroups(by) {
		in, err := b.inGroup(ctx, by, group)
		switch {
		case err != nil:
			b.Logger.Warn("nobody can tell who belongs to a group of approvers", "platform", by.Principal.Platform, "group", group, "error", err)
			by.Unresolved = append(by.Unresolved, group)
		case in:
			by.Groups = append(by.Groups, group)
		}
	}
	return by, nil
}

func (b *Bridge) inGroup(ctx context.Context, by approvals.Actor, group string) (bool, error) {
	grouper, ok := b.adapters[by.Principal.Platform].(platforms.Grouper)
	if !ok {
		return false, errors.New("this platform knows no groups")
	}
	return grouper.InGroup(ctx, group, platforms.UserID(by.Principal.User))
}

// askReason opens the form for a reason. Whether the person may deny is checked when they submit it.
func (b *Bridge) askReason(ctx context.Context, e Entry, c platforms.Click, id approvals.ID, by approvals.Actor) error {
	opener, ok := b.adapters[e.Lane.Platform].(platforms.ModalOpener)
	if !ok {
		event, _ := b.vote(approvals.ActionDeny, by, c.On, "")
		return b.decide(ctx, e, id, by, event, approvals.Click(e.Lane.Platform), c.Reply)
	}
	err := opener.OpenModal(ctx, c.Reply, platforms.Modal{
		Title: "Deny", Label: "Reason, for the one who asked", Submit: "Deny", Optional: true,
		Action: approvals.ActionDenyReason, Value: string(id),
	})
	if err != nil {
		b.Logger.Warn("a form could not be opened", "platform", e.Lane.Platform, "error", err)
		b.notify(ctx, e, c.Reply, "The form did not open in time. Please press again; nothing was decided.")
	}
	return b.done(ctx, e)
}

func (b *Bridge) submission(ctx context.Context, e Entry, s platforms.Submission) error {
	by := actor(e.Lane.Platform, s.By)
	event, ok := b.vote(s.Action, by, "", s.Text)
	if !ok || s.Action != approvals.ActionDenyReason {
		return b.done(ctx, e)
	}
	return b.decide(ctx, e, approvals.ID(s.Value), by, event, approvals.Click(e.Lane.Platform), s.Reply)
}

// tell answers a person: to them alone where that is possible, otherwise in the conversation.
func (b *Bridge) tell(ctx context.Context, e Entry, reply platforms.Reply, text string) {
	if b.canNotify(e, reply) {
		b.notify(ctx, e, reply, text)
		return
	}
	t := &turn{entry: e, place: e.Lane.Place, adapter: b.adapters[e.Lane.Platform]}
	err := b.Store.Update(ctx, func(tx Tx) error { return b.reply(tx, t, []string{text}) })
	if err != nil {
		b.Logger.Error("an answer to a command is lost", "platform", e.Lane.Platform, "error", err)
		return
	}
	b.wakePlace(t.place)
}

// canNotify reports whether the person behind a reply can be told alone.
func (b *Bridge) canNotify(e Entry, reply platforms.Reply) bool {
	_, ok := b.adapters[e.Lane.Platform].(platforms.Notifier)
	return ok && len(reply) > 0
}

// notify shows a line to one person. It is help, not record: if it fails, that is logged and no more.
func (b *Bridge) notify(ctx context.Context, e Entry, reply platforms.Reply, text string) {
	notifier, ok := b.adapters[e.Lane.Platform].(platforms.Notifier)
	if !ok || len(reply) == 0 {
		return
	}
	if err := notifier.Notify(ctx, reply, text); err != nil {
		b.Logger.Warn("a person could not be told", "platform", e.Lane.Platform, "error", err)
	}
}
