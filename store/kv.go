// Package store keeps what the bot must not forget. Its contract is small: an ordered key-value space with
// serialisable transactions. The typed records (sessions, invocations, inbox, outbox, approvals, audit, leases) are
// written once on top of it; a back end implements KV and nothing else.
package store

import (
	"context"
	"errors"
)

// KV is an ordered space of byte keys. All methods may be called concurrently.
type KV interface {
	// View runs fn on a consistent snapshot. Slices given to fn are valid only until fn returns.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a read-write transaction. When fn returns nil the writes are committed and durable before Update
	// returns; when it returns an error, nothing of it is, and Update returns that error. Transactions are
	// serialisable. fn may run more than once, so it has no effects of its own but assignments that it repeats. A
	// commit whose outcome is not known is reported as ErrUnknownOutcome.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close releases the store. Calls after it return ErrClosed.
	Close() error
}

// Tx is one transaction. It is used by the goroutine that runs fn, and not after fn returned.
type Tx interface {
	// Get returns the value at key, or nil if there is none. An empty value is returned as a non-nil empty slice.
	Get(key []byte) ([]byte, error)
	// Put sets key to value; both are copied. In View it returns ErrReadOnly. Keys have 1 to 32,768 bytes.
	Put(key, value []byte) error
	// Delete removes key; removing what is not there is no error. In View it returns ErrReadOnly.
	Delete(key []byte) error
	// Scan calls fn for the keys in [from, to) in byte order, or in reverse order if reverse is set, until fn returns
	// false. A nil to is the end of the space. It sees the writes of its own transaction. fn must not write.
	Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error
}

var (
	// ErrReadOnly is returned by a write inside View.
	ErrReadOnly = errors.New("store: write in a read-only transaction")
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("store: closed")
	// ErrUnknownOutcome wraps the error of a commit that may or may not have taken effect.
	ErrUnknownOutcome = errors.New("store: outcome of the commit is unknown")
	// ErrKey is returned for a key that is empty or too long.
	ErrKey = errors.New("store: key must have 1 to 32768 bytes")
)
