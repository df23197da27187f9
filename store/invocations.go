package store

import (
	"context"
	"time"

	"github.com/parley-chat/parley/core/graph"
	"github.com/parley-chat/parley/core/harness"
)

var _ harness.Suspensions = (*Records)(nil)

// LoadInvocation returns the record of an invocation, or nil.
func (r *Records) LoadInvocation(ctx context.Context, id string) (*graph.Invocation, error) {
	var inv graph.Invocation
	var found bool
	err := r.kv.View(ctx, func(tx Tx) (err error) {
		inv = graph.Invocation{}
		found, err = get(tx, kindInvocation.key(id), &inv)
		return err
	})
	if err != nil || !found {
		return nil, err
	}
	return &inv, nil
}

// SaveInvocation writes the record, and with it the index of what suspended invocations wait for.
func (r *Records) SaveInvocation(ctx context.Context, inv graph.Invocation) error {
	return r.kv.Update(ctx, func(tx Tx) error { return saveInvocation(tx, inv) })
}

// Commit writes a session and an invocation at once.
func (r *Records) Commit(ctx context.Context, sessionID string, save graph.SessionSave, inv graph.Invocation) error {
	return r.kv.Update(ctx, func(tx Tx) error {
		if err := saveSession(tx, sessionID, save); err != nil {
			return err
		}
		return saveInvocation(tx, inv)
	})
}

// DeleteInvocation removes the record. A suspended invocation is thereby cancelled.
func (r *Records) DeleteInvocation(ctx context.Context, id string) error {
	return r.kv.Update(ctx, func(tx Tx) error {
		if err := dropSignal(tx, id); err != nil {
			return err
		}
		return tx.Delete(kindInvocation.key(id))
	})
}

func saveInvocation(tx Tx, inv graph.Invocation) error {
	if err := dropSignal(tx, inv.ID); err != nil {
		return err
	}
	if inv.Status == graph.Suspended && inv.Descriptor != nil {
		if err := put(tx, kindSignal.key(inv.Descriptor.SignalID), waiter{inv.ID, inv.SessionID}); err != nil {
			return err
		}
	}
	return put(tx, kindInvocation.key(inv.ID), inv)
}

// dropSignal removes the index entry of what the stored invocation waited for, if it waited.
func dropSignal(tx Tx, id string) error {
	var before graph.Invocation
	found, err := get(tx, kindInvocation.key(id), &before)
	if err != nil || !found || before.Status != graph.Suspended || before.Descriptor == nil {
		return err
	}
	return tx.Delete(kindSignal.key(before.Descriptor.SignalID))
}

// waiter is who waits for a signal.
type waiter struct {
	InvocationID string `json:"invocation_id"`
	SessionID    string `json:"session_id,omitempty"`
}

// SuspendedOn returns the invocation that waits for the signal and its session, or empty strings.
func (r *Records) SuspendedOn(ctx context.Context, signalID string) (invocationID, sessionID string, err error) {
	var w waiter
	err = r.kv.View(ctx, func(tx Tx) error {
		w = waiter{}
		_, err := get(tx, kindSignal.key(signalID), &w)
		return err
	})
	return w.InvocationID, w.SessionID, err
}

// ForgetInvocations removes the records of invocations that ended before the given time and returns how many. A turn
// older than that is no longer recognised when it arrives again.
func (r *Records) ForgetInvocations(ctx context.Context, before time.Time) (int, error) {
	var old []string
	err := r.kv.View(ctx, func(tx Tx) error {
		old = nil
		return scan(tx, []byte{byte(kindInvocation)}, func(rest, raw []byte) bool {
			var inv graph.Invocation
			if decode(rest, raw, &inv) == nil && inv.UpdatedAt.Before(before) && inv.Status != graph.Running && inv.Status != graph.Suspended {
				old = append(old, inv.ID)
			}
			return true
		})
	})
	if err != nil {
		return 0, err
	}
	for n, id := range old {
		if err := r.DeleteInvocation(ctx, id); err != nil {
			return n, err
		}
	}
	return len(old), nil
}
