package graph

import (
	"cmp"
	"context"
	"errors"
	"slices"
)

// This file holds the ends of a turn: what each writes, and in which order.

// checkpoint keeps where the turn is, between two nodes.
func (r *turn) checkpoint(ctx context.Context) error {
	if r.opts.Checkpoints == nil {
		return nil
	}
	delta, err := r.state.delta(all)
	if err == nil {
		r.inv.State, r.inv.UpdatedAt = delta, r.now()
		err = r.opts.Checkpoints.SaveInvocation(ctx, r.inv)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return r.ended(ctx, err)
	}
	return &Error{Category: CheckpointSaveFailed, Node: r.inv.Next, State: r.state, Message: "the checkpoint could not be saved", Cause: err}
}

// complete ends a turn at END.
func (r *turn) complete(ctx context.Context) (Outcome, error) {
	out := r.outcome(Completed)
	if err := r.record(&TurnRecord{Status: Completed}); err != nil {
		return r.outcome(Errored), &Error{Category: StateValidationError, State: r.state, Message: "the state has no JSON form", Cause: err}
	}
	r.inv.Next, r.inv.State = "", Delta{}
	if err := r.commit(ctx, !r.opts.NoAutoSave); err != nil {
		return r.outcome(Errored), r.unsaved(err)
	}
	return out, nil
}

// unsaved is the error of a turn that reached END and could not be kept. The same turn can be tried again.
func (r *turn) unsaved(err error) *Error {
	e := &Error{Category: SessionSaveFailed, State: r.state, Message: "the end of the turn could not be saved", Cause: err}
	if CategoryOf(err) == SessionWriteConflict {
		e.Category = SessionWriteConflict
	}
	if r.inv.SessionID == "" {
		e.Category = CheckpointSaveFailed
	}
	return e
}

// suspend keeps the paused invocation, and the session with it (suspension §3, §8.6).
func (r *turn) suspend(ctx context.Context, node string, s *suspension) (Outcome, error) {
	out := r.outcome(Suspended)
	out.Descriptor, out.NodeName, out.Namespace = &s.descriptor, node, []string{node}
	if r.opts.Checkpoints == nil {
		return r.fail(ctx, &Error{Category: SuspensionPersistenceFailed, Node: node, State: r.state,
			Message: "no checkpointer is configured, so a suspended invocation cannot be kept"})
	}
	if r.req.BeforeSuspend != nil {
		if err := r.req.BeforeSuspend(ctx, out); err != nil {
			return r.fail(ctx, r.refused(ctx, node, err))
		}
	}
	before := r.inv
	err := r.record(&TurnRecord{Status: Suspended, Descriptor: &s.descriptor, Node: node})
	if err == nil {
		r.inv.Suspending, r.inv.Completed, r.inv.Descriptor, r.inv.Next = node, s.completed, &s.descriptor, ""
		r.inv.State, err = r.paused()
	}
	if err == nil {
		err = r.commit(ctx, true)
	}
	if err != nil {
		r.inv = before
		return r.fail(ctx, &Error{Category: SuspensionPersistenceFailed, Node: node, State: r.state,
			Message: "the suspension could not be kept", Cause: err})
	}
	return out, nil
}

// refused is the error of a suspension that BeforeSuspend did not want.
func (r *turn) refused(ctx context.Context, node string, err error) *Error {
	if ctx.Err() != nil {
		return r.ended(ctx, err)
	}
	category := cmp.Or(CategoryOf(err), SuspensionPersistenceFailed)
	return &Error{Category: category, Node: node, State: r.state, Message: "the signal could not be subscribed to", Cause: err}
}

// paused is the state that a suspended invocation brings back: what the session does not keep, and what the invocation
// wrote. Lists that the session keeps, and fields that this invocation left alone, are the session's at the resumption.
func (r *turn) paused() (Delta, error) {
	s := r.state
	s.dirty = slices.Clone(s.dirty)
	for i, f := range r.schema.fields {
		s.dirty[i] = !r.inSession(i) || s.dirty[i] && !f.log
	}
	return s.delta(all)
}

// fail ends a turn with an error. An interrupted turn is left as it is, to go on later.
func (r *turn) fail(ctx context.Context, err error) (Outcome, error) {
	failure, ok := errors.AsType[*Error](err)
	if !ok {
		failure = &Error{Category: NodeException, State: r.state, Cause: err}
	}
	out := r.outcome(Errored)
	if failure.State.schema != nil {
		out.State = failure.State
	}
	if failure.Category == Interrupted {
		return out, failure
	}
	rec := &TurnRecord{Status: Errored, Node: failure.Node, Error: &Failure{
		Category: failure.ErrorCategory(), Message: failure.Message, Diagnostic: DiagnosticOf(failure),
	}}
	if r.record(rec) != nil {
		return out, failure
	}
	r.inv.Next, r.inv.State = "", Delta{}
	if r.opts.Checkpoints != nil {
		// The failure is what the caller must hear. If it cannot be recorded, the same turn runs again later.
		_ = r.opts.Checkpoints.SaveInvocation(context.WithoutCancel(ctx), r.inv)
	}
	return out, failure
}

