package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/store"
)

// EndedContext: with a context that has ended already fn is not run, and its error is returned.
func EndedContext(ctx context.Context, kv store.KV) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	ran := false
	fn := func(store.Tx) error {
		ran = true
		return nil
	}
	err := errors.Join(
		wantError("View", kv.View(ended, fn), context.Canceled),
		wantError("Update", kv.Update(ended, fn), context.Canceled))
	if ran {
		err = errors.Join(err, errors.New("fn was run although the context had ended"))
	}
	return err
}

// WaitingContext: beside a long Update another one comes whose context ends. Either it had to wait: it returns without
// the first one ending, with the context's error, and nothing is written. Or its commit needs not wait: then it is there.
func WaitingContext(ctx context.Context, kv store.KV) error {
	begun, release := make(chan error, 1), make(chan error)
	long := start(func() error {
		return kv.Update(ctx, func(tx store.Tx) error {
			select {
			case begun <- nil:
			default: // this is another run
			}
			_ = wait(ctx, "the test", release)
			return putAll(tx, "long=")
		})
	})
	if err := wait(ctx, "the begin of the first Update", begun); err != nil {
		return err
	}
	short, cancel := context.WithCancel(ctx)
	second := start(func() error { return put(short, kv, "second=") })
	cancel()
	outcome := wait(ctx, "an Update whose context has ended", second)
	close(release)
	if err := wait(ctx, "the first Update", long); err != nil {
		return err
	}
	if outcome == nil {
		return want(ctx, kv, "long=", "second=")
	}
	return errors.Join(wantError("Update whose context ended", outcome, context.Canceled), want(ctx, kv, "long="))
}

// ClosedSaysSo: every call after Close returns ErrClosed and runs no fn.
func ClosedSaysSo(ctx context.Context, kv store.KV) error {
	if err := errors.Join(put(ctx, kv, "a=1"), kv.Close()); err != nil {
		return err
	}
	ran := false
	fn := func(store.Tx) error {
		ran = true
		return nil
	}
	err := errors.Join(
		wantError("View after Close", kv.View(ctx, fn), store.ErrClosed),
		wantError("Update after Close", kv.Update(ctx, fn), store.ErrClosed),
		wantError("Close after Close", kv.Close(), store.ErrClosed))
	if ran {
		err = errors.Join(err, errors.New("fn was run although the store was closed"))
	}
	return err
}

// CloseWaitsForView: a View that runs when Close is called reads to its end.
func CloseWaitsForView(ctx context.Context, kv store.KV) error {
	if err := put(ctx, kv, "a=1"); err != nil {
		return err
	}
	var closing <-chan error
	err := kv.View(ctx, func(tx store.Tx) error {
		closing = start(kv.Close)
		return errors.Join(stillClosing(closing), wantIn(tx, "a=1"))
	})
	if err != nil {
		return err
	}
	return wait(ctx, "Close", closing)
}

// CloseWaitsForUpdate: an Update that runs when Close is called is committed.
func CloseWaitsForUpdate(ctx context.Context, kv store.KV) error {
	var closing <-chan error
	err := kv.Update(ctx, func(tx store.Tx) error {
		if closing == nil {
			closing = start(kv.Close)
		}
		return errors.Join(stillClosing(closing), putAll(tx, "a=1"), wantIn(tx, "a=1"))
	})
	if err != nil {
		return err
	}
	return wait(ctx, "Close", closing)
}

// stillClosing gives Close time to return, which it must not.
func stillClosing(closing <-chan error) error {
	for range 1000 {
		letOthersIn()
		select {
		case err := <-closing:
			return fmt.Errorf("Close returned (%v) beside a running transaction", err)
		default:
		}
	}
	return nil
}
