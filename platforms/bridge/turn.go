package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/parley-chat/parley/approvals"
	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/llm"
	"github.com/parley-chat/parley/platforms"
)

// turn is what the bridge knows of a turn while it runs.
type turn struct {
	entry   Entry
	place   Place
	adapter platforms.Adapter
	asker   approvals.Actor
	asked   platforms.MessageRef // the message that asked, empty if none is known
	askedAt time.Time
	request *approvals.Request   // whose decision this turn brings, if it does
	shown   platforms.MessageRef // a growing message that shows the answer so far
	unsure  bool                 // there may be such a message that this process does not know
	working bool                 // people were shown that it is under way
}

// message runs the turn of a message that is for us.
func (b *Bridge) message(ctx context.Context, e Entry, m platforms.Message) error {
	place := Place{e.Lane.Platform, m.Conversation}
	ours, err := b.isOurs(ctx, place, m)
	if err != nil {
		return err
	}
	if !ours && m.From.Bot {
		return b.done(ctx, e)
	}
	if !ours {
		return b.park(ctx, e)
	}
	t := &turn{entry: e, place: place, adapter: b.adapters[place.Platform], asker: actor(place.Platform, m.From), asked: m.Ref, askedAt: m.At}
	if e.Edited != nil {
		m.Text = *e.Edited
	}
	if strings.TrimSpace(m.Text) == "" && len(m.Files) == 0 {
		return b.say(ctx, t, "I am here. Write what you would like to know or have done.")
	}
	message := b.compose(ctx, t.adapter, m)
	live := b.watch(ctx, t, m.From)
	out := b.Chat.Send(ctx, place.Session(), message, chat.SendOptions{TurnID: e.Turn, OnEmit: live.emit})
	t.shown = live.end()
	return b.settle(ctx, t, out)
}

// isOurs decides whether a message is to be answered: what is addressed to the bot, and what is said where it talks.
func (b *Bridge) isOurs(ctx context.Context, place Place, m platforms.Message) (bool, error) {
	if m.From.Bot {
		return false, nil
	}
	if m.Addressed != platforms.Ambient {
		return true, nil
	}
	var c *Conversation
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		c, err = tx.Conversation(place.Platform, place.Conversation)
		return err
	})
	return c != nil, err
}

// park keeps what was said to nobody where the bot does not talk. A follow-up may overtake the mention that calls the bot,
// when that had to be sent again; it is answered then. Otherwise it is forgotten after a while.
func (b *Bridge) park(ctx context.Context, e Entry) error {
	return b.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error { return tx.Park(e) })
}

// unpark puts what was said after the message that called the bot behind it. What was said before was not meant for it.
func (b *Bridge) unpark(tx Tx, t *turn) error {
	parked, err := tx.Parked(t.place)
	for _, e := range parked {
		if err != nil {
			return err
		}
		err = tx.DropParked(e)
		if m, ok := mustRead(t.adapter, e.Raw).(platforms.Message); err == nil && ok && m.At.After(t.askedAt) {
			err = tx.PutEntry(e) // with its old number: before what came later
		}
	}
	return err
}

