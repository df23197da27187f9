package graph

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Request is one call of Invoke: a new invocation, or the resumption of a suspended one.
type Request struct {
	// SessionID binds the invocation to a session (sessions §3). Empty: to none, and no session store is touched. A
	// resumption takes its session from the record.
	SessionID string
	// InvocationID is used as it is; empty: one is made. An id that is known already is the same invocation: it goes on, or
	// is answered from its record.
	InvocationID string
	// CorrelationID joins invocations; empty: the invocation id.
	CorrelationID string
	// TurnID makes the call idempotent: a turn that came to an end is answered from its record. Empty: the invocation id.
	TurnID string
	// Input is merged through the reducers into the state that was loaded.
	Input Update
	// Resume is the id of a suspended invocation (suspension §7); Payload replaces fields of its state (§6).
	Resume  string
	Payload map[string]json.RawMessage
	// BeforeSuspend is asked before a suspension is kept. Its error turns the suspension into an error.
	BeforeSuspend func(ctx context.Context, o Outcome) error
	// OnEmit receives what nodes Emit, on their goroutines.
	OnEmit func(any)
	// Observers see this invocation only, after those of the graph.
	Observers []Observer
}

// Outcome is how a turn ended: completed, suspended (suspension §5) or errored.
type Outcome struct {
	Status        Status
	InvocationID  string
	CorrelationID string
	SessionID     string
	// Loaded is the state before Input or Payload was merged; State the one at the end, or at the point of suspension or
	// failure.
	Loaded State
	State  State
	// Descriptor, NodeName and Namespace are set when suspended.
	Descriptor *Descriptor
	NodeName   string
	Namespace  []string
	// Recorded is set when the turn had ended before and nothing ran now.
	Recorded bool
}

// Invoke runs one turn (graph-engine §3). It returns once the graph reached END, suspended or failed, and everything
// about that is durable. The error is an *Error, and is not nil exactly if the outcome is errored.
//
// The same turn may be invoked again, after a crash as well: if it had ended, its recorded outcome is returned and
// nothing runs; if not, it goes on at the node after the last checkpoint.
func (c *Compiled) Invoke(ctx context.Context, req Request) (Outcome, error) {
	r, recorded, err := c.begin(ctx, req)
	if err != nil {
		out := Outcome{Status: Errored, SessionID: req.SessionID, InvocationID: req.InvocationID}
		if r != nil {
			out = r.outcome(Errored)
		}
		return out, err
	}
	if recorded != nil {
		return r.replay(recorded)
	}
	defer func() { r.queue.close() }()
	return r.run(ctx)
}

// Save writes the session's state at this point of an invocation, from within a node (sessions §6.2): the state the
// node was given with the changes that it is about to return, merged through the reducers. An invocation that is bound
// to no session saves nothing. The error is an *Error; the node may swallow it.
func (c *Compiled) Save(ctx context.Context, s State, changes ...Change) error {
	id := IdentityFrom(ctx)
	if id.SessionID == "" || c.opts.Sessions == nil {
		return nil
	}
	s, err := s.apply(changes)
	if err != nil {
		return err
	}
	save, err := c.sessionSave(id.TurnID, s)
	if err == nil {
		err = c.opts.Sessions.Save(ctx, id.SessionID, save)
	}
	if err != nil {
		return &Error{Category: SessionSaveFailed, Node: id.Node, Message: "the session could not be saved", Cause: err}
	}
	return nil
}

// run is one turn under way.
type turn struct {
	*Compiled
	req    Request
	inv    Invocation
	loaded State
	state  State
	queue  *eventQueue
	fresh  bool // the first node since this process took the turn up
	again  bool // a process died in this turn before
	// savedBy is the turn that saved the session last.
	savedBy string
}

