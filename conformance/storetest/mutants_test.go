package storetest_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

// mutation makes a sound store break its contract in one way.
type mutation struct {
	name     string
	clause   string // the clause that must notice
	property bool   // whether the property must notice too
	of       func(store.KV) store.KV
}

// broken is a store with some of its methods replaced. The replacements get the sound store.
type broken struct {
	store.KV
	view   func(store.KV, context.Context, func(store.Tx) error) error
	update func(store.KV, context.Context, func(store.Tx) error) error
	close  func(store.KV) error
}

func (b broken) View(ctx context.Context, fn func(store.Tx) error) error {
	if b.view != nil {
		return b.view(b.KV, ctx, fn)
	}
	return b.KV.View(ctx, fn)
}

func (b broken) Update(ctx context.Context, fn func(store.Tx) error) error {
	if b.update != nil {
		return b.update(b.KV, ctx, fn)
	}
	return b.KV.Update(ctx, fn)
}

func (b broken) Close() error {
	if b.close != nil {
		return b.close(b.KV)
	}
	return b.KV.Close()
}

// brokenTx is a transaction with some of its methods replaced. The replacements get the sound transaction.
type brokenTx struct {
	store.Tx
	get    func(tx store.Tx, key []byte) ([]byte, error)
	put    func(tx store.Tx, key, value []byte) error
	delete func(tx store.Tx, key []byte) error
	scan   func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error
}

func (b brokenTx) Get(key []byte) ([]byte, error) {
	if b.get != nil {
		return b.get(b.Tx, key)
	}
	return b.Tx.Get(key)
}

func (b brokenTx) Put(key, value []byte) error {
	if b.put != nil {
		return b.put(b.Tx, key, value)
	}
	return b.Tx.Put(key, value)
}

func (b brokenTx) Delete(key []byte) error {
	if b.delete != nil {
		return b.delete(b.Tx, key)
	}
	return b.Tx.Delete(key)
}

func (b brokenTx) Scan(from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
	if b.scan != nil {
		return b.scan(b.Tx, from, to, reverse, fn)
	}
	return b.Tx.Scan(from, to, reverse, fn)
}

// transactions breaks the transactions of a store: each gets the replacements that of returns for it.
func transactions(of func() brokenTx) func(store.KV) store.KV {
	in := func(fn func(store.Tx) error) func(store.Tx) error {
		return func(tx store.Tx) error {
			t := of()
			t.Tx = tx
			return fn(t)
		}
	}
	return func(kv store.KV) store.KV {
		return broken{
			KV:     kv,
			view:   func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error { return kv.View(ctx, in(fn)) },
			update: func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error { return kv.Update(ctx, in(fn)) },
		}
	}
}

// always is transactions with the same replacements for each.
func always(t brokenTx) func(store.KV) store.KV { return transactions(func() brokenTx { return t }) }

// scanning breaks Scan.
func scanning(scan func(store.Tx, []byte, []byte, bool, func(key, value []byte) bool) error) func(store.KV) store.KV {
	return always(brokenTx{scan: scan})
}

// updating breaks Update.
func updating(update func(store.KV, context.Context, func(store.Tx) error) error) func(store.KV) store.KV {
	return func(kv store.KV) store.KV { return broken{KV: kv, update: update} }
}

// viewing breaks View.
func viewing(view func(store.KV, context.Context, func(store.Tx) error) error) func(store.KV) store.KV {
	return func(kv store.KV) store.KV { return broken{KV: kv, view: view} }
}

