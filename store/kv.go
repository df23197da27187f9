// Package store keeps what the bot must not forget. Its contract is small: an ordered key-value space with
// serialisable transactions. The typed records (sessions, invocations, inbox, outbox, approvals, audit, leases) are
// written once on top of it; a back end implements KV and nothing else. conformance/storetest holds every back end to
// what is written here.
package store

import (
	"context"
	"errors"
)

// KV is an ordered space of byte keys. All methods may be called concurrently, but not by an fn that is running: what
// an fn reads and writes, it reads and writes through its Tx.
//
// When ctx ends before fn began, the call returns ctx's error and fn is not run. A panic in fn reaches the caller of
// View or Update, nothing of that fn is written, and the store goes on.
type KV interface {
	// View runs fn on a consistent snapshot that holds every Update that returned before. It waits for no running
	// Update, and Updates go on beside it. It returns what fn returns.
	View(ctx context.Context, fn func(Tx) error) error

	// Update runs fn in a read-write transaction. When fn returns nil the writes are committed and durable before Update
	// returns; when it returns an error, nothing of it is, and Update returns that error. Transactions are
	// serialisable. fn may run more than once, so it has no effects of its own but assignments that it repeats. A
	// commit whose outcome is not known is reported as ErrUnknownOutcome.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for the transactions that are running and releases the store. Calls after it, a second Close among
	// them, return ErrClosed.
	Close() error
}

// Tx is one transaction. It is used by the goroutine that runs fn, and not after fn returned. The slices it gives are
// valid only until fn returns, and are not to be written to.
type Tx interface {
	// Get returns the value at key, or nil if there is none. An empty value is returned as a non-nil empty slice.
	Get(key []byte) ([]byte, error)
	// Put sets key to value; both are copied. In View it returns ErrReadOnly, inside Scan ErrScanning.
	Put(key, value []byte) error
	// Delete removes key; removing what is not there is no error. In View it returns ErrReadOnly, inside Scan
	// ErrScanning.
	Delete(key []byte) error
	// Scan calls fn for the keys in [from, to) in byte order, or in reverse order if reverse is set, until fn returns
	// false. A nil to is the end of the space; bounds may have any length. It sees the writes of its own transaction.
	// fn may read but must not write.
	Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error
}

// MaxKey is the length of the longest key, in bytes.
const MaxKey = 32768

var (
	// ErrReadOnly is returned by a write inside View.
	ErrReadOnly = errors.New("store: write in a read-only transaction")
	// ErrScanning is returned by a write inside the fn of a Scan. Collect the keys, then write.
	ErrScanning = errors.New("store: write inside a scan")
	// ErrClosed is returned by calls after Close.
	ErrClosed = errors.New("store: closed")
	// ErrUnknownOutcome wraps the error of a commit that may or may not have taken effect.
	ErrUnknownOutcome = errors.New("store: outcome of the commit is unknown")
	// ErrKey is returned by Get, Put and Delete for a key that is empty or longer than MaxKey.
	ErrKey = errors.New("store: key must have 1 to 32768 bytes")
)

// CheckKey returns ErrKey if key is not one that a store takes. Back ends call it.
func CheckKey(key []byte) error {
	if len(key) == 0 || len(key) > MaxKey {
		return ErrKey
	}
	return nil
}
