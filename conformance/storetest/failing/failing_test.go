package failing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/parley-chat/parley/conformance/storetest"
	"github.com/parley-chat/parley/conformance/storetest/failing"
	"github.com/parley-chat/parley/store"
	"github.com/parley-chat/parley/store/memory"
)

func TestWithoutAFaultTheContractIsKept(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.KV { return failing.New(memory.New(), 0, failing.DieBefore) })
}

func TestTheFaultComesAtTheSecondOfThreeUpdates(t *testing.T) {
	unknown := []error{failing.ErrInjected, store.ErrUnknownOutcome}
	cases := []struct {
		fault  failing.Fault
		second []error // what the second Update's error is
		third  error
		left   []string
	}{
		{failing.FailBefore, []error{failing.ErrInjected}, nil, []string{"1", "3"}},
		{failing.FailAfter, unknown, nil, []string{"1", "2", "3"}},
		{failing.DieBefore, []error{failing.ErrInjected}, failing.ErrDied, []string{"1"}},
		{failing.DieAfter, unknown, failing.ErrDied, []string{"1", "2"}},
	}
	for _, c := range cases {
		t.Run(c.fault.String(), func(t *testing.T) {
			kv := memory.New()
			f := failing.New(kv, 2, c.fault)
			if err := put(t.Context(), f, "1"); err != nil || f.Reached() {
				t.Errorf("first Update: got %v, reached %t; want nil, false", err, f.Reached())
			}
			second := put(t.Context(), f, "2")
			for _, want := range c.second {
				if !errors.Is(second, want) {
					t.Errorf("second Update: got %v, want %v", second, want)
				}
			}
			if len(c.second) == 1 && errors.Is(second, store.ErrUnknownOutcome) {
				t.Errorf("second Update: got %v, want a known outcome", second)
			}
			if err := put(t.Context(), f, "3"); !errors.Is(err, c.third) || !f.Reached() {
				t.Errorf("third Update: got %v, reached %t; want %v, true", err, f.Reached(), c.third)
			}
			if err := f.View(t.Context(), func(store.Tx) error { return nil }); !errors.Is(err, c.third) {
				t.Errorf("View after it: got %v, want %v", err, c.third)
			}
			if got := keys(t, kv); !slices.Equal(got, c.left) {
				t.Errorf("keys left: got %q, want %q", got, c.left)
			}
			if err := f.Close(); !errors.Is(err, c.third) {
				t.Errorf("Close: got %v, want %v", err, c.third)
			}
		})
	}
}

func TestAnUpdateThatFailsByItselfReturnsItsOwnError(t *testing.T) {
	errOwn := errors.New("own")
	for _, fault := range failing.Faults() {
		f := failing.New(memory.New(), 1, fault)
		err := f.Update(t.Context(), func(store.Tx) error { return errOwn })
		if !errors.Is(err, errOwn) || errors.Is(err, failing.ErrInjected) {
			t.Errorf("%v: got %v, want %v alone", fault, err, errOwn)
		}
		if !f.Reached() || f.Updates() != 1 {
			t.Errorf("%v: got reached %t after %d Updates, want true after 1", fault, f.Reached(), f.Updates())
		}
	}
}

// Three steps, each its own Update, that can be repeated: wherever the process dies, starting again completes them.
func Example() {
	ctx := context.Background()
	scenario := func(kv store.KV) error {
		for _, key := range []string{"inbox", "turn", "outbox"} {
			if err := put(ctx, kv, key); err != nil {
				return err
			}
		}
		return nil
	}
	for k := 1; ; k++ {
		kv := memory.New()
		f := failing.New(kv, k, failing.DieAfter)
		err := scenario(f)
		if !f.Reached() {
			break
		}
		fmt.Println(k, err, "- then", scenario(kv))
	}
	// Output:
	// 1 failing: failed on purpose: store: outcome of the commit is unknown - then <nil>
	// 2 failing: failed on purpose: store: outcome of the commit is unknown - then <nil>
	// 3 failing: failed on purpose: store: outcome of the commit is unknown - then <nil>
}

func put(ctx context.Context, kv store.KV, key string) error {
	return kv.Update(ctx, func(tx store.Tx) error { return tx.Put([]byte(key), nil) })
}

func keys(t *testing.T, kv store.KV) (keys []string) {
	t.Helper()
	err := kv.View(t.Context(), func(tx store.Tx) error {
		return tx.Scan(nil, nil, false, func(key, _ []byte) bool {
			keys = append(keys, string(key))
			return true
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