func mutants() []mutation {
	return []mutation{
		{"keeps the first value", "a read sees the writes before it", true,
			always(brokenTx{put: func(tx store.Tx, key, value []byte) error {
				if old, err := tx.Get(key); old != nil || err != nil {
					return err
				}
				return tx.Put(key, value)
			}})},
		{"deletes nothing", "a deleted key is gone, and deleting it again is no error", true,
			always(brokenTx{delete: func(store.Tx, []byte) error { return nil }})},
		{"deletes only what is there", "a deleted key is gone, and deleting it again is no error", true,
			always(brokenTx{delete: func(tx store.Tx, key []byte) error {
				if old, err := tx.Get(key); old == nil {
					return errors.Join(err, errors.New("not found"))
				}
				return tx.Delete(key)
			}})},
		{"empty for missing", "a deleted key is gone, and deleting it again is no error", true,
			always(brokenTx{get: func(tx store.Tx, key []byte) ([]byte, error) {
				value, err := tx.Get(key)
				if err == nil && value == nil {
					value = []byte{}
				}
				return value, err
			}})},
		{"nil for empty", "an empty value is not a missing one", true,
			always(brokenTx{get: func(tx store.Tx, key []byte) ([]byte, error) {
				value, err := tx.Get(key)
				if len(value) == 0 {
					value = nil
				}
				return value, err
			}})},
		{"nil for empty in scans", "an empty value is not a missing one", false,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				return tx.Scan(from, to, reverse, func(key, value []byte) bool {
					return fn(key, append([]byte(nil), value...))
				})
			})},
		{"keeps the caller's slice", "a value put is a copy", false, aliasing},
		{"writes values in place", "a value read stays as it was while its transaction writes", false,
			transactions(overwriting)},
		{"cuts values at 64 KiB", "a megabyte comes back as it was", false,
			always(brokenTx{put: func(tx store.Tx, key, value []byte) error {
				return tx.Put(key, value[:min(len(value), 64<<10)])
			}})},
		{"takes any key", "keys have 1 to 32768 bytes of any kind", false,
			always(brokenTx{put: func(tx store.Tx, key, value []byte) error {
				return tx.Put(append([]byte("k"), key[:min(len(key), 100)]...), value)
			}})},
		{"refuses the longest key", "keys have 1 to 32768 bytes of any kind", false,
			always(brokenTx{put: func(tx store.Tx, key, value []byte) error {
				if len(key) == store.MaxKey {
					return store.ErrKey
				}
				return tx.Put(key, value)
			}})},

		{"scans in the order of length", "a scan is in byte order", true,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				return resorted(tx, from, to, reverse, fn, func(a, b []byte) int {
					return cmp.Or(len(a)-len(b), bytes.Compare(a, b))
				})
			})},
		{"scans without regard to case", "a scan is in byte order", false,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				return resorted(tx, from, to, reverse, fn, func(a, b []byte) int {
					return cmp.Or(bytes.Compare(bytes.ToLower(a), bytes.ToLower(b)), bytes.Compare(a, b))
				})
			})},
		{"ignores reverse", "a reverse scan is in reverse byte order", true,
			scanning(func(tx store.Tx, from, to []byte, _ bool, fn func(key, value []byte) bool) error {
				return tx.Scan(from, to, false, fn)
			})},
		{"reverse scans begin at from", "a reverse scan is in reverse byte order", true,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				if reverse {
					from, to = to, from
				}
				return tx.Scan(from, to, reverse, fn)
			})},
		{"scans to the end of the range and one further", "a scan holds its bounds", true,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				if to != nil {
					to = append(bytes.Clone(to), 0)
				}
				return tx.Scan(from, to, reverse, fn)
			})},
		{"scans behind from", "a scan holds its bounds", true,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				if len(from) > 0 {
					from = append(bytes.Clone(from), 0)
				}
				return tx.Scan(from, to, reverse, fn)
			})},
		{"takes an empty to for none", "a scan holds its bounds", true,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				if len(to) == 0 {
					to = nil
				}
				return tx.Scan(from, to, reverse, fn)
			})},
		{"scans on when told to stop", "a scan stops when told", false,
			scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
				return tx.Scan(from, to, reverse, func(key, value []byte) bool {
					fn(key, value)
					return true
				})
			})},
		{"scans what is committed", "a scan sees the writes of its transaction", true, scanningTheCommitted},
		{"reverse scans end at a wide gap", "a scan passes over a wide gap", false, transactions(endingAtGap)},
		{"writes inside a scan", "a scan may read but not write", false, writingInScan},

		{"keeps what was given up", "an error undoes the transaction", true,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				var given error
				err := kv.Update(ctx, func(tx store.Tx) error {
					given = fn(tx)
					return nil
				})
				if err != nil {
					return err
				}
				return given
			})},
		{"swallows errors", "an error undoes the transaction", true,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				_ = kv.Update(ctx, fn)
				return nil
			})},
		{"drops the update after one that failed", "an error undoes the transaction and none of its neighbours", true,
			droppingNeighbours},
		{"commits when fn panics", "a panic undoes the transaction and reaches the caller", false,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				var panicked any
				err := kv.Update(ctx, func(tx store.Tx) error {
					defer func() { panicked = recover() }()
					return fn(tx)
				})
				if panicked != nil {
					panic(panicked)
				}
				return err
			})},
		{"swallows panics", "a panic undoes the transaction and reaches the caller", false,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				defer func() { _ = recover() }()
				return kv.Update(ctx, fn)
			})},
		{"stays locked after a panic", "a panic undoes the transaction and reaches the caller", false, lockingForGood},
		{"stays locked after an exit", "a goroutine that exits inside a transaction undoes it", false, lockingForGood},
		{"ignores writes in views", "a view cannot write", false,
			viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				return kv.View(ctx, func(tx store.Tx) error {
					return fn(brokenTx{Tx: tx, put: func(store.Tx, []byte, []byte) error { return nil }})
				})
			})},
		{"writes in views", "a view cannot write", false,
			viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error { return kv.Update(ctx, fn) })},
		{"swallows errors of views", "a view returns the error of its function", false,
			viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				_ = kv.View(ctx, fn)
				return nil
			})},
		{"views what is new", "a view is a snapshot", false, viewingLive},
		{"views what is not committed", "a view sees nothing of a running update", false, viewingDirty},
		{"views wait for updates", "a view sees nothing of a running update", false,
			viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error { return kv.Update(ctx, fn) })},
		{"loses updates", "concurrent increments all count", false, optimistic(nothing)},
		{"checks only what it writes", "two updates cannot each rely on what the other changes", false, optimistic(writes)},
		{"checks only what it gets", "two updates cannot both find a range empty and fill it", false, optimistic(gets)},
		{"keeps every run", "of a function that ran again only the last run counts", false,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				return errors.Join(kv.Update(ctx, fn), kv.Update(ctx, fn))
			})},

		{"ignores contexts", "a context that has ended lets nothing begin", false,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				return kv.Update(context.WithoutCancel(ctx), fn)
			})},
		{"ignores contexts of views", "a context that has ended lets nothing begin", false,
			viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				return kv.View(context.WithoutCancel(ctx), fn)
			})},
		{"waits whatever the context says", "an update that waits gives up with its context", false,
			updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
				return kv.Update(context.WithoutCancel(ctx), fn)
			})},
		{"stays open", "a closed store says so", false,
			func(kv store.KV) store.KV { return broken{KV: kv, close: func(store.KV) error { return nil }} }},
		{"closes under a view", "close waits for a running view", false, closingAtOnce},
		{"closes under an update", "close waits for a running update", false, closingAtOnce},
	}
}

