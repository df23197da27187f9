package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/parley-chat/parley/core/chat"
	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
)

// chatter is a chat harness as its callers see it.
type chatter interface {
	Send(ctx context.Context, sessionID string, message llm.Message, o chat.SendOptions) chat.TurnOutcome
	Signal(ctx context.Context, s chat.Signal) (chat.TurnOutcome, error)
	Subscribe(sessionID string, l chat.Listener) (unsubscribe func())
}

// heard is one callback of a listener.
type heard struct {
	listener string
	out      chat.TurnOutcome
}

// chatTurns drives the cases of the harness-chat suite: messages through Send, then signals through the coordinator.
func (r *run) chatTurns(ctx context.Context) error {
	h := r.c.mapping("harness")
	if mode := h.text("mode"); mode != string(harness.Sessioned) {
		return invalid(h.at("mode"), "chat is sessioned, got %q (harness-chat §1)", mode)
	}
	if r.fields[chat.Messages.Name()] != graph.Field(chat.Messages) {
		return invalid(r.c.at("state.fields"), "a chat graph declares messages, a list[ChatMessage] with the reducer append (harness-chat §4)")
	}
	real := chat.New(harness.New(r.engine, harness.Sessioned, harness.Options{Coordinator: r.coordinate(h)}), chat.Options{})
	c := r.parts.chat(real, r.bench)
	r.chatter = c
	if len(r.c.reader.problems) > 0 {
		return nil
	}
	listeners := make(map[string]bool)
	for _, spec := range r.c.list("chat_turns") {
		if err := r.chatTurn(ctx, c, spec, listeners); err != nil {
			return err
		}
	}
	for _, spec := range r.c.list("signal_arrivals") {
		if err := r.signalArrival(ctx, c, spec, listeners); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) chatTurn(ctx context.Context, c chatter, spec *mapping, listeners map[string]bool) error {
	session := spec.text("session_id")
	var message llm.Message
	user, _ := spec.value("user_message")
	if err := json.Unmarshal(asJSON(user), &message); err != nil {
		return invalid(spec.at("user_message"), "%v", err)
	}
	if listener := spec.text("subscribe_listener"); listener != "" {
		listeners[listener] = true
		// For the duration of the case: the bench goes with it.
		_ = c.Subscribe(session, func(_ context.Context, out chat.TurnOutcome) error {
			r.journal.add(heard{listener, out})
			return nil
		})
	}
	t, err := r.send(ctx, c, spec.text("name"), session, message)
	if err != nil {
		return err
	}
	r.turns = append(r.turns, t)
	r.expect(ctx, t, spec.mapping("expected"), chatExpectations)
	return nil
}

func (r *run) send(ctx context.Context, c chatter, name, session string, message llm.Message) (*turn, error) {
	var out chat.TurnOutcome
	t, err := r.during(ctx, name, session, func(ctx context.Context) { out = c.Send(ctx, session, message, chat.SendOptions{}) })
	if err != nil {
		return nil, err
	}
	t.chat, t.sent = out, &message
	return t, nil
}

// signalArrival delivers a signal and compares what the listener got.
func (r *run) signalArrival(ctx context.Context, c chatter, spec *mapping, listeners map[string]bool) error {
	s := chat.Signal{SignalID: spec.text("signal_id"), Payload: spec.raws("signal_payload")}
	var out chat.TurnOutcome
	var delivery error
	t, err := r.during(ctx, "signal "+s.SignalID, "", func(ctx context.Context) { out, delivery = c.Signal(ctx, s) })
	if err != nil {
		return err
	}
	t.chat = out
	r.fail(within(spec.at("signal_id"), delivery))
	r.turns = append(r.turns, t)
	if !spec.has("expected_listener_callback") {
		return nil
	}
	callback := spec.mapping("expected_listener_callback")
	listener := callback.text("listener")
	if !listeners[listener] {
		return invalid(callback.at("listener"), "no turn subscribed %q", listener)
	}
	delete(callback.values, "listener")
	calls := t.callbacks(listener)
	if len(calls) != 1 {
		r.fail(fmt.Errorf("%s: the listener was called %d times, want once", callback.path, len(calls)))
		return nil
	}
	t.chat = calls[0]
	r.expect(ctx, t, callback, chatExpectations)
	return nil
}

// callbacks are what a listener got during the turn.
func (t *turn) callbacks(listener string) []chat.TurnOutcome {
	var outs []chat.TurnOutcome
	for _, h := range of[heard](t.events) {
		if h.listener == listener {
			outs = append(outs, h.out)
		}
	}
	return outs
}

// chatExpectations are the expected keys of the harness-chat suite (header of its first file).
var chatExpectations = map[string]expectation{
	"outcome": func(_ context.Context, _ *run, t *turn, want any) error {
		if err := statusIs(t.chat.Status, want); err != nil {
			return err
		}
		return oneVariant(t.chat)
	},
	"dispatch_path": func(_ context.Context, _ *run, t *turn, want any) error { return pathIs(t.chat.Path, want) },
	"replies": func(_ context.Context, _ *run, t *turn, want any) error {
		return messagesAre(t.chat.Replies, want)
	},
	"pending_messages": func(_ context.Context, _ *run, t *turn, want any) error {
		return messagesAre(t.chat.PendingMessages, want)
	},
	"signal_descriptor": func(_ context.Context, _ *run, t *turn, want any) error {
		return descriptorIs(&t.chat.Descriptor, want)
	},
	"error_bucket": func(_ context.Context, _ *run, t *turn, want any) error {
		return must(string(t.chat.Bucket) == want, "got %q, want %s", t.chat.Bucket, show(want))
	},
	"error_category": func(_ context.Context, _ *run, t *turn, want any) error {
		return must(t.chat.Category == want, "got %q, want %s", t.chat.Category, show(want))
	},
	"reply":       func(_ context.Context, _ *run, t *turn, want any) error { return replyIs(t.chat.Reply, want) },
	"final_state": chatFinalState,
}

// oneVariant checks that an outcome carries what its variant has, and nothing of the others (harness-chat §5.2).
func oneVariant(out chat.TurnOutcome) error {
	completed, suspended, errored := out.Replies != nil, out.PendingMessages != nil, out.Err != nil
	switch out.Status {
	case graph.Completed:
		return must(completed && !suspended && !errored && out.Bucket == "", "a completed outcome has replies and nothing else")
	case graph.Suspended:
		return must(suspended && !completed && !errored && out.Descriptor.SignalID != "" && out.InvocationID != "",
			"a suspended outcome has pending messages, a descriptor and an invocation id, and nothing else")
	case graph.Errored:
		return must(errored && !completed && !suspended && out.Bucket != "" && out.Category != "",
			"an errored outcome has a bucket, a category and a reply, and nothing else")
	}
	return fmt.Errorf("there is no outcome %q", out.Status)
}

// messagesAre compares messages by their canonical JSON form; text content is one text block (llm-provider §3.1.1).
func messagesAre(got []llm.Message, want any) error {
	canonical, err := canonicalMessages(want)
	if err != nil {
		return err
	}
	if got == nil {
		return fmt.Errorf("there is no list, want %s", show(canonical))
	}
	return equal(got, canonical)
}

func canonicalMessages(v any) (any, error) {
	var messages []llm.Message
	if err := json.Unmarshal(asJSON(v), &messages); err != nil {
		return nil, fmt.Errorf("want is no list of messages: %w", err)
	}
	if messages == nil {
		messages = []llm.Message{}
	}
	return plain(messages)
}

// replyIs compares one message by role and by what its text must contain. Of a template the letter case is free.
func replyIs(got llm.Message, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if err := replyPart(got, key, w[key]); err != nil {
			return within(key, err)
		}
	}
	return nil
}

