// Package harness wraps the engine for a deployment: it sorts what arrives into dispatch paths, runs one turn for each,
// sorts errors into three buckets, and ties signals to the invocations that wait for them. It is OpenArmature harness
// §3 to §7 and §10, with no transport of its own.
package harness

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/parley-chat/parley/core/graph"
)

// Engine is what a harness needs of a compiled graph.
type Engine interface {
	Invoke(ctx context.Context, req graph.Request) (graph.Outcome, error)
}

// Mode is fixed at construction (§2).
type Mode string

const (
	// Sessioned threads a session id into every invocation.
	Sessioned Mode = "sessioned"
	// Stateless never touches a session store.
	Stateless Mode = "stateless"
)

// Path is an inbound dispatch path (§3).
type Path string

const (
	PathStateless       Path = "3.0"
	PathNewSession      Path = "3.1"
	PathExistingSession Path = "3.2"
	PathSignalResume    Path = "3.3"
)

// Intent is what the transport takes a transmission for. Empty: the harness decides by what the transmission carries.
type Intent string

const (
	NewSession      Intent = "new_session"
	ExistingSession Intent = "existing_session"
	SignalResume    Intent = "signal_resume"
)

// Transmission is one thing that arrived, already taken apart by the transport.
type Transmission struct {
	Intent    Intent
	SessionID string
	// InvocationID or SignalID name the paused invocation of a signal.
	InvocationID string
	SignalID     string
	Signal       map[string]json.RawMessage
	// Input is merged into the initial state.
	Input graph.Update
	// TurnID makes the turn idempotent; empty: it is not.
	TurnID string
	// OnEmit receives what nodes emit while the turn runs.
	OnEmit func(any)
}

// Shape is the kind of answer a transport gives (§5): the three outcomes are told apart.
type Shape string

const (
	CompletionResponse      Shape = "completion_response"
	ErrorResponse           Shape = "error_response"
	SuspendedAcknowledgment Shape = "suspended_acknowledgment"
)

// Result is what became of a transmission.
type Result struct {
	Path    Path
	Outcome graph.Outcome
	Shape   Shape
	// Failure is set for ErrorResponse.
	Failure *Failure
}

// Harness runs turns. Its methods may be called concurrently; it blocks on nothing but the turn itself (§5.3).
type Harness struct {
	engine      Engine
	mode        Mode
	coordinator Coordinator
	newID       func() string
}

// Options complete a harness. The zero value has no coordinator: then a turn that suspends is an error, because nothing
// could ever wake it (§6).
type Options struct {
	Coordinator Coordinator
	// NewSessionID makes the ids of sessions that begin without one.
	NewSessionID func() string
}

// New returns a harness in the given mode.
func New(engine Engine, mode Mode, o Options) *Harness {
	if o.NewSessionID == nil {
		o.NewSessionID = graph.NewID
	}
	return &Harness{engine: engine, mode: mode, coordinator: o.Coordinator, newID: o.NewSessionID}
}

// Classify finds the dispatch path of a transmission (§3.4). It is a function of the transmission alone. The error is
// an *Error.
func (h *Harness) Classify(t Transmission) (Path, error) {
	signal := t.InvocationID != "" || t.SignalID != ""
	switch {
	case t.Intent == SignalResume && !signal:
		return "", &Error{Category: SignalCorrelationFailed, Message: "the signal names neither an invocation nor a signal id"}
	case t.Intent != "" && t.Intent != SignalResume && signal:
		return "", &Error{Category: PathClassificationAmbiguous, Message: "the transmission carries a signal and the intent of a message"}
	case signal && t.Input != nil:
		return "", &Error{Category: PathClassificationAmbiguous, Message: "the transmission carries both a signal and input"}
	case signal:
		return PathSignalResume, nil
	case h.mode == Stateless:
		return PathStateless, nil
	case t.Intent == NewSession || (t.Intent == "" && t.SessionID == ""):
		return PathNewSession, nil
	case t.SessionID == "":
		return "", &Error{Category: SessionIDUnresolved, Message: "a continuation needs the id of its session"}
	default:
		return PathExistingSession, nil
	}
}

