package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"

	"github.com/parley-chat/parley/store"
)

// ErrorRollsBack: new, changed and deleted keys are as before, and the caller gets the error.
func ErrorRollsBack(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1", "b=1"); err != nil {
		return err
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		return errors.Join(putAll(tx, "a=2", "a=3", "c=2"), tx.Delete([]byte("b")), putAll(tx, "b=4"),
			tx.Delete([]byte("b")), errOnPurpose)
	})
	if err := wantError("Update whose fn fails", err, errOnPurpose); err != nil {
		return err
	}
	return want(ctx, kv, "a=1", "b=1")
}

// ErrorSparesOthers: of many Updates at the same time every other one fails; the rest is there, and only that.
func ErrorSparesOthers(ctx context.Context, kv store.KV) error {
	const updates = 64
	err := together(ctx, updates, func(i int) error {
		err := kv.Update(ctx, func(tx store.Tx) error {
			if err := putAll(tx, fmt.Sprintf("%02d=", i), "last=1", "last=2", "last=3"); err != nil {
				return err
			}
			if i%2 == 1 {
				return errOnPurpose
			}
			return tx.Delete([]byte("last"))
		})
		if i%2 == 1 {
			return wantError("Update whose fn fails", err, errOnPurpose)
		}
		return err
	})
	if err != nil {
		return err
	}
	var even []string
	for i := 0; i < updates; i += 2 {
		even = append(even, fmt.Sprintf("%02d=", i))
	}
	return want(ctx, kv, even...)
}

// PanicRollsBack: the caller of Update or View gets the panic, nothing is written, and the store goes on.
func PanicRollsBack(ctx context.Context, kv store.KV) error {
	fn := func(tx store.Tx) error {
		_ = tx.Put([]byte("a"), []byte("2")) // refused in View
		panic(errOnPurpose)
	}
	if err := put(ctx, kv, "a=1"); err != nil {
		return err
	}
	err := errors.Join(
		wantError("panic in Update", panicOf(func() { _ = kv.Update(ctx, fn) }), errOnPurpose),
		wantError("panic in View", panicOf(func() { _ = kv.View(ctx, fn) }), errOnPurpose),
		want(ctx, kv, "a=1"))
	if err != nil {
		return err
	}
	return goesOn(ctx, kv)
}

// goesOn writes and reads once more in a store that has a=1.
func goesOn(ctx context.Context, kv store.KV) error {
	if err := wait(ctx, "the next Update", start(func() error { return put(ctx, kv, "b=2") })); err != nil {
		return err
	}
	return want(ctx, kv, "a=1", "b=2")
}

// panicOf returns the error that fn panics with.
func panicOf(fn func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	fn()
	return nil
}

// ExitRollsBack: runtime.Goexit in fn, which is how a test fails in it, writes nothing, and the store goes on.
func ExitRollsBack(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1"); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() {
		defer func() { ended <- nil }()
		_ = kv.Update(ctx, func(tx store.Tx) error {
			defer runtime.Goexit()
			return putAll(tx, "a=2")
		})
	}()
	if err := wait(ctx, "the goroutine that exits", ended); err != nil {
		return err
	}
	return goesOn(ctx, kv)
}

// ViewIsReadOnly: writes in View are refused by ErrReadOnly and do nothing.
func ViewIsReadOnly(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1"); err != nil {
		return err
	}
	err := kv.View(ctx, func(tx store.Tx) error {
		return errors.Join(
			wantError("Put in View", tx.Put([]byte("a"), []byte("2")), store.ErrReadOnly),
			wantError("Delete in View", tx.Delete([]byte("a")), store.ErrReadOnly),
			wantIn(tx, "a=1"))
	})
	return errors.Join(err, want(ctx, kv, "a=1"))
}

// ViewReturnsError: what fn returned, and nil only for nil.
func ViewReturnsError(ctx context.Context, kv store.KV) error {
	return errors.Join(
		wantError("View whose fn fails", kv.View(ctx, func(store.Tx) error { return errOnPurpose }), errOnPurpose),
		wantError("View", kv.View(ctx, func(store.Tx) error { return nil }), nil))
}

// ViewIsSnapshot: an Update goes on beside a View, and the View sees nothing of it; the next one does.
func ViewIsSnapshot(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1", "b=1"); err != nil {
		return err
	}
	err := kv.View(ctx, func(tx store.Tx) error {
		if err := wantGet(tx, "a", "1"); err != nil {
			return err
		}
		other := start(func() error {
			return kv.Update(ctx, func(tx store.Tx) error {
				return errors.Join(putAll(tx, "a=2", "c=2"), tx.Delete([]byte("b")))
			})
		})
		if err := wait(ctx, "an Update beside a View", other); err != nil {
			return err
		}
		return wantIn(tx, "a=1", "b=1")
	})
	if err != nil {
		return err
	}
	return want(ctx, kv, "a=2", "c=2")
}

