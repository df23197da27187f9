package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/parley-chat/parley/store"
)

// ReadYourWrites: a transaction reads what it wrote, and so does everyone after its Update returned.
func ReadYourWrites(ctx context.Context, kv store.KV) error {
	if err := want(ctx, kv); err != nil {
		return fmt.Errorf("a new store: %w", err)
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		if err := putAll(tx, "a=1", "b=2", "a=3"); err != nil {
			return err
		}
		return wantIn(tx, "a=3", "b=2")
	})
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	if err := want(ctx, kv, "a=3", "b=2"); err != nil {
		return fmt.Errorf("after the Update: %w", err)
	}
	return kv.Update(ctx, func(tx store.Tx) error { return wantIn(tx, "a=3", "b=2") })
}

// DeletedIsGone: in its own transaction and after it; deleting what is not there changes nothing.
func DeletedIsGone(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1", "b=2", "c=3"); err != nil {
		return err
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		for _, key := range []string{"b", "b", "nothing"} {
			if err := tx.Delete([]byte(key)); err != nil {
				return fmt.Errorf("Delete(%q): %w", key, err)
			}
		}
		return errors.Join(wantMissing(tx, "b"), wantIn(tx, "a=1", "c=3"))
	})
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	if err := want(ctx, kv, "a=1", "c=3"); err != nil {
		return fmt.Errorf("after the Update: %w", err)
	}
	return kv.View(ctx, func(tx store.Tx) error { return wantMissing(tx, "b") })
}

// EmptyIsNotMissing: a value of no bytes, even a nil one, is read as a non-nil empty slice, by Get and Scan.
func EmptyIsNotMissing(ctx context.Context, kv store.KV) error {
	check := func(tx store.Tx) error {
		var errs []error
		err := tx.Scan(nil, nil, false, func(key, value []byte) bool {
			if value == nil {
				errs = append(errs, fmt.Errorf("Scan, empty value at %q: got nil, want a non-nil empty slice", key))
			}
			return true
		})
		return errors.Join(append(errs, err, wantMissing(tx, "c"), wantIn(tx, "a=", "b="))...)
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		return errors.Join(tx.Put([]byte("a"), nil), tx.Put([]byte("b"), []byte{}), check(tx))
	})
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	return kv.View(ctx, check)
}

// ValuesAreCopied: writing to the slices that were given to Put and Delete changes nothing in the store.
func ValuesAreCopied(ctx context.Context, kv store.KV) error {
	key, value := []byte("key"), []byte("value")
	err := kv.Update(ctx, func(tx store.Tx) error {
		copy(key, "key")
		copy(value, "value")
		if err := errors.Join(tx.Put([]byte("kez"), value), tx.Delete([]byte("kez")), tx.Put(key, value)); err != nil {
			return err
		}
		copy(key, "xxx")
		copy(value, "yyyyy")
		return wantIn(tx, "key=value")
	})
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	copy(key, "zzz")
	copy(value, "zzzzz")
	return want(ctx, kv, "key=value")
}

// ValuesReadStay: a slice that Get gave does not change when the same transaction writes the key.
func ValuesReadStay(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=old", "b=old"); err != nil {
		return err
	}
	return kv.Update(ctx, func(tx store.Tx) error {
		a, errA := tx.Get([]byte("a"))
		b, errB := tx.Get([]byte("b"))
		err := errors.Join(errA, errB, putAll(tx, "a=new"), tx.Delete([]byte("b")), putAll(tx, "b=new"))
		if err != nil {
			return err
		}
		if string(a) != "old" || string(b) != "old" {
			return fmt.Errorf("values read before a write: got %q and %q after it, want both \"old\"", a, b)
		}
		return wantIn(tx, "a=new", "b=new")
	})
}

// LargeValues: values of 1 MiB, one after the other and in the place of each other.
func LargeValues(ctx context.Context, kv store.KV) error {
	large := func(c string) string { return strings.Repeat(c, 1<<20) }
	if err := put(ctx, kv, "a="+large("x"), "b="+large("y"), "c=small"); err != nil {
		return err
	}
	if err := want(ctx, kv, "a="+large("x"), "b="+large("y"), "c=small"); err != nil {
		return err
	}
	if err := put(ctx, kv, "a=small", "b="+large("z"), "c="+large("w")); err != nil {
		return err
	}
	return want(ctx, kv, "a=small", "b="+large("z"), "c="+large("w"))
}

// KeyLimits: the longest key is stored, every byte may be in a key, and other keys are refused by ErrKey.
func KeyLimits(ctx context.Context, kv store.KV) error {
	longest := bytes.Repeat([]byte{0xff}, store.MaxKey)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		return errors.Join(tx.Put(longest, []byte("1")), tx.Put(every, []byte("2")), tx.Put([]byte{0}, []byte("3")))
	})
	if err != nil {
		return fmt.Errorf("keys within the limits: %w", err)
	}
	err = kv.View(ctx, func(tx store.Tx) error {
		return errors.Join(wantGet(tx, string(longest), "1"), wantGet(tx, string(every), "2"), wantGet(tx, "\x00", "3"))
	})
	if err != nil {
		return err
	}
	return kv.Update(ctx, func(tx store.Tx) error { return wantErrKey(tx, nil, []byte{}, append(longest, 0)) })
}

func wantErrKey(tx store.Tx, keys ...[]byte) error {
	var errs []error
	for _, key := range keys {
		_, err := tx.Get(key)
		op := fmt.Sprintf("a key of %d bytes: ", len(key))
		errs = append(errs,
			wantError(op+"Get", err, store.ErrKey),
			wantError(op+"Put", tx.Put(key, []byte("x")), store.ErrKey),
			wantError(op+"Delete", tx.Delete(key), store.ErrKey))
	}
	return errors.Join(errs...)
}

// RoundTrip puts value at key, reads it back by Get and Scan, and deletes it again; a key out of bounds must be refused.
// It is what a fuzz test of a back end runs.
func RoundTrip(ctx context.Context, kv store.KV, key, value []byte) error {
	if store.CheckKey(key) != nil {
		return kv.Update(ctx, func(tx store.Tx) error { return wantErrKey(tx, key) })
	}
	check := func(tx store.Tx) error {
		err := wantGet(tx, string(key), string(value))
		return errors.Join(err, wantScan(tx, key, append(bytes.Clone(key), 0), true, string(key)+"="+string(value)))
	}
	err := kv.Update(ctx, func(tx store.Tx) error { return errors.Join(tx.Put(key, value), check(tx)) })
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	if err := kv.View(ctx, check); err != nil {
		return err
	}
	err = kv.Update(ctx, func(tx store.Tx) error { return tx.Delete(key) })
	return errors.Join(err, kv.View(ctx, func(tx store.Tx) error { return wantMissing(tx, string(key)) }))
}
