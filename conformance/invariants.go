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

// invariant checks a named predicate over everything that a case did. Nil means that it holds.
type invariant func(ctx context.Context, r *run) error

// invariants are the predicates by name. Each looks at what was observed; none takes the implementation's word for
// what another observation can show.
var invariants = merged(harnessInvariants, chatInvariants, suspensionInvariants, sessionInvariants)

func merged(tables ...map[string]invariant) map[string]invariant {
	all := make(map[string]invariant)
	for _, table := range tables {
		maps.Copy(all, table)
	}
	return all
}

// only is the one turn of a case.
func (r *run) only() (*turn, error) {
	if len(r.turns) != 1 {
		return nil, fmt.Errorf("the case has %d turns, want 1", len(r.turns))
	}
	return r.turns[0], nil
}

// twoTurns are the two turns of a case.
func (r *run) twoTurns() (first, second *turn, err error) {
	if len(r.turns) != 2 {
		return nil, nil, fmt.Errorf("the case has %d turns, want 2", len(r.turns))
	}
	return r.turns[0], r.turns[1], nil
}

// onOnly lifts a check of one turn.
func onOnly(check func(ctx context.Context, r *run, t *turn) error) invariant {
	return func(ctx context.Context, r *run) error {
		t, err := r.only()
		if err != nil {
			return err
		}
		return check(ctx, r, t)
	}
}

// onTwo lifts a check of a turn and the one after it.
func onTwo(check func(ctx context.Context, r *run, first, second *turn) error) invariant {
	return func(ctx context.Context, r *run) error {
		first, second, err := r.twoTurns()
		if err != nil {
			return err
		}
		return check(ctx, r, first, second)
	}
}