// record adds to the invocation what this turn came to.
func (r *turn) record(t *TurnRecord) error {
	t.ID = r.inv.Turn
	t.Loaded = r.loaded.lengths()
	if t.Status != Errored {
		var err error
		if t.Delta, err = r.state.delta(all); err != nil {
			return err
		}
	}
	r.inv.Status, r.inv.UpdatedAt = t.Status, r.now()
	r.inv.Turns = append(r.inv.Turns[:len(r.inv.Turns):len(r.inv.Turns)], *t)
	return nil
}

// commit writes the invocation's record, and the session's if it is to be saved: at once where the store can.
func (r *turn) commit(ctx context.Context, saveSession bool) error {
	ctx = context.WithoutCancel(ctx)
	saveSession = saveSession && r.inv.SessionID != "" && r.opts.Sessions != nil
	if !saveSession {
		return r.saveInvocation(ctx)
	}
	save, err := r.sessionSave(r.inv.Turn, r.state)
	if err != nil {
		return err
	}
	if both, ok := r.opts.Checkpoints.(Committer); ok && any(r.opts.Checkpoints) == any(r.opts.Sessions) {
		return both.Commit(ctx, r.inv.SessionID, save, r.inv)
	}
	if err := r.opts.Sessions.Save(ctx, r.inv.SessionID, save); err != nil {
		return err
	}
	return r.saveInvocation(ctx)
}

func (r *turn) saveInvocation(ctx context.Context) error {
	if r.opts.Checkpoints == nil {
		return nil
	}
	return r.opts.Checkpoints.SaveInvocation(ctx, r.inv)
}

func (c *Compiled) sessionSave(turnID string, s State) (SessionSave, error) {
	s.dirty = slices.Clone(s.dirty)
	for i := range s.dirty {
		s.dirty[i] = s.dirty[i] || s.unsaved // the first save writes the whole record
	}
	delta, err := s.delta(func(i int) bool { return c.session[i] })
	return SessionSave{SchemaVersion: c.schema.version, Delta: delta, Turn: turnID, At: c.opts.Now().UTC()}, err
}

func (r *turn) inSession(i int) bool {
	return r.session[i] && r.inv.SessionID != "" && r.opts.Sessions != nil
}

// replay answers a turn that had ended from its record.
func (r *turn) replay(t *TurnRecord) (Outcome, error) {
	var err error
	if r.loaded, err = r.state.before(t.Loaded, t.Delta); err == nil {
		r.state, err = r.state.patch(t.Delta)
	}
	if err != nil {
		return r.outcome(Errored), &Error{Category: CheckpointRecordInvalid, Message: "the record of the turn does not fit this graph", Cause: err}
	}
	out := r.outcome(t.Status)
	out.Recorded, out.Descriptor = true, t.Descriptor
	if t.Status == Suspended {
		out.NodeName, out.Namespace = t.Node, []string{t.Node}
	}
	if t.Status == Errored {
		return out, &Error{Category: t.Error.Category, Node: t.Node, State: r.state, Message: t.Error.Message,
			Cause: &recordedFailure{*t.Error}}
	}
	return out, nil
}

// recordedFailure is a failure read back from its record.
type recordedFailure struct{ f Failure }

func (e *recordedFailure) Error() string         { return e.f.Message }
func (e *recordedFailure) ErrorCategory() string { return e.f.Category }
func (e *recordedFailure) Diagnostic() string    { return e.f.Diagnostic }

func (s State) lengths() LogLengths {
	l := LogLengths{}
	for i, f := range s.schema.fields {
		if f.log {
			l[f.name] = s.values[i].(interface{ Len() int }).Len()
		}
	}
	return l
}

// before shortens the lists to what they were when the turn began. Of a list that the session has lost since, what the
// turn itself wrote is all there is.
func (s State) before(lengths LogLengths, wrote Delta) (State, error) {
	for i, f := range s.schema.fields {
		if !f.log {
			continue
		}
		stored, have := storedLog(s.values[i])
		length, d := lengths[f.name], wrote.Logs[f.name]
		kept := min(length, have)
		lost := d.Add[min(len(d.Add), max(0, kept-d.Keep)):min(len(d.Add), max(0, length-d.Keep))]
		v, err := f.fromLog(stored, kept, lost)
		if err != nil {
			return s, err
		}
		s = s.with(i, v)
	}
	return s, nil
}

func all(int) bool { return true }
