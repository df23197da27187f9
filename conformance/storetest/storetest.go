// Package storetest holds every store.KV to its contract. A back end passes when Run passes, and RunDurable too if it
// outlives its process:
//
//	func TestTheStoreKeepsTheContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) store.KV { return memory.New() })
//	}
//
// Each clause of the contract is a function that says as an error what it found wrong. So the suite is itself proved:
// its own tests run it on stores that are broken in one way each, and the right clause must notice.
package storetest

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/store"
)

// patience is how long a clause may take. It ends clauses that hang on a broken store, and no others.
const patience = time.Minute

// Clause is one sentence of the contract.
type Clause struct {
	// Name is a sentence.
	Name string
	// Check returns what is wrong, or nil. kv is empty and nobody else's; Check may close it.
	Check func(ctx context.Context, kv store.KV) error
}

// Clauses returns the clauses that Run checks, besides Property.
func Clauses() []Clause {
	return []Clause{
		{"a read sees the writes before it", ReadYourWrites},
		{"a deleted key is gone, and deleting it again is no error", DeletedIsGone},
		{"an empty value is not a missing one", EmptyIsNotMissing},
		{"a value put is a copy", ValuesAreCopied},
		{"a value read stays as it was while its transaction writes", ValuesReadStay},
		{"a megabyte comes back as it was", LargeValues},
		{"keys have 1 to 32768 bytes of any kind", KeyLimits},

		{"a scan is in byte order", ScanOrder},
		{"a reverse scan is in reverse byte order", ReverseScanOrder},
		{"a scan holds its bounds", ScanBounds},
		{"a scan stops when told", ScanStops},
		{"a scan sees the writes of its transaction", ScanSeesOwnWrites},
		{"a scan passes over a wide gap", ScanOverGap},
		{"a scan may read but not write", ScanMayNotWrite},

		{"an error undoes the transaction", ErrorRollsBack},
		{"an error undoes the transaction and none of its neighbours", ErrorSparesOthers},
		{"a panic undoes the transaction and reaches the caller", PanicRollsBack},
		{"a goroutine that exits inside a transaction undoes it", ExitRollsBack},
		{"a view cannot write", ViewIsReadOnly},
		{"a view returns the error of its function", ViewReturnsError},
		{"a view is a snapshot", ViewIsSnapshot},
		{"a view sees nothing of a running update", ViewIsNotDirty},
		{"concurrent increments all count", Increments},
		{"two updates cannot each rely on what the other changes", WriteSkew},
		{"two updates cannot both find a range empty and fill it", Phantoms},
		{"of a function that ran again only the last run counts", LastRunCounts},

		{"a context that has ended lets nothing begin", EndedContext},
		{"an update that waits gives up with its context", WaitingContext},
		{"a closed store says so", ClosedSaysSo},
		{"close waits for a running view", CloseWaitsForView},
		{"close waits for a running update", CloseWaitsForUpdate},
	}
}

// Run checks every clause and the property on stores of their own. open returns an empty store; Run closes it.
func Run(t *testing.T, open func(t *testing.T) store.KV) {
	for _, clause := range Clauses() {
		t.Run(clause.Name, func(t *testing.T) {
			kv := opened(t, open)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := clause.Check(ctx, kv); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("any history reads like a sorted map", func(t *testing.T) {
		rapid.Check(t, Property(t.Context(), opened(t, open)))
	})
}

func opened(t *testing.T, open func(t *testing.T) store.KV) store.KV {
	t.Helper()
	kv := open(t)
	t.Cleanup(func() { _ = kv.Close() }) // a clause may have closed it
	return kv
}
