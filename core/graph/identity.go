package graph

import (
	"context"
	"crypto/rand"
	"fmt"
)

// Identity says which invocation, session and node is running. It travels in the context of nodes and observers.
type Identity struct {
	InvocationID  string
	CorrelationID string
	SessionID     string // empty: the invocation is bound to no session
	TurnID        string
	Node          string
	// Recovered is set for the first node after a process died in this turn: the node may have begun before, and what it
	// does to the outside may be done already. The entry node of a new invocation is not told: before it there is no
	// checkpoint, so it should have no effects outside.
	Recovered bool
}

type identityKey struct{}
type emitKey struct{}

// IdentityFrom returns the identity of the running invocation, or the zero Identity outside of one.
func IdentityFrom(ctx context.Context) Identity {
	id, _ := ctx.Value(identityKey{}).(Identity)
	return id
}

func withIdentity(ctx context.Context, id Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, id)
}

// Emit shows something to whoever watches this invocation while it runs: the growing text of an answer, say. It is not
// kept and changes nothing.
func Emit(ctx context.Context, v any) {
	if emit, ok := ctx.Value(emitKey{}).(func(any)); ok && emit != nil {
		emit(v)
	}
}

// NewID returns a random UUID (version 4), as invocations get by default.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