// ViewIsNotDirty: a View beside a running Update does not wait for it and sees none of its writes.
func ViewIsNotDirty(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1", "b=1"); err != nil {
		return err
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		if err := errors.Join(putAll(tx, "a=2", "c=2"), tx.Delete([]byte("b"))); err != nil {
			return err
		}
		return wait(ctx, "a View beside an Update", start(func() error { return want(ctx, kv, "a=1", "b=1") }))
	})
	if err != nil {
		return err
	}
	return want(ctx, kv, "a=2", "c=2")
}

// Increments: many goroutines count with the same key; no count is lost, none is made twice.
func Increments(ctx context.Context, kv store.KV) error {
	const goroutines, each = 16, 25
	err := together(ctx, goroutines, func(int) error {
		for range each {
			if err := kv.Update(ctx, increment); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return want(ctx, kv, "count="+strconv.Itoa(goroutines*each))
}

func increment(tx store.Tx) error {
	value, err := tx.Get([]byte("count"))
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(string(value))
	letOthersIn()
	return tx.Put([]byte("count"), strconv.AppendInt(nil, int64(n)+1, 10))
}

// letOthersIn stands between a read and the write that relies on it.
func letOthersIn() {
	for range 20 {
		runtime.Gosched()
	}
}

// WriteSkew: of two that are on call one may leave, and each looks before leaving; never do both leave.
func WriteSkew(ctx context.Context, kv store.KV) error {
	leave := func(me, other string) error {
		return kv.Update(ctx, func(tx store.Tx) error {
			there, err := tx.Get([]byte(other))
			if err != nil || there == nil {
				return err
			}
			letOthersIn()
			return tx.Delete([]byte(me))
		})
	}
	for range 50 {
		if err := put(ctx, kv, "x=on call", "y=on call"); err != nil {
			return err
		}
		err := together(ctx, 2, func(i int) error { return leave("xy"[i:i+1], "yx"[i:i+1]) })
		if err != nil {
			return err
		}
		if err := wantKeys(ctx, kv, 1); err != nil {
			return fmt.Errorf("two on call of whom one may leave: %w", err)
		}
	}
	return nil
}

// Phantoms: several put a key of their own if a scan finds none; one of them does.
func Phantoms(ctx context.Context, kv store.KV) error {
	for range 20 {
		err := together(ctx, 8, func(i int) error {
			return kv.Update(ctx, func(tx store.Tx) error {
				others, err := scan(tx, nil, nil, i%2 == 0)
				if err != nil || len(others) > 0 {
					return err
				}
				letOthersIn()
				return tx.Put([]byte{byte(i)}, nil)
			})
		})
		if err != nil {
			return err
		}
		if err := wantKeys(ctx, kv, 1); err != nil {
			return fmt.Errorf("eight that put a key if there is none: %w", err)
		}
		if err := clearAll(ctx, kv); err != nil {
			return err
		}
	}
	return nil
}

// wantKeys compares the number of keys in the store.
func wantKeys(ctx context.Context, kv store.KV, n int) error {
	return kv.View(ctx, func(tx store.Tx) error {
		pairs, err := scan(tx, nil, nil, false)
		if err != nil || len(pairs) != n {
			return fmt.Errorf("keys in the store: got %.200q, %v; want %d of them", pairs, err, n)
		}
		return nil
	})
}

// clearAll empties the store.
func clearAll(ctx context.Context, kv store.KV) error {
	return kv.Update(ctx, func(tx store.Tx) error {
		var keys [][]byte
		err := tx.Scan(nil, nil, false, func(key, _ []byte) bool {
			keys = append(keys, key)
			return true
		})
		for _, key := range keys {
			err = errors.Join(err, tx.Delete(key))
		}
		return err
	})
}

// LastRunCounts: a store may run fn again; each run writes a key of its own, and only the last run's may remain.
func LastRunCounts(ctx context.Context, kv store.KV) error {
	const updates = 16
	runs := make([]int, updates)
	err := together(ctx, updates, func(i int) error {
		return kv.Update(ctx, func(tx store.Tx) error {
			runs[i]++
			if err := increment(tx); err != nil {
				return err
			}
			return tx.Put(fmt.Appendf(nil, "run/%02d/%d", i, runs[i]), nil)
		})
	})
	if err != nil {
		return err
	}
	pairs := []string{fmt.Sprintf("count=%d", updates)}
	for i, n := range runs {
		pairs = append(pairs, fmt.Sprintf("run/%02d/%d=", i, n))
	}
	return want(ctx, kv, pairs...)
}
