package slacktwin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// The kinds of envelope, as Socket Mode names them.
const (
	kindEvents      = "events_api"
	kindInteractive = "interactive"
	kindCommands    = "slash_commands"
)

// envelope is one thing for the bot, however it travels.
type envelope struct {
	kind, typ, subtype string
	id                 string // event_id
	channel, ts        string
	lane               string // events of one lane are tried one after the other
	accepts            bool   // the acknowledgement may carry an answer
	body               []byte
	held               bool // by a Fault, once
}

// delivering is what is on its way to the bot.
type delivering struct {
	callbacks Callbacks
	lanes     map[string][]*envelope // a lane that is in the map has a runner
	held      []*envelope
	pending   int             // deliveries that are due and have not been tried
	idle      []chan struct{} // closed when pending falls to 0
}

// emitMessage tells the bot of a new message: by message and, where it is mentioned in a channel, by app_mention too, doc
// reference/events/app_mention. The two have different event ids.
func (t *Twin) emitMessage(r *room, m *message) {
	event := t.wire(m, false)
	event["channel"], event["event_ts"] = r.ID, m.TS
	mention := map[string]any{"type": "app_mention"}
	for _, key := range []string{
		"user", "ts", "client_msg_id", "text", "team", "thread_ts", "parent_user_id", "blocks", "files", "bot_id", "app_id",
		"channel", "event_ts",
	} {
		if v, ok := event[key]; ok {
			mention[key] = v
		}
	}
	event["channel_type"] = r.kind()
	t.emit(r, event)
	if !r.IM && m.User != t.opt.BotUser && t.mentioned(m.Text) {
		t.emit(r, mention)
	}
}

func (t *Twin) mentioned(text string) bool {
	for _, found := range mentionPattern.FindAllStringSubmatch(text, -1) {
		if found[1] == t.opt.BotUser {
			return true
		}
	}
	return false
}

var mentionPattern = regexp.MustCompile(`<@([A-Z0-9]+)(?:\|[^<>]*)?>`)

// emit sends an event to the bot if it is subscribed and, for a room, a member. r may be nil.
func (t *Twin) emit(r *room, event map[string]any) {
	typ, _ := event["type"].(string)
	if !t.subscribed(typ, r) || (r != nil && !r.has(t.opt.BotUser)) {
		return
	}
	t.dispatch(r, event)
}

// subscribed knows events by type and, for messages, by message.channels, message.groups and message.im.
func (t *Twin) subscribed(typ string, r *room) bool {
	names := []string{typ}
	if typ == "message" && r != nil {
		names = append(names, map[string]string{
			"channel": "message.channels", "group": "message.groups", "im": "message.im",
		}[r.kind()])
	}
	return !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(t.opt.Unsubscribed, n) })
}

// SendEvent delivers an inner event of any form, and returns its event_id: for events that people do not cause, and for
// those no bot has seen before.
func (t *Twin) SendEvent(event map[string]any) (eventID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	channel, _ := event["channel"].(string)
	return t.dispatch(t.rooms[channel], event)
}

// SendPayload delivers a payload of any form once, signed, and returns the answer: kind is "events_api", "interactive" or
// "slash_commands", whose payload is a JSON object of the form's fields. It is for what people do not cause (ssl_check,
// app_rate_limited) and for what is broken.
func (t *Twin) SendPayload(ctx context.Context, kind, typ string, payload []byte) (answer []byte, err error) {
	return t.interact(ctx, &envelope{kind: kind, typ: typ, accepts: true, body: payload})
}

