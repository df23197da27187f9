// Package chat is the chat harness: OpenArmature harness-chat §3 to §11 on top of core/harness. Send takes a message of
// a session and returns what the turn came to; Signal delivers what a suspended turn waited for, and subscribed
// listeners receive the reply.
//
// Conversation history is the session field Messages. The package knows no platform and keeps nothing but the locks of
// running turns and the listeners.
package chat

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
	"github.com/parley-chat/parley/core/llm"
)

// Messages is the conversation history (§4): the canonical field "messages", a list of messages with the append
// reducer. A chat graph declares it.
var Messages = graph.Append[llm.Message]("messages")

// TurnOutcome is what a turn came to (§5.2). Which fields are set depends on Status.
type TurnOutcome struct {
	Status       graph.Status // completed, errored or suspended
	Path         harness.Path
	SessionID    string
	InvocationID string

	// Replies are the messages that the completed turn added, of every role, in graph-execution order, without the user's
	// own. Never nil when completed.
	Replies    []llm.Message
	FinalState graph.State

	// Bucket, Category and Reply describe an error; Reply is a system message to show as it is (§10).
	Bucket   harness.Bucket
	Category string
	Reply    llm.Message
	Err      error

	// Descriptor says what a suspended turn waits for; PendingMessages are those it added before (§8.1), never nil when
	// suspended.
	Descriptor      graph.Descriptor
	PendingMessages []llm.Message

	// Resumed are outcomes of resumed turns that nobody listened for, oldest first, ahead of this one: the optional
	// synchronous form of §8.2. Empty unless Options.KeepForNextSend.
	Resumed []TurnOutcome
	// Recorded is set when the turn had ended before and this is its record.
	Recorded bool
}

// Interrupted reports that the turn did not end: the same turn goes on when it is sent again.
func (o TurnOutcome) Interrupted() bool { return o.Category == graph.Interrupted }

// Options complete a chat harness; the zero value is right.
type Options struct {
	// Reply words the errors for people; DefaultReply by default. It must keep each bucket's meaning (§10).
	Reply func(*harness.Failure) string
	// KeepForNextSend hands outcomes of resumed turns that have no listener to the next Send of their session.
	KeepForNextSend bool
}

// Chat is a chat harness. Its methods may be called concurrently; turns of one session run one after the other (§5.3).
type Chat struct {
	harness   *harness.Harness
	opts      Options
	locks     locks
	listeners listeners

	mu   sync.Mutex
	kept map[string][]TurnOutcome
}

// New returns a chat harness over a sessioned harness (§1).
func New(h *harness.Harness, o Options) *Chat {
	if o.Reply == nil {
		o.Reply = DefaultReply
	}
	return &Chat{harness: h, opts: o}
}

// SendOptions are what a Send may carry besides.
type SendOptions struct {
	// TurnID makes the call idempotent: a turn that came to an end is answered from its record and nothing runs; one that
	// a dead process left goes on.
	TurnID string
	// OnEmit receives what the graph's nodes emit while the turn runs.
	OnEmit func(any)
}

// Send runs one turn for an inbound message (§5). Everything that can go wrong is an errored outcome. It waits for the
// session's turns before it, as long as ctx lasts.
func (c *Chat) Send(ctx context.Context, sessionID string, message llm.Message, o SendOptions) TurnOutcome {
	if err := validate(sessionID, message); err != nil {
		return c.errored(TurnOutcome{SessionID: sessionID}, harness.Categorize(err))
	}
	unlock, err := c.locks.lock(ctx, sessionID)
	if err != nil {
		return c.errored(TurnOutcome{SessionID: sessionID}, waitingEnded(err))
	}
	defer unlock()
	res := c.harness.Handle(ctx, harness.Transmission{
		Intent: harness.ExistingSession, SessionID: sessionID, Input: graph.Update{Messages.Add(message)},
		TurnID: o.TurnID, OnEmit: o.OnEmit,
	})
	out := c.outcome(ctx, res, 1)
	out.Resumed = c.takeKept(sessionID)
	return out
}

// validate checks what §5.1 and §3.1 demand before anything is loaded.
func validate(sessionID string, message llm.Message) error {
	if sessionID == "" {
		return &harness.Error{Category: harness.SessionIDUnresolved, Message: "a message needs the id of its session"}
	}
	if err := message.Validate(); err != nil {
		return &harness.Error{Category: harness.ChatMessageShapeInvalid, Message: graph.DiagnosticOf(err), Cause: cause{err}}
	}
	return nil
}