// harnessInvariants are those of the harness suite.
var harnessInvariants = map[string]invariant{
	"harness_classified_as_new_session_path": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return pathIs(t.result.Path, string(harness.PathNewSession))
	}),
	"harness_auto_generated_session_id": onOnly(func(_ context.Context, _ *run, t *turn) error {
		req, err := t.request()
		return errors.Join(err, generated(t, req))
	}),
	"engine_received_session_id": onOnly(func(_ context.Context, _ *run, t *turn) error {
		req, err := t.request()
		if err != nil {
			return err
		}
		saves := of[sessionSaved](t.events)
		return errors.Join(must(req.SessionID != "" && len(saves) > 0 && saves[0].id == req.SessionID,
			"the engine got session id %q and saved %v", req.SessionID, saves),
			must(t.after != nil, "the back end has no such session"))
	}),
	"harness_classified_first_as_new_second_as_existing": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		return errors.Join(pathIs(a.result.Path, string(harness.PathNewSession)), pathIs(b.result.Path, string(harness.PathExistingSession)))
	}),
	"harness_threaded_caller_session_id_verbatim": func(_ context.Context, r *run) error {
		for _, t := range r.turns {
			req, err := t.request()
			if err != nil {
				return err
			}
			if t.supplied == "" || req.SessionID != t.supplied {
				return fmt.Errorf("%s: the engine got %q, the caller said %q", t.name, req.SessionID, t.supplied)
			}
		}
		return nil
	},
	"engine_loaded_prior_session_state_on_second_invoke": onTwo(loadedWhatWasSaved),
	"first_invoke_suspended_and_signal_subscribed":       onTwo(func(_ context.Context, _ *run, a, _ *turn) error { return a.isSubscribed() }),
	"second_invoke_classified_as_signal_resume": onTwo(func(_ context.Context, _ *run, _, b *turn) error {
		return pathIs(b.result.Path, string(harness.PathSignalResume))
	}),
	"resume_threaded_signal_payload_into_engine": onTwo(resumedWithPayload),
	"harness_did_not_block_between_suspend_and_signal": onTwo(func(ctx context.Context, r *run, a, _ *turn) error {
		return r.didNotBlock(ctx, a)
	}),
	"completed_outcome_surfaced_as_completion_response_shape": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(statusIs(t.status(), "completed"), shapeIs(t, harness.CompletionResponse))
	}),
	"outbound_shape_distinct_from_error_or_suspended": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return must(t.result.Shape != harness.ErrorResponse && t.result.Shape != harness.SuspendedAcknowledgment && t.result.Shape != "",
			"the shape is %q", t.result.Shape)
	}),
	"errored_outcome_categorized_into_retryable_transient_bucket": onOnly(categorized(harness.RetryableTransient)),
	"outbound_shape_is_error_response": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(statusIs(t.status(), "errored"), shapeIs(t, harness.ErrorResponse))
	}),
	"outbound_includes_category_and_bucket": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		return outboundHas(ctx, t, map[string]any{"category": t.category(), "bucket": string(harness.BucketOf(t.category()))})
	}),
	"suspended_outcome_registered_subscription": onOnly(func(_ context.Context, _ *run, t *turn) error { return t.isSubscribed() }),
	"suspended_outcome_distinct_outbound_shape": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(statusIs(t.status(), "suspended"), shapeIs(t, harness.SuspendedAcknowledgment))
	}),
	"harness_did_not_block_on_suspended_turn": onOnly(func(ctx context.Context, r *run, t *turn) error { return r.didNotBlock(ctx, t) }),
	"suspend_registered_subscription":         onTwo(func(_ context.Context, _ *run, a, _ *turn) error { return a.isSubscribed() }),
	"signal_arrival_correlated_to_paused_invocation": onTwo(func(_ context.Context, r *run, _, b *turn) error {
		return r.resolved(b)
	}),
	"resume_invocation_completed_the_graph": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		return errors.Join(statusIs(b.status(), "completed"),
			must(b.outcome.InvocationID == a.outcome.InvocationID, "invocation %q ended, %q had suspended", b.outcome.InvocationID, a.outcome.InvocationID))
	}),
	"end_to_end_signal_roundtrip_succeeded": onTwo(func(ctx context.Context, r *run, a, b *turn) error {
		return errors.Join(a.isSubscribed(), r.resolved(b), resumedWithPayload(ctx, r, a, b), statusIs(resultStatus(b.result), "completed"))
	}),
	"session_load_failed_classified_as_terminating": onOnly(func(ctx context.Context, r *run, t *turn) error {
		return errors.Join(must(t.category() == graph.SessionLoadFailed, "the engine returned %q", t.category()),
			categorized(harness.SessionTerminating)(ctx, r, t))
	}),
	"harness_did_not_auto_retry": onOnly(func(_ context.Context, _ *run, t *turn) error {
		_, err := t.request()
		return err
	}),
	"outbound_marked_intervention_required": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		return outboundHas(ctx, t, map[string]any{"intervention_required": true})
	}),
	"provider_unavailable_classified_as_retryable_transient": onOnly(func(ctx context.Context, r *run, t *turn) error {
		return errors.Join(must(t.category() == string(llm.Unavailable), "the engine returned %q", t.category()),
			categorized(harness.RetryableTransient)(ctx, r, t))
	}),
	"outbound_marked_retry_safe": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		return outboundHas(ctx, t, map[string]any{"retry_safe": true})
	}),
	"provider_invalid_request_classified_as_user_correctable": onOnly(func(ctx context.Context, r *run, t *turn) error {
		return errors.Join(must(t.category() == string(llm.InvalidRequest), "the engine returned %q", t.category()),
			categorized(harness.UserCorrectable)(ctx, r, t))
	}),
	"outbound_includes_diagnostic_message": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		message, err := t.raisedMessage()
		if err != nil {
			return err
		}
		return outboundHas(ctx, t, map[string]any{"diagnostic_message": message})
	}),
	"outbound_marks_user_action_required": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		return outboundHas(ctx, t, map[string]any{"user_action_required": true})
	}),
	"stateless_harness_classified_via_path_3_0": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return pathIs(t.result.Path, string(harness.PathStateless))
	}),
	"stateless_harness_did_not_resolve_session_id": onOnly(func(_ context.Context, _ *run, t *turn) error {
		req, err := t.request()
		return errors.Join(err, must(req.SessionID == "", "the engine got session id %q", req.SessionID))
	}),
	"engine_did_not_invoke_session_store": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return must(t.sessionCalls() == 0, "the session store was called %d times", t.sessionCalls())
	}),
	"session_store_completely_untouched": func(ctx context.Context, r *run) error {
		for s, err := range r.records.List(ctx, graph.SessionFilter{}) {
			return errors.Join(err, fmt.Errorf("the back end holds session %q", s.SessionID))
		}
		calls := (&turn{events: r.journal.since(0)}).sessionCalls()
		return must(calls == 0, "the session store was called %d times", calls)
	},
}