// dispatch wraps an event, doc apis/events-api, and queues it.
func (t *Twin) dispatch(r *room, event map[string]any) string {
	e := &envelope{kind: kindEvents, id: t.newID("Ev")}
	e.typ, _ = event["type"].(string)
	e.subtype, _ = event["subtype"].(string)
	e.channel, _ = event["channel"].(string)
	thread := ""
	e.ts, thread = about(event)
	e.lane = e.channel + " " + thread
	if r != nil && r.IM {
		e.lane = e.channel // a direct message is one conversation
	}
	e.body = encode(map[string]any{
		"token": "verification-token", "team_id": t.opt.Team, "context_team_id": t.opt.Team, "context_enterprise_id": nil,
		"api_app_id": t.opt.AppID, "event": event, "type": "event_callback", "event_id": e.id,
		"event_time": t.opt.Now().Unix(), "is_ext_shared_channel": r != nil && t.shared(&r.Channel),
		"event_context": "4-" + e.id,
		"authorizations": []any{map[string]any{
			"enterprise_id": nil, "team_id": t.opt.Team, "user_id": t.opt.BotUser, "is_bot": true,
			"is_enterprise_install": false,
		}},
	})
	t.enqueue(e)
	return e.id
}

// about returns the ts of the message that an event is about, and of its thread's parent.
func about(event map[string]any) (ts, thread string) {
	if before, ok := event["previous_message"].(map[string]any); ok {
		event = before
	}
	ts, _ = event["ts"].(string)
	thread, _ = event["thread_ts"].(string)
	return ts, cmp.Or(thread, ts)
}

// enqueue puts an event at the end of its lane.
func (t *Twin) enqueue(e *envelope) {
	queue, isRunning := t.lanes[e.lane]
	if !isRunning && !t.spawn(func() { t.runLane(e.lane) }) {
		return
	}
	t.lanes[e.lane] = append(queue, e)
	t.pending++
}

// runLane tries the events of a lane one after the other until none is left. It is called without mu.
func (t *Twin) runLane(lane string) {
	for {
		t.mu.Lock()
		queue := t.lanes[lane]
		if len(queue) == 0 || t.closed {
			delete(t.lanes, lane)
			t.mu.Unlock()
			return
		}
		e := queue[0]
		t.lanes[lane] = queue[1:]
		t.mu.Unlock()
		t.tryEvent(e, 0, "")
	}
}

// tryEvent makes one attempt, bent by a fault if there is one, and plans the retry if it failed. It accounts for one
// pending delivery. It is called without mu.
func (t *Twin) tryEvent(e *envelope, attempt int, reason string) {
	fault := &Fault{}
	t.mu.Lock()
	if !e.held {
		if f := t.deliveryFault(e, attempt); f != nil {
			fault = f
		}
	}
	switch {
	case fault.Hold:
		e.held = true
		t.held = append(t.held, e)
		fallthrough
	case fault.Lose:
		t.settle()
		t.mu.Unlock()
		return
	}
	for range fault.Duplicate {
		t.again(e, attempt, reason)
	}
	t.mu.Unlock()

	outcome := t.deliver(t.ctx, e, attempt, reason, fault)

	t.mu.Lock()
	defer t.mu.Unlock()
	t.release()
	if !outcome.Acked && !outcome.final {
		t.planRetry(e, attempt+1, outcome.reason)
	}
	t.settle()
}

// again makes an attempt beside the lane: a copy, or a retry.
func (t *Twin) again(e *envelope, attempt int, reason string) {
	t.pending++
	if !t.spawn(func() { t.tryEvent(e, attempt, reason) }) {
		t.settle()
	}
}

func (t *Twin) planRetry(e *envelope, attempt int, reason string) {
	if attempt > len(t.opt.Retries) {
		return
	}
	wait := t.opt.Retries[attempt-1]
	if wait <= 0 {
		t.again(e, attempt, reason)
		return
	}
	t.after(wait, func() { t.again(e, attempt, reason) })
}

// release lets go of what was held, now that something else has overtaken it.
func (t *Twin) release() {
	held := t.held
	t.held = nil
	for _, e := range held {
		t.enqueue(e)
	}
}

// settle counts one pending delivery as tried.
func (t *Twin) settle() {
	t.pending--
	if t.pending > 0 {
		return
	}
	for _, done := range t.idle {
		close(done)
	}
	t.idle = nil
}

