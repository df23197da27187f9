package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/parley-chat/parley/store"
)

// ScanOrder: by byte, whatever the order of writing was; a prefix comes before what it begins.
func ScanOrder(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "b=1", "\xff=2", "a=3", "a\x00=4", "\x00=5", "aa=6", "B=7", "ab=8"); err != nil {
		return err
	}
	return want(ctx, kv, "\x00=5", "B=7", "a=3", "a\x00=4", "aa=6", "ab=8", "b=1", "\xff=2")
}

// ReverseScanOrder: the same keys, the other way round.
func ReverseScanOrder(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "b=1", "\xff=2", "a=3", "a\x00=4", "aa=5"); err != nil {
		return err
	}
	return kv.View(ctx, func(tx store.Tx) error {
		return errors.Join(
			wantScan(tx, nil, nil, true, "\xff=2", "b=1", "aa=5", "a\x00=4", "a=3"),
			wantScan(tx, []byte("a\x00"), []byte("b"), true, "aa=5", "a\x00=4"))
	})
}

// ScanBounds: from is in the range, to is not; a nil to is the end, an empty one the beginning; both directions agree.
func ScanBounds(ctx context.Context, kv store.KV) error {
	keys := []string{"b", "d", "f"}
	if err := put(ctx, kv, "b=", "d=", "f="); err != nil {
		return err
	}
	bounds := [][]byte{nil, {}, []byte("a"), []byte("b"), []byte("b\x00"), []byte("c"), []byte("d"), []byte("e"),
		[]byte("f"), []byte("f\x00"), []byte("g"), make([]byte, store.MaxKey+1)}
	return kv.View(ctx, func(tx store.Tx) error {
		var errs []error
		for _, from := range bounds {
			for _, to := range bounds {
				in := within(keys, from, to)
				errs = append(errs, wantScan(tx, from, to, false, in...))
				slices.Reverse(in)
				errs = append(errs, wantScan(tx, from, to, true, in...))
			}
		}
		return errors.Join(errs...)
	})
}

// within returns the keys in [from, to), as pairs without value.
func within(keys []string, from, to []byte) (pairs []string) {
	for _, key := range keys {
		if key >= string(from) && (to == nil || key < string(to)) {
			pairs = append(pairs, key+"=")
		}
	}
	return pairs
}

// ScanStops: after false from its fn, a scan gives nothing more, in both directions.
func ScanStops(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=", "b=", "c=", "d=", "e="); err != nil {
		return err
	}
	return kv.View(ctx, func(tx store.Tx) error {
		for _, reverse := range []bool{false, true} {
			calls := 0
			err := tx.Scan(nil, nil, reverse, func(_, _ []byte) bool {
				calls++
				return calls < 3
			})
			if err != nil || calls != 3 {
				return fmt.Errorf("Scan(reverse %t) told to stop at the 3rd key: got %d keys, %v", reverse, calls, err)
			}
		}
		return nil
	})
}

// ScanSeesOwnWrites: new, changed and deleted keys among committed ones, in both directions.
func ScanSeesOwnWrites(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "b=1", "d=1", "f=1"); err != nil {
		return err
	}
	return kv.Update(ctx, func(tx store.Tx) error {
		if err := errors.Join(putAll(tx, "a=2", "d=2", "e=2", "g=2"), tx.Delete([]byte("b")), tx.Delete([]byte("e"))); err != nil {
			return err
		}
		return errors.Join(
			wantScan(tx, nil, nil, false, "a=2", "d=2", "f=1", "g=2"),
			wantScan(tx, nil, nil, true, "g=2", "f=1", "d=2", "a=2"),
			wantScan(tx, []byte("b"), []byte("g"), false, "d=2", "f=1"))
	})
}

// ScanOverGap: among a thousand keys most are deleted; a scan finds the rest, before and after the commit. In a store
// made of pages some pages are empty then.
func ScanOverGap(ctx context.Context, kv store.KV) error {
	key := func(i int) string { return fmt.Sprintf("%04d", i) }
	var every, ends, sdne []string
	for i := range 1000 {
		every = append(every, key(i)+"="+fmt.Sprintf("%0100d", i))
	}
	ends = slices.Concat(every[:3], every[997:])
	sdne = slices.Clone(ends)
	slices.Reverse(sdne)
	if err := put(ctx, kv, every...); err != nil {
		return err
	}
	check := func(tx store.Tx) error {
		return errors.Join(
			wantScan(tx, nil, nil, false, ends...),
			wantScan(tx, nil, nil, true, sdne...),
			wantScan(tx, []byte(key(3)), []byte(key(997)), false),
			wantScan(tx, []byte(key(3)), []byte(key(997)), true),
			wantScan(tx, []byte(key(500)), nil, false, every[997:]...),
			wantScan(tx, nil, []byte(key(500)), true, sdne[3:]...))
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		for i := 3; i < 997; i++ {
			if err := tx.Delete([]byte(key(i))); err != nil {
				return err
			}
		}
		return check(tx)
	})
	if err != nil {
		return fmt.Errorf("inside the Update: %w", err)
	}
	return kv.View(ctx, check)
}

// ScanMayNotWrite: inside a scan writes are refused and reads are answered; after it all is as before.
func ScanMayNotWrite(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1", "b=2"); err != nil {
		return err
	}
	err := kv.Update(ctx, func(tx store.Tx) error {
		var errs []error
		err := tx.Scan(nil, nil, false, func(key, _ []byte) bool {
			errs = append(errs,
				wantError("Put inside Scan", tx.Put(key, []byte("x")), store.ErrScanning),
				wantError("Delete inside Scan", tx.Delete(key), store.ErrScanning),
				wantIn(tx, "a=1", "b=2"),
				wantError("Put inside Scan after another Scan", tx.Put(key, nil), store.ErrScanning))
			return true
		})
		return errors.Join(append(errs, err, putAll(tx, "c=3"))...)
	})
	if err != nil {
		return err
	}
	return want(ctx, kv, "a=1", "b=2", "c=3")
}