func shapeIs(t *turn, want harness.Shape) error {
	return must(t.result.Shape == want, "the shape is %q, want %q", t.result.Shape, want)
}

// categorized checks that the engine failed and the harness put the failure, under the engine's category, into bucket.
func categorized(bucket harness.Bucket) func(ctx context.Context, r *run, t *turn) error {
	return func(_ context.Context, _ *run, t *turn) error {
		if t.err == nil || t.result.Failure == nil {
			return errors.New("the turn did not fail")
		}
		return errors.Join(bucketIs(t.result, string(bucket)),
			must(t.result.Failure.Category == t.category(), "got %q, the engine said %q", t.result.Failure.Category, t.category()))
	}
}

func outboundHas(ctx context.Context, t *turn, want map[string]any) error {
	out, err := outbound(ctx, t.result)
	if err != nil {
		return err
	}
	return includes(out, want)
}

// raisedMessage is the text of the error that a node of this turn raised.
func (t *turn) raisedMessage() (string, error) {
	for _, e := range of[nodeReturned](t.events) {
		if failure, ok := errors.AsType[*raised](e.err); ok && failure.message != "" {
			return failure.message, nil
		}
	}
	return "", errors.New("no node raised an error with a message")
}

// loadedWhatWasSaved checks that a turn loaded the session as the turn before it left it, and began with it.
func loadedWhatWasSaved(ctx context.Context, _ *run, first, second *turn) error {
	loads := of[sessionLoaded](second.events)
	if len(loads) != 1 || loads[0].state == nil {
		return fmt.Errorf("the second turn loaded %v", loads)
	}
	if err := equal(loads[0].state, mustPlain(first.after)); err != nil {
		return err
	}
	begun := of[nodeStarted](second.events)
	if len(begun) == 0 {
		return errors.New("no node ran")
	}
	state, err := begun[0].pre.JSON(ctx)
	if err != nil {
		return err
	}
	for field, raw := range first.after {
		if err := startsWith(state[field], raw); err != nil {
			return within(field, err)
		}
	}
	return nil
}

// startsWith checks that a list begins with the items of another; other values must be the same.
func startsWith(got, want json.RawMessage) error {
	var g, w []any
	if json.Unmarshal(got, &g) != nil || json.Unmarshal(want, &w) != nil {
		return equal(got, mustPlain(want))
	}
	if len(g) < len(w) {
		return fmt.Errorf("%d items, want at least %d", len(g), len(w))
	}
	return equal(g[:len(w)], mustPlain(w))
}

func mustPlain(v any) any {
	p, err := plain(v)
	if err != nil {
		return fmt.Sprint(err)
	}
	return p
}

// resumedWithPayload checks that the second turn resumed the invocation that the first suspended, with the payload that
// arrived, and that the next node saw it in the state.
func resumedWithPayload(ctx context.Context, r *run, first, second *turn) error {
	req, err := second.request()
	if err != nil {
		return err
	}
	if req.Resume == "" || req.Resume != first.outcome.InvocationID {
		return fmt.Errorf("the engine was to resume %q, %q had suspended", req.Resume, first.outcome.InvocationID)
	}
	return r.sawPayload(ctx, second, req.Payload)
}

func (r *run) sawPayload(ctx context.Context, t *turn, payload map[string]json.RawMessage) error {
	begun := of[nodeStarted](t.events)
	if len(begun) == 0 {
		return errors.New("no node ran")
	}
	state, err := begun[0].pre.JSON(ctx)
	if err != nil {
		return err
	}
	if len(payload) == 0 {
		return errors.New("the payload is empty")
	}
	for field, raw := range payload {
		if err := equal(state[field], mustPlain(raw)); err != nil {
			return within(field, err)
		}
	}
	return nil
}