// cause hides the category of what it wraps: the chat boundary has its own.
type cause struct{ error }

// Signal is what arrived for a suspended turn.
type Signal struct {
	// SignalID names what was waited for. InvocationID may be given instead, together with SessionID.
	SignalID     string
	InvocationID string
	SessionID    string
	// Payload replaces fields of the suspended state (suspension §6).
	Payload map[string]json.RawMessage
	// TurnID makes the delivery idempotent, as in SendOptions.
	TurnID string
	OnEmit func(any)
}

// Signal resumes the turn that waits (§8.2) and returns once its outcome was given to every listener of the session: also
// when the engine refused to resume, because the invocation is over or the payload does not fit. What was interrupted,
// and a signal that leads to no invocation, is told to the caller alone.
//
// An error is a listener's: the outcome stands, and the same signal with the same turn id delivers it again. To deliver
// it again, after a crash as well, name the invocation and its session: a signal id is known only as long as the turn
// waits.
func (c *Chat) Signal(ctx context.Context, s Signal) (TurnOutcome, error) {
	if s.InvocationID == "" {
		sub, err := c.harness.Correlate(ctx, s.SignalID)
		if err != nil {
			return c.errored(TurnOutcome{SessionID: s.SessionID}, harness.Categorize(err)), nil
		}
		s.InvocationID, s.SessionID = sub.InvocationID, sub.SessionID
	}
	unlock, err := c.locks.lock(ctx, s.SessionID)
	if err != nil {
		return c.errored(TurnOutcome{SessionID: s.SessionID}, waitingEnded(err)), nil
	}
	defer unlock()
	res := c.harness.Handle(ctx, harness.Transmission{
		Intent: harness.SignalResume, SignalID: s.SignalID, InvocationID: s.InvocationID, Signal: s.Payload,
		TurnID: s.TurnID, OnEmit: s.OnEmit,
	})
	out := c.outcome(ctx, res, 0)
	out.SessionID = s.SessionID
	if out.Interrupted() {
		return out, nil
	}
	heard, err := c.listeners.fire(ctx, s.SessionID, out)
	if !heard && c.opts.KeepForNextSend {
		c.keep(out)
	}
	return out, err
}

// outcome turns a harness result into a chat outcome. own is the number of the caller's own messages at the beginning
// of what the turn added.
func (c *Chat) outcome(ctx context.Context, res harness.Result, own int) TurnOutcome {
	out := TurnOutcome{
		Status: res.Outcome.Status, Path: res.Path, SessionID: res.Outcome.SessionID,
		InvocationID: res.Outcome.InvocationID, Recorded: res.Outcome.Recorded,
	}
	if res.Failure != nil {
		return c.errored(out, res.Failure)
	}
	before := Messages.Get(res.Outcome.Loaded).Len()
	if res.Path != harness.PathSignalResume {
		out.Path = pathByHistory(before)
	}
	history := Messages.Get(res.Outcome.State)
	tail, err := history.Slice(ctx, before+own, history.Len())
	if err != nil {
		return c.errored(out, harness.Categorize(err))
	}
	if tail == nil {
		tail = []llm.Message{}
	}
	if out.Status == graph.Suspended {
		out.Descriptor, out.PendingMessages = *res.Outcome.Descriptor, tail
		return out
	}
	out.Replies, out.FinalState = tail, res.Outcome.State
	return out
}

// pathByHistory classifies a send by the session's history (§6).
func pathByHistory(before int) harness.Path {
	if before == 0 {
		return harness.PathNewSession
	}
	return harness.PathExistingSession
}

func (c *Chat) errored(out TurnOutcome, f *harness.Failure) TurnOutcome {
	out.Status = graph.Errored
	out.Bucket, out.Category, out.Err = f.Bucket, f.Category, f.Err
	out.Reply = llm.SystemText(c.opts.Reply(f))
	return out
}

func waitingEnded(err error) *harness.Failure {
	return harness.Categorize(&graph.Error{Category: graph.Interrupted, Message: "the turn before it did not end in time", Cause: err})
}

func (c *Chat) keep(out TurnOutcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = make(map[string][]TurnOutcome)
	}
	c.kept[out.SessionID] = append(c.kept[out.SessionID], out)
}

func (c *Chat) takeKept(sessionID string) []TurnOutcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept := c.kept[sessionID]
	delete(c.kept, sessionID)
	return kept
}

// Delta is what a graph emits while an answer grows: the next piece of its text.
type Delta struct{ Text string }