// resorted scans in another order.
func resorted(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool, compare func(a, b []byte) int) error {
	var pairs [][2][]byte
	err := tx.Scan(from, to, false, func(key, value []byte) bool {
		pairs = append(pairs, [2][]byte{key, value})
		return true
	})
	slices.SortFunc(pairs, func(a, b [2][]byte) int { return compare(a[0], b[0]) })
	if reverse {
		slices.Reverse(pairs)
	}
	for _, p := range pairs {
		if !fn(p[0], p[1]) {
			break
		}
	}
	return err
}

// aliasing reads the slices that were given to Put.
func aliasing(kv store.KV) store.KV {
	given := map[string][]byte{}
	return always(brokenTx{
		put: func(tx store.Tx, key, value []byte) error {
			given[string(key)] = value
			return tx.Put(key, value)
		},
		get: func(tx store.Tx, key []byte) ([]byte, error) {
			value, err := tx.Get(key)
			if value != nil {
				value = given[string(key)]
			}
			return value, err
		},
	})(kv)
}

// overwriting puts new values into the slices that Get gave.
func overwriting() brokenTx {
	got := map[string][]byte{}
	return brokenTx{
		get: func(tx store.Tx, key []byte) ([]byte, error) {
			value, err := tx.Get(key)
			got[string(key)] = value
			return value, err
		},
		put: func(tx store.Tx, key, value []byte) error {
			copy(got[string(key)], value)
			return tx.Put(key, value)
		},
	}
}

// endingAtGap ends reverse scans after three keys once the transaction has deleted many.
func endingAtGap() brokenTx {
	deleted := 0
	return brokenTx{
		delete: func(tx store.Tx, key []byte) error {
			deleted++
			return tx.Delete(key)
		},
		scan: func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
			n := 0
			return tx.Scan(from, to, reverse, func(key, value []byte) bool {
				n++
				return fn(key, value) && !(reverse && deleted > 100 && n == 3)
			})
		},
	}
}

// scanningTheCommitted scans what was there before the transaction.
func scanningTheCommitted(kv store.KV) store.KV {
	return scanning(func(_ store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
		return kv.View(context.Background(), func(tx store.Tx) error { return tx.Scan(from, to, reverse, fn) })
	})(kv)
}

// writingInScan scans a copy, and so can write meanwhile.
func writingInScan(kv store.KV) store.KV {
	return scanning(func(tx store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
		return resorted(tx, from, to, reverse, fn, bytes.Compare)
	})(kv)
}

// droppingNeighbours loses an Update that comes after a failed one, as a group commit does that gives up as a whole.
func droppingNeighbours(kv store.KV) store.KV {
	var failed atomic.Bool
	errDropped := errors.New("dropped")
	return updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
		err := kv.Update(ctx, func(tx store.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			if failed.Swap(false) {
				return errDropped
			}
			return nil
		})
		if err == errDropped {
			return nil
		}
		if err != nil {
			failed.Store(true)
		}
		return err
	})(kv)
}

// lockingForGood does not unlock when fn does not return.
func lockingForGood(kv store.KV) store.KV {
	var mu sync.Mutex
	return updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
		mu.Lock()
		err := kv.Update(ctx, fn)
		mu.Unlock()
		return err
	})(kv)
}