// chatInvariants are those of the harness-chat suite.
var chatInvariants = map[string]invariant{
	"send_returns_chat_turn_outcome": func(_ context.Context, r *run) error {
		for _, t := range r.turns {
			if err := errors.Join(oneVariant(t.chat), statusIs(t.chat.Status, string(t.status()))); err != nil {
				return err
			}
		}
		return nil
	},
	"replies_contain_only_new_messages_appended_during_turn": everyTurnReplies,
	"replies_field_contains_only_current_turn_new_messages":  everyTurnReplies,
	"turn_2_loads_turn_1_history":                            onTwo(loadedWhatWasSaved),
	"session_messages_field_accumulates_via_append_reducer": func(_ context.Context, r *run) error {
		for _, t := range r.turns {
			if err := accumulated(t); err != nil {
				return within(t.name, err)
			}
		}
		return nil
	},
	"replies_list_preserves_graph_execution_order": onOnly(func(_ context.Context, _ *run, t *turn) error {
		if len(t.chat.Replies) < 2 {
			return fmt.Errorf("%d replies show no order", len(t.chat.Replies))
		}
		return repliesAreSaid(t)
	}),
	"tool_calls_lives_on_assistant_message_not_in_content_blocks": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return toolCallsOnMessages(t.chat.Replies)
	}),
	"tool_role_message_has_tool_call_id_and_string_content": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return toolResultsAreText(t.chat.Replies)
	}),
	"multimodal_content_blocks_preserved_in_history": onOnly(func(_ context.Context, _ *run, t *turn) error {
		history, err := historyOf(t.after)
		if err != nil {
			return err
		}
		if len(t.sent.Content) < 2 {
			return errors.New("the message that was sent has fewer than two blocks")
		}
		return must(len(history) > 0 && same(history[0], mustPlain(t.sent)), "the history begins with %s, want %s", show(history), show(t.sent))
	}),
	"content_block_types_match_llm_provider_3_1_set": onOnly(blockTypes),
	"pending_message_extracted_from_state_messages_tail": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		return pendingIsTail(ctx, t)
	}),
	"chat_harness_does_not_block_on_suspended_outcome": onOnly(func(ctx context.Context, r *run, t *turn) error {
		return errors.Join(r.didNotBlock(ctx, t), statusIs(t.chat.Status, "suspended"))
	}),
	"no_chat_specific_engine_hook_required_for_pending_message": onOnly(func(ctx context.Context, _ *run, t *turn) error {
		req, err := t.request()
		if err != nil {
			return err
		}
		if req.OnEmit != nil || len(req.Observers) > 0 {
			return errors.New("the engine was invoked with a hook")
		}
		said, err := t.said()
		if err != nil {
			return err
		}
		return errors.Join(must(len(said) > 0, "no node added a pending message"), messagesAre(t.chat.PendingMessages, said))
	}),
	"compose_pending_state_persisted_before_suspend_node_runs": onOnly(pendingKeptFirst),
	"listener_fires_exactly_once_per_resumed_turn":             onTwo(firedOnce),
	"listener_callback_carries_post_resume_chat_turn_outcome": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		calls := of[heard](b.events)
		if len(calls) != 1 {
			return fmt.Errorf("there were %d callbacks", len(calls))
		}
		got := calls[0].out
		said, err := b.said()
		return errors.Join(err, oneVariant(got), statusIs(got.Status, string(b.status())), messagesAre(got.Replies, said),
			must(got.InvocationID == a.outcome.InvocationID, "it is of invocation %q, %q was resumed", got.InvocationID, a.outcome.InvocationID))
	}),
	"next_send_call_does_not_consume_the_post_resume_reply": onTwo(nextSendIsItsOwn),
	"error_bucket_routes_to_harness_section_7_1":            onOnly(chatBucket(harness.SessionTerminating)),
	"error_bucket_routes_to_harness_section_7_2":            onOnly(chatBucket(harness.RetryableTransient)),
	"error_bucket_routes_to_harness_section_7_3":            onOnly(chatBucket(harness.UserCorrectable)),
	"chat_message_shape_invalid_routes_to_user_correctable": onOnly(func(ctx context.Context, r *run, t *turn) error {
		return errors.Join(must(t.chat.Category == harness.ChatMessageShapeInvalid, "the category is %q", t.chat.Category),
			chatBucket(harness.UserCorrectable)(ctx, r, t))
	}),
	"reply_role_is_system": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return must(t.chat.Reply.Role == llm.System && t.chat.Reply.Content.Text() != "", "the reply is %s", show(t.chat.Reply))
	}),
	"reply_content_includes_upstream_diagnostic": onOnly(func(_ context.Context, _ *run, t *turn) error {
		message, err := t.raisedMessage()
		if err != nil {
			return err
		}
		return must(strings.Contains(t.chat.Reply.Content.Text(), message), "the reply is %q", t.chat.Reply.Content.Text())
	}),
	"chat_harness_does_not_invoke_graph_when_session_load_fails": onOnly(func(_ context.Context, _ *run, t *turn) error {
		loads := of[sessionLoaded](t.events)
		if len(loads) == 0 || loads[0].err == nil {
			return errors.New("no load failed")
		}
		return must(len(t.nodes()) == 0, "nodes ran: %v", t.nodes())
	}),
	"session_state_preserved_after_transient_error": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(must(t.err != nil, "the turn did not fail"), equal(t.after, mustPlain(t.before)),
			must(len(of[sessionSaved](t.events)) == 0, "the session was saved"))
	}),
	"message_validation_runs_at_send_api_boundary_before_session_load": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return must(t.sessionCalls() == 0 && !t.invoked && len(t.requests()) == 0 && t.chat.Status == graph.Errored,
			"the session store was called %d times and the engine %d times", t.sessionCalls(), len(t.requests()))
	}),
	"graph_body_not_invoked_when_message_validation_fails": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(must(len(t.nodes()) == 0, "nodes ran: %v", t.nodes()), statusIs(t.chat.Status, "errored"))
	}),
}