func replyPart(got llm.Message, key string, want any) error {
	text := got.Content.Text()
	switch key {
	case "role":
		return must(string(got.Role) == want, "got %q, want %s", got.Role, show(want))
	case "content":
		return equal(got.Content, want)
	case "content_matches_template":
		template, ok := want.(string)
		return must(ok && strings.Contains(strings.ToLower(text), strings.ToLower(template)), "got %q, want %s in it", text, show(want))
	case "content_includes":
		parts, ok := want.([]any)
		if !ok {
			return fmt.Errorf("want must be a list, is %s", show(want))
		}
		for _, part := range parts {
			s, ok := part.(string)
			if !ok || !strings.Contains(text, s) {
				return fmt.Errorf("got %q, want %s in it", text, show(part))
			}
		}
		return nil
	}
	return missing{}
}

// chatFinalState compares the session after the turn; messages_count and messages_history_contains are about its
// history, any other key is a field.
func chatFinalState(_ context.Context, r *run, t *turn, want any) error {
	w, ok := want.(map[string]any)
	if !ok {
		return fmt.Errorf("want must be a mapping, is %s", show(want))
	}
	for _, key := range slices.Sorted(maps.Keys(w)) {
		if err := r.chatFinalPart(t, key, w[key]); err != nil {
			return within(key, err)
		}
	}
	return nil
}

func (r *run) chatFinalPart(t *turn, key string, want any) error {
	if _, declared := r.fields[key]; declared {
		return equal(t.after[key], want)
	}
	if key != "messages_count" && key != "messages_history_contains" {
		return missing{}
	}
	history, err := historyOf(t.after)
	if err != nil {
		return err
	}
	if key == "messages_count" {
		return equal(len(history), want)
	}
	canonical, err := canonicalMessages(want)
	if err != nil {
		return err
	}
	return containsInOrder(history, canonical.([]any))
}

// historyOf are the messages of a session, in canonical form.
func historyOf(session map[string]json.RawMessage) ([]any, error) {
	raw, ok := session[chat.Messages.Name()]
	if !ok {
		return nil, errors.New("the session has no messages")
	}
	v, err := fromJSON(raw)
	if err != nil {
		return nil, err
	}
	canonical, err := canonicalMessages(v)
	if err != nil {
		return nil, err
	}
	return canonical.([]any), nil
}

func containsInOrder(history, wanted []any) error {
	rest := history
	for _, w := range wanted {
		i := slices.IndexFunc(rest, func(m any) bool { return same(m, w) })
		if i < 0 {
			return fmt.Errorf("%s is not there, in this order, in %s", show(w), show(history))
		}
		rest = rest[i+1:]
	}
	return nil
}