// resume delivers a decision to the turn that waits for it. The reply comes through a listener, as for anybody who
// waits for a resumed turn.
func (b *Bridge) resume(ctx context.Context, e Entry) error {
	var req *approvals.Request
	var conv *Conversation
	err := b.Store.View(ctx, func(tx Tx) (err error) {
		if req, err = tx.Request(e.Signal); err != nil || req == nil {
			return err
		}
		conv, err = tx.Conversation(req.Platform, platforms.Conversation(req.Conversation))
		return err
	})
	if err != nil {
		return err
	}
	if req == nil {
		return b.setAside(ctx, e, "there is no such request")
	}
	decision, ok := req.Decision()
	if !ok {
		return b.setAside(ctx, e, "the request is not decided")
	}
	payload, err := json.Marshal(decision)
	if err != nil {
		return fmt.Errorf("bridge: decision: %w", err)
	}
	t := &turn{entry: e, place: e.Lane.Place, adapter: b.adapters[e.Lane.Platform], asker: req.Requester, request: req}
	if conv != nil {
		t.asked = conv.Asked[req.ID]
	}
	live := b.watch(ctx, t, platforms.User{ID: platforms.UserID(req.Requester.Principal.User), Name: req.Requester.Name})
	settled := false
	unsubscribe := b.Chat.Subscribe(req.SessionID, func(_ context.Context, out chat.TurnOutcome) error {
		settled = true
		t.shown = live.end()
		return b.settle(ctx, t, out)
	})
	defer unsubscribe()
	out, err := b.Chat.Signal(ctx, chat.Signal{
		InvocationID: req.InvocationID, SessionID: req.SessionID, TurnID: e.Turn,
		Payload: map[string]json.RawMessage{"decision": payload}, OnEmit: live.emit,
	})
	live.end()
	if err == nil && !settled {
		b.withdraw(t)
		err = errInterrupted(out)
	}
	return err
}

// errInterrupted is the reason to keep the entry of a turn that did not end.
func errInterrupted(out chat.TurnOutcome) error {
	return fmt.Errorf("bridge: the turn did not end: %w", errors.Join(out.Err, context.Canceled))
}

// notEnded reports that the same turn is to be tried again: it was interrupted, or its end could not be kept.
func notEnded(out chat.TurnOutcome) bool {
	return out.Interrupted() || out.Category == graph.SessionSaveFailed || out.Category == graph.CheckpointSaveFailed
}

// settle makes durable, in one commit, everything a turn led to: replies, a request for approval, the end of the entry.
// It is a function of the recorded outcome, so after a crash it does the same again.
func (b *Bridge) settle(ctx context.Context, t *turn, out chat.TurnOutcome) error {
	if notEnded(out) {
		b.withdraw(t)
		return errInterrupted(out)
	}
	ctx = context.WithoutCancel(ctx)
	texts, req := b.reading(ctx, t, out)
	err := b.Store.Update(ctx, func(tx Tx) error {
		if err := b.remember(tx, t, req); err != nil {
			return err
		}
		if err := b.reply(tx, t, texts); err != nil {
			return err
		}
		if req != nil {
			if err := b.endShown(tx, t, assistantText(out.PendingMessages)); err != nil {
				return err
			}
			if err := b.openRequest(tx, *req); err != nil {
				return err
			}
		}
		if err := b.leave(tx, t, req != nil && req.Deadlock() == ""); err != nil {
			return err
		}
		return tx.DeleteEntry(t.entry)
	})
	if err != nil {
		return fmt.Errorf("bridge: settle: %w", err)
	}
	b.wakePlace(t.place)
	if req != nil {
		b.wakeLane(Lane{Place: t.place})
		b.wakeExpiry()
	}
	return nil
}

// reading is what people are to see of an outcome: texts, and a request if the turn waits for an approval.
func (b *Bridge) reading(ctx context.Context, t *turn, out chat.TurnOutcome) ([]string, *approvals.Request) {
	switch out.Status {
	case graph.Completed:
		text := assistantText(out.Replies)
		if text == "" {
			text = "_I have nothing to say to that._"
		}
		return []string{text}, nil
	case graph.Suspended:
		req, err := b.requestFor(ctx, t, out)
		if req != nil {
			return nil, req
		}
		if err != nil { // asking again would fail again
			b.Logger.Error("a turn waits for an approval that cannot be asked for", "turn", t.entry.Turn, "error", err)
			return []string{"I need an approval to go on, but what I would run cannot be shown, so nothing is run."}, nil
		}
		text := assistantText(out.PendingMessages)
		if text == "" {
			text = "_Waiting for a signal from outside._"
		}
		return []string{text}, nil
	default:
		b.Logger.Warn("a turn ended with an error", "turn", t.entry.Turn, "category", out.Category, "bucket", out.Bucket)
		return []string{out.Reply.Content.Text()}, nil
	}
}