// everyTurnReplies checks that replies are what the nodes of that turn said: no history, not the user's own message.
func everyTurnReplies(_ context.Context, r *run) error {
	for _, t := range r.turns {
		if err := repliesAreSaid(t); err != nil {
			return within(t.name, err)
		}
	}
	return nil
}

func repliesAreSaid(t *turn) error {
	said, err := t.said()
	if err != nil {
		return err
	}
	return messagesAre(t.chat.Replies, said)
}

// accumulated checks that a turn left its history as it was and added what was sent and what its nodes said.
func accumulated(t *turn) error {
	want := []any{}
	if t.before != nil {
		before, err := historyOf(t.before)
		if err != nil {
			return err
		}
		want = before
	}
	said, err := t.said()
	if err != nil {
		return err
	}
	added, err := canonicalMessages(append([]any{mustPlain(t.sent)}, said...))
	if err != nil {
		return err
	}
	after, err := historyOf(t.after)
	if err != nil {
		return err
	}
	return equal(after, append(want, added.([]any)...))
}

func toolCallsOnMessages(messages []llm.Message) error {
	calls := 0
	for _, m := range messages {
		if len(m.ToolCalls) > 0 && m.Role != llm.Assistant {
			return fmt.Errorf("a %s message has tool calls", m.Role)
		}
		calls += len(m.ToolCalls)
		if err := knownBlocks(m.Content); err != nil {
			return err
		}
	}
	return must(calls > 0, "no message has tool calls")
}

func toolResultsAreText(messages []llm.Message) error {
	results := 0
	for _, m := range messages {
		if m.Role != llm.ToolRole {
			continue
		}
		results++
		content, ok := mustPlain(m.Content).(string)
		if m.ToolCallID == "" || !ok || content == "" {
			return fmt.Errorf("the tool message is %s", show(m))
		}
	}
	return must(results > 0, "there is no tool message")
}