// Handle runs the turn of a transmission. Every error is in the result, categorised; Handle itself cannot fail.
func (h *Harness) Handle(ctx context.Context, t Transmission) Result {
	path, err := h.Classify(t)
	if err != nil {
		return failed(path, graph.Outcome{Status: graph.Errored, SessionID: t.SessionID}, err)
	}
	req, err := h.request(ctx, path, t)
	if err != nil {
		return failed(path, graph.Outcome{Status: graph.Errored, SessionID: t.SessionID}, err)
	}
	out, err := h.engine.Invoke(ctx, req)
	if err != nil {
		return failed(path, out, err)
	}
	if path == PathSignalResume {
		h.forget(t.SignalID, out)
	}
	shape := CompletionResponse
	if out.Status == graph.Suspended {
		shape = SuspendedAcknowledgment
	}
	return Result{Path: path, Outcome: out, Shape: shape}
}

// request is the call of invoke() for a path (§3.0 to §3.3).
func (h *Harness) request(ctx context.Context, path Path, t Transmission) (graph.Request, error) {
	req := graph.Request{TurnID: t.TurnID, OnEmit: t.OnEmit, BeforeSuspend: h.subscribe}
	if path == PathSignalResume {
		id, err := h.correlate(ctx, t)
		req.Resume, req.Payload = id, t.Signal
		return req, err
	}
	// A turn's id is its invocation's: so the same turn is found again.
	req.InvocationID, req.Input = t.TurnID, t.Input
	if path == PathStateless {
		return req, nil
	}
	if req.SessionID = t.SessionID; req.SessionID == "" {
		req.SessionID = h.newID()
	}
	return req, nil
}

func failed(path Path, out graph.Outcome, err error) Result {
	return Result{Path: path, Outcome: out, Shape: ErrorResponse, Failure: Categorize(err)}
}

// subscribe registers what a suspending turn waits for, before the suspension is kept (§5.3, §6).
func (h *Harness) subscribe(ctx context.Context, out graph.Outcome) error {
	if h.coordinator == nil {
		return &Error{Category: SignalSubscriptionFailed, Message: "no signal coordinator is configured, so nothing could resume this turn"}
	}
	err := h.coordinator.Subscribe(ctx, Subscription{SignalID: out.Descriptor.SignalID, InvocationID: out.InvocationID, SessionID: out.SessionID})
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Category: SignalSubscriptionFailed, Message: "the signal coordinator refused the subscription", Cause: err}
}

// forget ends the subscription of a signal that did what it was for, unless the turn waits for the same one again.
func (h *Harness) forget(signalID string, out graph.Outcome) {
	f, ok := h.coordinator.(Forgetter)
	if ok && (out.Descriptor == nil || out.Descriptor.SignalID != signalID) {
		f.Forget(signalID)
	}
}

// correlate finds the paused invocation of a signal (§6).
func (h *Harness) correlate(ctx context.Context, t Transmission) (string, error) {
	if t.InvocationID != "" {
		return t.InvocationID, nil
	}
	sub, err := h.Correlate(ctx, t.SignalID)
	return sub.InvocationID, err
}

// Correlate finds what waits for a signal. The error is an *Error; nothing waiting is one.
func (h *Harness) Correlate(ctx context.Context, signalID string) (Subscription, error) {
	if h.coordinator == nil {
		return Subscription{}, &Error{Category: SignalCorrelationFailed, Message: "no signal coordinator is configured"}
	}
	sub, err := h.coordinator.Correlate(ctx, signalID)
	if err != nil {
		return Subscription{}, &Error{Category: SignalCorrelationFailed, Message: "the signal could not be looked up", Cause: err}
	}
	if sub.InvocationID == "" {
		return Subscription{}, &Error{Category: SignalCorrelationFailed, Message: "no invocation waits for this signal"}
	}
	return sub, nil
}