// Idle waits until every event that is due has been tried; what a Fault held back is let go. Retries that are due later
// are not waited for. The error is that of ctx, or says that the twin is closed.
func (t *Twin) Idle(ctx context.Context) error {
	for {
		t.mu.Lock()
		t.release()
		if t.pending <= 0 {
			t.mu.Unlock()
			return nil
		}
		done := make(chan struct{})
		t.idle = append(t.idle, done)
		t.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("slacktwin: idle: %w", ctx.Err())
		case <-t.ctx.Done():
			return errClosed
		}
	}
}

// outcome is what an attempt came to.
type outcome struct {
	Delivery
	reason string // of the next attempt
	final  bool   // there is no next attempt
	answer []byte
}

// deliver makes one attempt by whatever transport is connected and writes the journal. It is called without mu.
func (t *Twin) deliver(ctx context.Context, e *envelope, attempt int, reason string, fault *Fault) outcome {
	out := outcome{Delivery: Delivery{
		Kind: e.kind, Type: e.typ, Subtype: e.subtype, ID: e.id, Channel: e.channel, TS: e.ts, Attempt: attempt,
		Reason: reason, Body: e.body,
	}}
	if !fault.Late && !t.sleep(ctx, fault.Delay) {
		out.Error, out.final = "closed", true
		return out
	}
	out.At = t.opt.Now()
	if url := t.callback(e.kind); url != "" {
		out.Transport = "http"
		t.deliverHTTP(ctx, url, e, &out)
	} else {
		out.Transport = "socket"
		t.deliverSocket(ctx, e, &out)
	}
	if fault.Late {
		t.sleep(ctx, fault.Delay)
	}
	if fault.LoseAck && out.Acked {
		out.Acked, out.Error, out.reason, out.answer = false, "http_timeout", "http_timeout", nil
	}
	out.Took = t.opt.Now().Sub(out.At)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.journal = append(t.journal, out.Delivery)
	t.opt.Logger.Debug("slacktwin: delivery", "kind", e.kind, "type", e.typ, "id", e.id, "attempt", attempt,
		"transport", out.Transport, "acked", out.Acked, "error", out.Error)
	return out
}

func (t *Twin) callback(kind string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch kind {
	case kindEvents:
		return t.callbacks.Events
	case kindInteractive:
		return t.callbacks.Interactivity
	}
	return t.callbacks.Commands
}

// VerifyURL sends url_verification to the events URL and checks that the challenge comes back, as text or as JSON.
func (t *Twin) VerifyURL(ctx context.Context) error {
	challenge := newUUID()
	e := &envelope{kind: kindEvents, typ: "url_verification", body: encode(map[string]any{
		"token": "verification-token", "challenge": challenge, "type": "url_verification",
	})}
	if t.callback(kindEvents) == "" {
		return errors.New("slacktwin: verify: there is no events URL")
	}
	out := t.deliver(ctx, e, 0, "", &Fault{})
	if !out.Acked {
		return fmt.Errorf("slacktwin: verify: %s", out.Error)
	}
	var echo struct {
		Challenge string `json:"challenge"`
	}
	if string(out.answer) == challenge || (json.Unmarshal(out.answer, &echo) == nil && echo.Challenge == challenge) {
		return nil
	}
	return errors.New("slacktwin: verify: the answer is not the challenge")
}

// OpenHome opens the app's messages tab as a person: app_home_opened.
func (t *Twin) OpenHome(user string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.users[user]; !ok {
		return personal("user_not_found")
	}
	r := t.directMessage(user)
	t.emit(r, map[string]any{
		"type": "app_home_opened", "user": user, "channel": r.ID, "tab": "messages", "event_ts": t.newTS(),
	})
	return nil
}

// reasonOf says how Slack names a failed attempt in x-slack-retry-reason.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, errTimeout), errors.Is(err, context.DeadlineExceeded):
		return "http_timeout"
	case errors.Is(err, errRedirects):
		return "too_many_redirects"
	}
	return "connection_failed"
}