// knownBlocks checks block types against llm-provider §3.1.
func knownBlocks(c llm.Content) error {
	known := []llm.BlockType{llm.TextBlock, llm.ImageBlock, llm.ThinkingBlock, llm.RedactedThinkingBlock}
	for _, block := range c {
		if !slices.Contains(known, block.Type) {
			return fmt.Errorf("there is a block of type %q", block.Type)
		}
	}
	return nil
}

// blockTypes checks every message of the stored history, and that it has blocks of more than one type.
func blockTypes(_ context.Context, _ *run, t *turn) error {
	var history []llm.Message
	if err := json.Unmarshal(t.after[chat.Messages.Name()], &history); err != nil {
		return err
	}
	types := make(map[llm.BlockType]bool)
	for _, m := range history {
		if err := knownBlocks(m.Content); err != nil {
			return err
		}
		for _, block := range m.Content {
			types[block.Type] = true
		}
	}
	return must(len(types) > 1, "the history has blocks of %d types", len(types))
}

// pendingIsTail checks pending messages against the engine's own outcome: the tail past the loaded history and the
// message that was sent (harness-chat §8.1).
func pendingIsTail(ctx context.Context, t *turn) error {
	if t.status() != graph.Suspended {
		return fmt.Errorf("the turn is %s", t.status())
	}
	begin := chat.Messages.Get(t.outcome.Loaded).Len() + 1
	tail := chat.Messages.Get(t.outcome.State)
	items, err := tail.Slice(ctx, begin, tail.Len())
	if err != nil {
		return err
	}
	return errors.Join(must(len(items) > 0, "the tail is empty"), equal(t.chat.PendingMessages, mustPlain(items)))
}

// pendingKeptFirst checks that what the nodes before the suspending one said was kept before that one began.
func pendingKeptFirst(_ context.Context, _ *run, t *turn) error {
	var kept []any
	var said []any
	for _, e := range t.events {
		switch e := e.(type) {
		case nodeReturned:
			if items, ok := mustPlain(e.update[chat.Messages.Name()]).([]any); ok {
				said = append(said, items...)
			}
		case invocationSaved:
			if e.err == nil {
				kept = mustPlain(e.inv.State.Logs[chat.Messages.Name()].Add).([]any)
			}
		case nodeStarted:
			if e.name == t.outcome.NodeName {
				return keptEnds(kept, said)
			}
		}
	}
	return errors.New("the suspending node did not run")
}

func keptEnds(kept, said []any) error {
	canonical, err := canonicalMessages(said)
	if err != nil {
		return err
	}
	want := canonical.([]any)
	if len(want) == 0 || len(kept) < len(want) {
		return fmt.Errorf("%d messages were said and %d kept before the node that suspends", len(want), len(kept))
	}
	return equal(kept[len(kept)-len(want):], want)
}

func firedOnce(_ context.Context, _ *run, sent, resumed *turn) error {
	if n := len(of[heard](sent.events)); n > 0 {
		return fmt.Errorf("listeners fired %d times for the turn that send returned", n)
	}
	n := len(of[heard](resumed.events))
	return must(n == 1, "listeners fired %d times for the resumed turn, want once", n)
}

// nextSendIsItsOwn sends once more: the outcome is that turn's own, and no listener hears of it.
func nextSendIsItsOwn(ctx context.Context, r *run, sent, resumed *turn) error {
	if len(of[heard](resumed.events)) == 0 {
		return errors.New("the reply of the resumed turn reached nobody before the next send")
	}
	next, err := r.send(ctx, r.chatter, "next send", sent.session, llm.UserText("And now?"))
	if err != nil {
		return err
	}
	said, err := next.said()
	if err != nil {
		return err
	}
	got := next.chat.Replies
	if next.chat.Status == graph.Suspended {
		got = next.chat.PendingMessages
	}
	return errors.Join(messagesAre(got, said),
		must(len(next.chat.Resumed) == 0, "it returned %d outcomes of resumed turns", len(next.chat.Resumed)),
		must(len(of[heard](next.events)) == 0, "a listener fired again"))
}