// begin loads what there is and decides what this call is: a new invocation, a resumption, one that goes on, or one
// that ended and has a record.
func (c *Compiled) begin(ctx context.Context, req Request) (*turn, *TurnRecord, error) {
	r := &turn{Compiled: c, req: req, fresh: true}
	known, err := c.known(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	if known == nil {
		return r, nil, r.start(ctx)
	}
	r.inv = *known
	if r.req.TurnID == "" && req.Resume == "" {
		r.req.TurnID = known.ID
	}
	if ended := known.turn(r.req.TurnID); ended != nil {
		return r, ended, r.load(ctx)
	}
	if known.Status == Running && known.Turn == r.req.TurnID {
		r.again = true
		return r, nil, r.goOn(ctx)
	}
	if req.Resume == "" || known.Status != Suspended {
		return nil, nil, &Error{Category: SuspensionRecordInvalid, Message: fmt.Sprintf("invocation %s is %s, not suspended", known.ID, known.Status)}
	}
	if r.req.TurnID == "" {
		r.req.TurnID = c.opts.NewID()
	}
	return r, nil, r.resume(ctx)
}

// known finds the record of the invocation that the request names, if it names one.
func (c *Compiled) known(ctx context.Context, req Request) (*Invocation, error) {
	id := req.InvocationID
	if req.Resume != "" {
		id = req.Resume
	}
	var inv *Invocation
	if c.opts.Checkpoints != nil && id != "" {
		var err error
		if inv, err = c.opts.Checkpoints.LoadInvocation(ctx, id); err != nil {
			return nil, &Error{Category: CheckpointRecordInvalid, Message: "the record of the invocation could not be read", Cause: err}
		}
	}
	if inv == nil && req.Resume != "" {
		return nil, &Error{Category: SuspensionRecordInvalid, Message: fmt.Sprintf("there is no invocation %s", req.Resume)}
	}
	return inv, nil
}

func (r *turn) start(ctx context.Context) error {
	if r.req.InvocationID == "" {
		r.req.InvocationID = r.opts.NewID()
	}
	if r.req.TurnID == "" {
		r.req.TurnID = r.req.InvocationID
	}
	if r.req.CorrelationID == "" {
		r.req.CorrelationID = r.req.InvocationID
	}
	r.inv = Invocation{
		ID: r.req.InvocationID, CorrelationID: r.req.CorrelationID, SessionID: r.req.SessionID,
		Status: Running, Turn: r.req.TurnID, Next: r.entry, StartedAt: r.opts.Now(),
	}
	if err := r.load(ctx); err != nil {
		return err
	}
	r.inv.Stored = r.loaded.stored()
	var err error
	r.state, err = r.loaded.apply(r.req.Input)
	return err
}

// goOn takes up a turn whose process died, at its checkpoint.
func (r *turn) goOn(ctx context.Context) error {
	if err := r.load(ctx); err != nil {
		return err
	}
	err := r.rebase()
	if err == nil {
		r.inv.Stored = r.loaded.stored()
		r.state, err = r.loaded.patch(r.inv.State)
	}
	if err != nil {
		return &Error{Category: CheckpointRecordInvalid, Message: "the checkpoint does not fit this graph", Cause: err}
	}
	return nil
}

// rebase sees to a session that was saved after the checkpoint: by another turn, behind whose items this one's go; or by
// this turn itself, which began without them.
func (r *turn) rebase() (err error) {
	switch {
	case r.inv.Status != Running:
	case r.savedBy == r.inv.Turn:
		r.loaded, err = r.loaded.before(r.inv.Stored, Delta{})
	default:
		r.inv.State = r.loaded.after(r.inv.State, r.inv.Stored)
	}
	return err
}

// resume takes up a suspended invocation (suspension §7). Lists that the session keeps are taken as they are in the
// session now: what was said there in the meantime stays, in its order.
func (r *turn) resume(ctx context.Context) error {
	if err := r.goOn(ctx); err != nil {
		return err
	}
	r.loaded = r.state
	var err error
	if r.state, err = r.state.overlay(r.req.Payload); err != nil {
		return err
	}
	next := r.inv.Suspending
	if r.inv.Completed {
		to, err := r.follow(ctx, r.inv.Suspending, r.state)
		if err != nil {
			return err
		}
		next = to.node
		if to.end {
			next = ""
		}
	}
	r.inv.Status, r.inv.Turn, r.inv.Next, r.inv.Descriptor = Running, r.req.TurnID, next, nil
	// Kept before anything runs: the next node often does what was waited for, and after a crash it must know.
	return r.checkpoint(ctx)
}

// load brings the session's state into the initial one (sessions §6.1).
func (r *turn) load(ctx context.Context) error {
	r.loaded = r.schema.initial()
	r.state = r.loaded
	if r.inv.SessionID == "" || r.opts.Sessions == nil {
		return nil
	}
	rec, err := r.opts.Sessions.Load(ctx, r.inv.SessionID)
	if err != nil {
		return &Error{Category: SessionLoadFailed, Message: "the session could not be loaded", Cause: err}
	}
	if rec == nil {
		r.loaded.unsaved = true
		r.state = r.loaded
		return nil
	}
	r.savedBy = rec.Turn
	if rec.SchemaVersion != r.schema.version {
		return &Error{Category: SessionStateMigrationMissing,
			Message: fmt.Sprintf("the session is at schema version %q, this graph at %q, and no migration leads there", rec.SchemaVersion, r.schema.version)}
	}
	if r.loaded, err = r.project(rec); err != nil {
		return &Error{Category: SessionLoadFailed, Message: "the session's state does not fit this graph", Cause: err}
	}
	r.state = r.loaded
	return nil
}

// project reads the kept fields of a session record into the initial state (sessions §4).
func (c *Compiled) project(rec *SessionRecord) (State, error) {
	s := c.schema.initial()
	for i, f := range c.schema.fields {
		if !c.session[i] {
			continue
		}
		var v any
		var err error
		switch log, raw := rec.Logs[f.name], rec.Fields[f.name]; {
		case f.log && log != nil:
			v, err = f.fromLog(log, log.Len(), nil)
		case !f.log && raw != nil:
			v, err = f.decode(raw)
		default:
			continue
		}
		if err != nil {
			return s, fmt.Errorf("field %q: %w", f.name, err)
		}
		s.values[i] = v
	}
	return s, nil
}

// run executes nodes until the turn ends.
func (r *turn) run(ctx context.Context) (Outcome, error) {
	ctx = context.WithValue(ctx, emitKey{}, r.req.OnEmit)
	r.queue = r.observe(ctx, r.req.Observers)
	for r.inv.Next != "" {
		next, err := r.step(ctx, r.inv.Next)
		if s, ok := suspensionIn(err); ok {
			return r.suspend(ctx, r.inv.Next, s)
		}
		if err != nil {
			return r.fail(ctx, err)
		}
		r.inv.Next = next.node
		if next.end {
			break
		}
		if err := r.checkpoint(ctx); err != nil {
			return r.outcome(Errored), err
		}
	}
	return r.complete(ctx)
}

// step runs one node and follows its edge (graph-engine §3).
func (r *turn) step(ctx context.Context, name string) (Target, error) {
	id := Identity{
		InvocationID: r.inv.ID, CorrelationID: r.inv.CorrelationID, SessionID: r.inv.SessionID,
		TurnID: r.inv.Turn, Node: name, Recovered: r.again && r.fresh,
	}
	r.fresh = false
	ctx = withIdentity(ctx, id)
	event := Event{NodeName: name, Namespace: []string{name}, Step: r.inv.Step, PreState: r.state}
	r.inv.Step++

	r.dispatch(ctx, event, PhaseStarted)
	to, post, err := r.attempt(ctx, name)
	if s, ok := suspensionIn(err); ok {
		event.Descriptor = &s.descriptor
		r.dispatch(ctx, event, PhaseSuspended)
		return Target{}, s
	}
	if err != nil {
		failure, _ := errors.AsType[*Error](err) // attempt returns no other
		failure.Node, failure.Namespace = name, event.Namespace
		if failure.State.schema == nil {
			failure.State = r.state // an edge's failure has the state after its node
		}
		event.Err = failure
		r.dispatch(ctx, event, PhaseCompleted)
		return Target{}, failure
	}
	event.PostState = &post
	r.dispatch(ctx, event, PhaseCompleted)
	r.state = post
	return to, nil
}

// attempt runs the node's body, merges its update and chooses the way on. Its error is an *Error or a suspension.
func (r *turn) attempt(ctx context.Context, name string) (Target, State, error) {
	if err := ctx.Err(); err != nil {
		return Target{}, r.state, r.ended(ctx, err)
	}
	update, err := r.body(ctx, name)
	if _, ok := suspensionIn(err); ok {
		return Target{}, r.state, err
	}
	if err != nil && ctx.Err() != nil {
		return Target{}, r.state, r.ended(ctx, err)
	}
	if err != nil {
		return Target{}, r.state, &Error{Category: NodeException, Cause: err}
	}
	post, err := r.state.apply(update)
	if err != nil {
		return Target{}, r.state, err
	}
	to, err := r.follow(ctx, name, post)
	return to, post, err
}

// body calls the node; a panic in it is a node_exception like any other.
func (r *turn) body(ctx context.Context, name string) (u Update, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return r.nodes[name](ctx, r.state)
}

// follow evaluates a node's edge on the state after its update.
func (r *turn) follow(ctx context.Context, from string, s State) (to Target, err error) {
	e := r.edges[from]
	if e.Choose == nil {
		return e.To, nil
	}
	defer func() {
		if p := recover(); p != nil {
			err = &Error{Category: EdgeException, Node: from, State: s, Cause: fmt.Errorf("panic: %v", p)}
		}
	}()
	to, err = e.Choose(ctx, s)
	if err != nil {
		return Target{}, &Error{Category: EdgeException, Node: from, State: s, Cause: err}
	}
	if _, ok := r.nodes[to.node]; !ok && !to.end {
		return Target{}, &Error{Category: RoutingError, Node: from, State: s, Message: fmt.Sprintf("the edge leads to %q, which is no node", to.node)}
	}
	return to, nil
}

// ended tells a cancelled invocation from an interrupted one.
func (r *turn) ended(ctx context.Context, err error) *Error {
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return &Error{Category: Cancelled, Message: "the work was stopped", Cause: err}
	}
	return &Error{Category: Interrupted, Message: "the work was interrupted and can go on", Cause: err}
}

func (r *turn) dispatch(ctx context.Context, e Event, p Phase) {
	if r.queue == nil {
		return
	}
	e.Phase, e.At = p, r.opts.Now()
	r.queue.dispatch(ctx, e)
}

func (r *turn) outcome(s Status) Outcome {
	return Outcome{
		Status: s, InvocationID: r.inv.ID, CorrelationID: r.inv.CorrelationID, SessionID: r.inv.SessionID,
		Loaded: r.loaded, State: r.state,
	}
}

func (r *turn) now() time.Time { return r.opts.Now().UTC() }
