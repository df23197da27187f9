package storetest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/store"
)

// DurableClause is one sentence of the contract of a store that outlives its process.
type DurableClause struct {
	// Name is a sentence.
	Name string
	// Check returns what is wrong, or nil. open opens the same store each time; it is empty at first. Check has closed it
	// when it returns nil.
	Check func(ctx context.Context, open func() (store.KV, error)) error
}

// DurableClauses returns the clauses that RunDurable checks.
func DurableClauses() []DurableClause {
	return []DurableClause{
		{"what was committed is there after reopening", CommittedStays},
		{"what was given up is not there after reopening", GivenUpStaysAway},
		{"every concurrent update is there after reopening", ConcurrentStay},
	}
}

// RunDurable checks that what is committed outlives the store that took it. open opens the store at path, a path of the
// test's own in a directory that exists, and makes it if it is not there; each store is closed before the next is opened.
func RunDurable(t *testing.T, open func(path string) (store.KV, error)) {
	for _, clause := range DurableClauses() {
		t.Run(clause.Name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := clause.Check(ctx, func() (store.KV, error) { return open(path) }); err != nil {
				t.Error(err)
			}
		})
	}
}

// CommittedStays: over three lives with changes in each.
func CommittedStays(ctx context.Context, open func() (store.KV, error)) error {
	return errors.Join(
		live(open, func(kv store.KV) error { return put(ctx, kv, "a=1", "b=1", "c=", "d="+fmt.Sprintf("%065536d", 7)) }),
		live(open, func(kv store.KV) error {
			if err := want(ctx, kv, "a=1", "b=1", "c=", "d="+fmt.Sprintf("%065536d", 7)); err != nil {
				return err
			}
			return kv.Update(ctx, func(tx store.Tx) error {
				return errors.Join(putAll(tx, "b=2"), tx.Delete([]byte("a")), tx.Delete([]byte("d")))
			})
		}),
		live(open, func(kv store.KV) error { return want(ctx, kv, "b=2", "c=") }))
}

// GivenUpStaysAway: a failed Update beside a committed one.
func GivenUpStaysAway(ctx context.Context, open func() (store.KV, error)) error {
	return errors.Join(
		live(open, func(kv store.KV) error {
			err := kv.Update(ctx, func(tx store.Tx) error { return errors.Join(putAll(tx, "a=2", "b=2"), errOnPurpose) })
			return errors.Join(wantError("Update whose fn fails", err, errOnPurpose), put(ctx, kv, "a=1"))
		}),
		live(open, func(kv store.KV) error { return want(ctx, kv, "a=1") }))
}

// ConcurrentStay: Updates at the same time, as a store that commits several at once sees them.
func ConcurrentStay(ctx context.Context, open func() (store.KV, error)) error {
	const updates = 100
	var pairs []string
	for i := range updates {
		pairs = append(pairs, fmt.Sprintf("%03d=%d", i, i))
	}
	return errors.Join(
		live(open, func(kv store.KV) error {
			return together(ctx, updates, func(i int) error { return put(ctx, kv, pairs[i]) })
		}),
		live(open, func(kv store.KV) error { return want(ctx, kv, pairs...) }))
}

// live opens the store, runs fn and closes it.
func live(open func() (store.KV, error), fn func(store.KV) error) error {
	kv, err := open()
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	err = fn(kv)
	if closing := kv.Close(); closing != nil {
		err = errors.Join(err, fmt.Errorf("Close: %w", closing))
	}
	return err
}