// chatBucket checks that the bucket of the outcome is the one that the harness's table gives its category, and which.
func chatBucket(bucket harness.Bucket) func(context.Context, *run, *turn) error {
	return func(_ context.Context, _ *run, t *turn) error {
		if t.chat.Status != graph.Errored {
			return fmt.Errorf("the outcome is %s", t.chat.Status)
		}
		if t.invoked && t.chat.Category != t.category() {
			return fmt.Errorf("the category is %q, the engine said %q", t.chat.Category, t.category())
		}
		return must(t.chat.Bucket == bucket, "the bucket is %q, want %q", t.chat.Bucket, bucket)
	}
}

// suspensionInvariants are those of the suspension suite.
var suspensionInvariants = map[string]invariant{
	"suspend_returns_suspended_outcome": onTwo(func(_ context.Context, _ *run, a, _ *turn) error {
		return errors.Join(statusIs(a.status(), "suspended"),
			must(a.outcome.Descriptor != nil && a.outcome.InvocationID != "" && a.outcome.CorrelationID != "" &&
				slices.Equal(a.outcome.Namespace, []string{a.outcome.NodeName}), "the outcome is incomplete"))
	}),
	"resume_merges_signal_payload": onTwo(resumedWithPayload),
	"resume_continues_after_suspending_node": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		return must(len(b.nodes()) > 0 && !slices.Contains(b.nodes(), a.outcome.NodeName), "the nodes %v ran, %s had suspended", b.nodes(), a.outcome.NodeName)
	}),
	"signal_payload_overwrites_field_directly": onTwo(resumedWithPayload),
	"reducer_not_consulted_on_signal_merge": onTwo(func(ctx context.Context, r *run, a, b *turn) error {
		req, err := b.request()
		if err != nil {
			return err
		}
		before, err := a.outcome.State.JSON(ctx)
		if err != nil {
			return err
		}
		for field := range req.Payload {
			if r.lists[field] && !same(mustPlain(before[field]), []any{}) {
				return r.sawPayload(ctx, b, req.Payload)
			}
		}
		return errors.New("no list that had items was overlaid")
	}),
	"invalid_payload_blocks_resume": onTwo(func(ctx context.Context, r *run, a, b *turn) error {
		inv, err := r.records.LoadInvocation(ctx, a.outcome.InvocationID)
		if err != nil {
			return err
		}
		return errors.Join(must(len(b.nodes()) == 0, "nodes ran: %v", b.nodes()),
			must(inv != nil && inv.Status == graph.Suspended, "the invocation is no longer suspended"))
	}),
	"error_category_is_resume_payload_invalid": onTwo(func(_ context.Context, _ *run, _, b *turn) error {
		return must(b.category() == graph.SuspensionResumePayloadInvalid, "the category is %q", b.category())
	}),
	"session_saves_at_suspend_time": onTwo(func(_ context.Context, _ *run, a, _ *turn) error {
		state, err := a.outcome.State.JSON(context.Background())
		if err != nil {
			return err
		}
		return errors.Join(statusIs(a.status(), "suspended"), equal(a.after, mustPlain(state)),
			must(len(of[sessionSaved](a.events)) > 0, "the session was not saved"))
	}),
	"resume_sees_session_state_consistent_with_paused_record": onTwo(func(ctx context.Context, _ *run, a, b *turn) error {
		begun := of[nodeStarted](b.events)
		if len(begun) == 0 {
			return errors.New("no node ran")
		}
		paused, err := a.outcome.State.JSON(ctx)
		if err != nil {
			return err
		}
		return errors.Join(stateIs(ctx, begun[0].pre, mustPlain(paused)), equal(b.before, mustPlain(paused)))
	}),
	"paused_record_persists_via_checkpointer_backend": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		saved := of[invocationSaved](a.events)
		if len(saved) == 0 {
			return errors.New("the checkpointer was given nothing")
		}
		last := saved[len(saved)-1]
		return errors.Join(last.err,
			must(last.inv.ID == a.outcome.InvocationID && last.inv.Status == graph.Suspended, "the last record is %s of %s", last.inv.Status, last.inv.ID),
			must(a.kept != nil && a.kept.Status == graph.Suspended, "the back end keeps %s", show(a.kept)),
			must(b.outcome.InvocationID == last.inv.ID, "the resumption ended invocation %s", b.outcome.InvocationID))
	}),
	"record_type_distinguishes_suspended_from_checkpointed": onTwo(func(_ context.Context, _ *run, a, b *turn) error {
		var statuses []graph.Status
		for _, s := range of[invocationSaved](append(slices.Clone(a.events), b.events...)) {
			statuses = append(statuses, s.inv.Status)
		}
		return must(slices.Contains(statuses, graph.Suspended) && slices.Contains(statuses, graph.Running),
			"the records were %v, want suspended ones and running ones", statuses)
	}),
}

