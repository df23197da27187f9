package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/store"
)

// Property returns a property for rapid.Check: whatever is written, deleted, read and given up, in transactions one
// after the other, the store reads like a map with sorted keys. It begins with an empty store each time.
func Property(ctx context.Context, kv store.KV) func(*rapid.T) {
	return func(t *rapid.T) {
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(clearAll(ctx, kv))
		model := model{}
		t.Repeat(map[string]func(*rapid.T){
			"view": func(t *rapid.T) {
				steps := rapid.SliceOfN(rapid.OneOf(gets(), scans()), 1, 4).Draw(t, "steps")
				must(kv.View(ctx, func(tx store.Tx) error { return model.run(tx, steps) }))
			},
			"commit": func(t *rapid.T) {
				steps := rapid.SliceOfN(rapid.OneOf(puts(), puts(), deletes(), gets(), scans()), 1, 12).Draw(t, "steps")
				next := model
				must(kv.Update(ctx, func(tx store.Tx) error {
					next = maps.Clone(model)
					return next.run(tx, steps)
				}))
				model = next
			},
			"give up": func(t *rapid.T) {
				steps := rapid.SliceOfN(rapid.OneOf(puts(), deletes(), scans()), 1, 12).Draw(t, "steps")
				err := kv.Update(ctx, func(tx store.Tx) error {
					return errors.Join(maps.Clone(model).run(tx, steps), errOnPurpose)
				})
				if err == nil || err.Error() != errOnPurpose.Error() {
					t.Fatalf("Update that is given up: got error %v, want %v alone", err, errOnPurpose)
				}
			},
			"": func(*rapid.T) {
				must(kv.View(ctx, func(tx store.Tx) error { return wantIn(tx, model.within(nil, nil)...) }))
			},
		})
	}
}

// model is what the store should hold.
type model map[string]string

// step is one call on a transaction. It makes the same change to the model, and compares what the two answer.
type step func(tx store.Tx, m model) error

func (m model) run(tx store.Tx, steps []step) error {
	for i, step := range steps {
		if err := step(tx, m); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// within returns the pairs in [from, to), sorted.
func (m model) within(from, to []byte) []string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if key >= string(from) && (to == nil || key < string(to)) {
			pairs = append(pairs, key+"="+m[key])
		}
	}
	return pairs
}

func puts() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		key, value := keys().Draw(t, "put"), values().Draw(t, "value")
		return func(tx store.Tx, m model) error {
			m[string(key)] = value
			return tx.Put(key, []byte(value))
		}
	})
}

func deletes() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		key := keys().Draw(t, "delete")
		return func(tx store.Tx, m model) error {
			delete(m, string(key))
			return tx.Delete(key)
		}
	})
}

func gets() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		key := keys().Draw(t, "get")
		return func(tx store.Tx, m model) error {
			if value, there := m[string(key)]; there {
				return wantGet(tx, string(key), value)
			}
			return wantMissing(tx, string(key))
		}
	})
}

func scans() *rapid.Generator[step] {
	return rapid.Custom(func(t *rapid.T) step {
		bounds := rapid.OneOf(rapid.Just([]byte(nil)), rapid.Just([]byte{}), keys())
		from, to := bounds.Draw(t, "from"), bounds.Draw(t, "to")
		reverse := rapid.Bool().Draw(t, "reverse")
		return func(tx store.Tx, m model) error {
			pairs := m.within(from, to)
			if reverse {
				slices.Reverse(pairs)
			}
			return wantScan(tx, from, to, reverse, pairs...)
		}
	})
}

// keys are few, so that they meet, and close to each other, so that bounds matter. None has a "=" in it.
func keys() *rapid.Generator[[]byte] {
	return rapid.SliceOfN(rapid.SampledFrom([]byte{0, 'a', 'b', 0xff}), 1, 3)
}

// values are empty, small, or so large that a few of them fill a page.
func values() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		length := rapid.SampledFrom([]int{0, 1, 2, 100, 3000}).Draw(t, "length")
		return strings.Repeat(rapid.SampledFrom([]string{"x", "y", "="}).Draw(t, "of"), length)
	})
}
