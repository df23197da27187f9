package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/parley-chat/parley/store"
)

// errOnPurpose is returned by functions that are to fail.
var errOnPurpose = errors.New("failed on purpose")

// put commits the given key=value pairs in one Update.
func put(ctx context.Context, kv store.KV, pairs ...string) error {
	err := kv.Update(ctx, func(tx store.Tx) error { return putAll(tx, pairs...) })
	if err != nil {
		return fmt.Errorf("Update that puts %.200q: %w", pairs, err)
	}
	return nil
}

// putAll puts the given key=value pairs.
func putAll(tx store.Tx, pairs ...string) error {
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if err := tx.Put([]byte(key), []byte(value)); err != nil {
			return fmt.Errorf("Put(%q): %w", key, err)
		}
	}
	return nil
}

// want compares what a View of the whole store gives with the key=value pairs wanted.
func want(ctx context.Context, kv store.KV, pairs ...string) error {
	return kv.View(ctx, func(tx store.Tx) error { return wantIn(tx, pairs...) })
}

// wantIn is want inside a transaction. Every pair is asked for by Get as well as by Scan.
func wantIn(tx store.Tx, pairs ...string) error {
	if err := wantScan(tx, nil, nil, false, pairs...); err != nil {
		return err
	}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if err := wantGet(tx, key, value); err != nil {
			return err
		}
	}
	return nil
}

func wantGet(tx store.Tx, key, value string) error {
	got, err := tx.Get([]byte(key))
	if err != nil || got == nil || string(got) != value {
		return fmt.Errorf("Get(%.40q): got %.40q (nil: %t), %v; want %.40q", key, got, got == nil, err, value)
	}
	return nil
}

func wantMissing(tx store.Tx, key string) error {
	got, err := tx.Get([]byte(key))
	if err != nil || got != nil {
		return fmt.Errorf("Get(%.40q): got %.40q (nil: %t), %v; want nil", key, got, got == nil, err)
	}
	return nil
}

func wantScan(tx store.Tx, from, to []byte, reverse bool, pairs ...string) error {
	got, err := scan(tx, from, to, reverse)
	if err != nil || !slices.Equal(got, pairs) {
		return fmt.Errorf("Scan(%q, %q, reverse %t): got %.400q, %v; want %.400q", from, to, reverse, got, err, pairs)
	}
	return nil
}

// scan returns what a Scan gives, as key=value pairs.
func scan(tx store.Tx, from, to []byte, reverse bool) ([]string, error) {
	var pairs []string
	err := tx.Scan(from, to, reverse, func(key, value []byte) bool {
		pairs = append(pairs, string(key)+"="+string(value))
		return true
	})
	return pairs, err
}

// wantError compares an error with the one wanted, by errors.Is.
func wantError(op string, got, want error) error {
	if !errors.Is(got, want) {
		return fmt.Errorf("%s: got error %v, want %v", op, got, want)
	}
	return nil
}

// wait waits for what is told on done, but not longer than ctx.
func wait(ctx context.Context, what string, done <-chan error) error {
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%s did not come to an end: %w", what, ctx.Err())
	}
}

// start runs fn in a goroutine and tells its result on the channel, whether or not somebody waits for it. The goroutine
// is running when start returns.
func start(fn func() error) <-chan error {
	done, running := make(chan error, 1), make(chan struct{})
	go func() {
		close(running)
		done <- fn()
	}()
	<-running
	return done
}

// together runs fn(0) to fn(n-1) at the same time and returns their errors when all have ended.
func together(ctx context.Context, n int, fn func(i int) error) error {
	running := make([]<-chan error, n)
	for i := range n {
		running[i] = start(func() error { return fn(i) })
	}
	var errs []error
	for _, done := range running {
		errs = append(errs, wait(ctx, "a concurrent Update", done))
	}
	return errors.Join(errs...)
}