// assistantText joins what the assistant said; what tools returned is for the model.
func assistantText(messages []llm.Message) string {
	var texts []string
	for _, m := range messages {
		if text := strings.TrimSpace(m.Content.Text()); m.Role == llm.Assistant && text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}

// remember keeps that the bot talks here, and which message waits for which request.
func (b *Bridge) remember(tx Tx, t *turn, req *approvals.Request) error {
	c, err := tx.Conversation(t.place.Platform, t.place.Conversation)
	if err != nil {
		return err
	}
	changed := c == nil
	if c == nil {
		c = &Conversation{Place: t.place, CreatedAt: b.Now().UTC()}
		if err := b.unpark(tx, t); err != nil {
			return err
		}
	}
	if t.request != nil && c.Asked[t.request.ID] != "" {
		delete(c.Asked, t.request.ID)
		changed = true
	}
	if req != nil && t.asked != "" {
		if c.Asked == nil {
			c.Asked = make(map[approvals.ID]platforms.MessageRef)
		}
		c.Asked[req.ID] = t.asked
		changed = true
	}
	if !changed {
		return nil
	}
	return tx.PutConversation(*c)
}

// reply puts texts into the outbox. The first message takes the place of a growing one, if the answer has one.
func (b *Bridge) reply(tx Tx, t *turn, texts []string) error {
	n := 0
	for _, text := range texts {
		for _, part := range t.adapter.Render(platforms.Content{Markdown: text}) {
			d := Delivery{Place: t.place, At: b.Now().UTC(), ID: fmt.Sprintf("%s/%d", t.entry.Turn, n), Part: part}
			if n == 0 {
				d.Replaces, d.Growing = t.shown, t.shown == "" && b.mayHaveBegun(t)
			}
			n++
			if err := tx.AddDelivery(&d); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayHaveBegun reports that there may be a growing message of this turn that nobody remembers.
func (b *Bridge) mayHaveBegun(t *turn) bool { return t.unsure || b.recovered(t.entry) }

// endShown brings the message in which an answer grew to its end where a card follows and no reply. If a dead process may
// have begun one, it is looked for.
func (b *Bridge) endShown(tx Tx, t *turn, text string) error {
	switch {
	case text == "":
		return nil
	case t.shown != "":
		return b.reply(tx, t, []string{text})
	case !b.mayHaveBegun(t):
		return nil
	}
	return tx.AddDelivery(&Delivery{Place: t.place, At: b.Now().UTC(), ID: t.entry.Turn + "/0", Growing: true, OnlyBegun: true,
		Part: t.adapter.Render(platforms.Content{Markdown: text})[0]})
}

// leave puts a status behind the replies: how the turn leaves the conversation. Nothing is said where nothing was shown.
func (b *Bridge) leave(tx Tx, t *turn, waits bool) error {
	if _, ok := t.adapter.(platforms.StatusSetter); !ok {
		return nil
	}
	if !t.working && !waits && t.request == nil && !b.recovered(t.entry) {
		return nil
	}
	d := Delivery{Place: t.place, At: b.Now().UTC(), ID: t.entry.Turn + "/status", Status: platforms.Idle, Asked: t.asked}
	if waits {
		d.Status = platforms.Waiting
	}
	return tx.AddDelivery(&d)
}

// say answers an entry with a text of the bridge's own, without a turn.
func (b *Bridge) say(ctx context.Context, t *turn, text string) error {
	err := b.Store.Update(context.WithoutCancel(ctx), func(tx Tx) error {
		if t.asked != "" {
			if err := b.remember(tx, t, nil); err != nil {
				return err
			}
		}
		return errors.Join(b.reply(tx, t, []string{text}), tx.DeleteEntry(t.entry))
	})
	if err == nil {
		b.wakePlace(t.place)
	}
	return err
}