// fileInvariants are predicates over all cases of a file.
var fileInvariants = map[string]func(ctx context.Context, runs []*run) error{
	"resume_against_non_suspended_raises_record_invalid": func(_ context.Context, runs []*run) error {
		for _, r := range runs {
			for _, t := range resumptions(r) {
				if t.category() != graph.SuspensionRecordInvalid || len(t.nodes()) > 0 {
					return fmt.Errorf("%s: %q, and the nodes %v ran", r.name, t.category(), t.nodes())
				}
			}
		}
		return nil
	},
	"resume_covers_completed_and_never_existed_cases": func(_ context.Context, runs []*run) error {
		completed, unknown := false, false
		for _, r := range runs {
			for _, t := range resumptions(r) {
				first := t == r.turns[0]
				unknown = unknown || first
				completed = completed || !first && r.turns[0].status() == graph.Completed
			}
		}
		return must(completed && unknown, "completed: %v, never existed: %v", completed, unknown)
	},
}

// resumptions are the turns of a case that asked for a resumption.
func resumptions(r *run) []*turn {
	var out []*turn
	for _, t := range r.turns {
		if reqs := t.requests(); len(reqs) > 0 && reqs[0].Resume != "" {
			out = append(out, t)
		}
	}
	return out
}

// sessionInvariants are those of the sessions suite.
var sessionInvariants = map[string]invariant{
	"second_invoke_loads_first_invoke_state": onTwo(loadedWhatWasSaved),
	"saved_record_overwrites_prior": onTwo(func(ctx context.Context, r *run, a, b *turn) error {
		rec, err := r.records.Load(ctx, b.session)
		if err != nil || rec == nil {
			return errors.Join(err, errors.New("there is no record"))
		}
		state, err := b.outcome.State.JSON(ctx)
		return errors.Join(err, equal(b.after, mustPlain(state)),
			must(a.session == b.session && rec.Version == 2, "the record is at version %d, want 2", rec.Version))
	}),
	"scratch_field_never_persisted": func(ctx context.Context, r *run) error {
		for _, t := range r.turns {
			for field := range r.fields {
				if _, kept := t.after[field]; kept && !r.projected(field) {
					return fmt.Errorf("%s is in the record", field)
				}
			}
		}
		return must(len(r.turns) > 0 && len(r.fields) > len(r.turns[0].after), "every field is kept")
	},
	"projected_field_persists_across_invokes": onTwo(func(ctx context.Context, r *run, a, b *turn) error {
		return errors.Join(must(len(a.after) > 0, "the record is empty"), loadedWhatWasSaved(ctx, r, a, b))
	}),
	"node_never_invoked": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return must(len(t.nodes()) == 0, "nodes ran: %v", t.nodes())
	}),
	"mid_invoke_save_survives_subsequent_crash": onOnly(func(_ context.Context, _ *run, t *turn) error {
		return errors.Join(must(t.err != nil, "the invocation did not fail"),
			must(len(of[sessionSaved](t.events)) == 1, "the session was saved %d times, want once", len(of[sessionSaved](t.events))),
			must(t.after != nil, "there is no record"))
	}),
}

// projected reports whether the case's session_state names the field.
func (r *run) projected(field string) bool {
	names, _ := r.c.values["session_state"].(map[string]any)["fields"].([]any)
	return slices.Contains(names, any(field))
}