// viewingLive reads the newest state in every call of a View.
func viewingLive(kv store.KV) store.KV {
	live := func(use func(store.Tx) error) error { return kv.View(context.Background(), use) }
	return viewing(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
		return kv.View(ctx, func(tx store.Tx) error {
			return fn(brokenTx{
				Tx: tx,
				get: func(_ store.Tx, key []byte) (value []byte, err error) {
					err = live(func(tx store.Tx) error {
						value, err = tx.Get(key)
						return err
					})
					return value, err
				},
				scan: func(_ store.Tx, from, to []byte, reverse bool, fn func(key, value []byte) bool) error {
					return live(func(tx store.Tx) error { return tx.Scan(from, to, reverse, fn) })
				},
			})
		})
	})(kv)
}

// viewingDirty reads in View what any Update has put, committed or not.
func viewingDirty(kv store.KV) store.KV {
	var put sync.Map
	return broken{
		KV: kv,
		update: func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
			return kv.Update(ctx, func(tx store.Tx) error {
				return fn(brokenTx{Tx: tx, put: func(tx store.Tx, key, value []byte) error {
					put.Store(string(key), bytes.Clone(value))
					return tx.Put(key, value)
				}})
			})
		},
		view: func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
			return kv.View(ctx, func(tx store.Tx) error {
				return fn(brokenTx{Tx: tx, get: func(tx store.Tx, key []byte) ([]byte, error) {
					if value, there := put.Load(string(key)); there {
						return value.([]byte), nil
					}
					return tx.Get(key)
				}})
			})
		},
	}
}

// closingAtOnce closes in the background.
func closingAtOnce(kv store.KV) store.KV {
	return broken{KV: kv, close: func(kv store.KV) error {
		go func() { _ = kv.Close() }()
		return nil
	}}
}

// checked is what an optimistic store compares before it commits.
type checked int

const (
	nothing checked = iota
	writes          // the keys written: snapshot isolation
	gets            // the keys written and those read by Get
)

// optimistic runs fn on a copy of the store and applies its writes afterwards, if what is checked has not changed
// since; otherwise it runs fn again.
func optimistic(what checked) func(store.KV) store.KV {
	errChanged := errors.New("changed meanwhile")
	return updating(func(kv store.KV, ctx context.Context, fn func(store.Tx) error) error {
		for {
			var writing []func(store.Tx) error
			seen := map[string][]byte{}
			scratch, before, err := copies(ctx, kv)
			if err != nil {
				return err
			}
			err = scratch.Update(ctx, func(tx store.Tx) error {
				return fn(noting(tx, before, what, seen, &writing))
			})
			if err != nil {
				return err
			}
			err = kv.Update(ctx, func(tx store.Tx) error {
				for key, old := range seen {
					if now, err := tx.Get([]byte(key)); err != nil || !bytes.Equal(now, old) || (now == nil) != (old == nil) {
						return errChanged
					}
				}
				var errs []error
				for _, write := range writing {
					errs = append(errs, write(tx))
				}
				return errors.Join(errs...)
			})
			if err != errChanged {
				return err
			}
		}
	})
}

// noting notes what has to be checked and written later.
func noting(tx store.Tx, before map[string][]byte, what checked, seen map[string][]byte, writing *[]func(store.Tx) error) store.Tx {
	note := func(key []byte, from checked) {
		if what >= from {
			seen[string(key)] = before[string(key)]
		}
	}
	return brokenTx{
		Tx: tx,
		get: func(tx store.Tx, key []byte) ([]byte, error) {
			note(key, gets)
			return tx.Get(key)
		},
		put: func(tx store.Tx, key, value []byte) error {
			note(key, writes)
			key, value = bytes.Clone(key), bytes.Clone(value)
			*writing = append(*writing, func(tx store.Tx) error { return tx.Put(key, value) })
			return tx.Put(key, value)
		},
		delete: func(tx store.Tx, key []byte) error {
			note(key, writes)
			key = bytes.Clone(key)
			*writing = append(*writing, func(tx store.Tx) error { return tx.Delete(key) })
			return tx.Delete(key)
		},
	}
}

// copies returns a copy of the store to scribble on, and one to look back at.
func copies(ctx context.Context, kv store.KV) (scratch store.KV, before map[string][]byte, err error) {
	scratch, before = memory.New(), map[string][]byte{}
	err = kv.View(ctx, func(tx store.Tx) error {
		return tx.Scan(nil, nil, false, func(key, value []byte) bool {
			before[string(key)] = value
			return true
		})
	})
	if err != nil {
		return nil, nil, err
	}
	err = scratch.Update(ctx, func(tx store.Tx) error {
		var errs []error
		for key, value := range before {
			errs = append(errs, tx.Put([]byte(key), value))
		}
		return errors.Join(errs...)
	})
	return scratch, before, err
}
